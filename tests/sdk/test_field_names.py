"""Names of fields that elements of a known type do not have are refused where the program writes them."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.io import ReadFromCsv, ReadFromJson, ReadFromParquet, ReadFromSpark, WriteToCsv, WriteToSpark
from penstock.io.watermarks import BoundedDisorder
from penstock.typehints import TypeCheckError


class Score(NamedTuple):
    team: str
    points: int

    @property
    def double(self) -> int:
        return 2 * self.points


@dataclasses.dataclass
class Made:
    team: str

    def __post_init__(self) -> None:
        self.more = 1


def _rows() -> Any:
    return beam.Pipeline() | beam.Create([beam.Row(team="red", points=3)])


_WRONG = {
    "Select": beam.Select("taem"),
    "Select by another name": beam.Select(x="taem"),
    "an expression": beam.Select(x=beam.field("taem") + "!"),
    "Filter": beam.Filter(beam.field("taem") == "red"),
    "Map": beam.Map(beam.field("taem")),
    "a function": beam.Map(lambda row: (row.points, row.taem)),
    "a function of a Filter": beam.Filter(lambda row, team: row.taem == team, "red"),
    "GroupBy": beam.GroupBy("taem"),
    "GroupBy several": beam.GroupBy("points", "taem"),
    "GroupBy an expression": beam.GroupBy(x=beam.field("taem")),
    "aggregate_field": beam.GroupBy("points").aggregate_field("taem", max, "most"),
    "WithTimestamps": beam.WithTimestamps("taem"),
}


@pytest.mark.parametrize("transform", _WRONG.values(), ids=_WRONG)
def test_a_wrong_name_is_refused_with_the_nearest_one(transform) -> None:
    with pytest.raises(TypeCheckError) as refused:
        _ = _rows() | "Here" >> transform
    what, where, hint = str(refused.value).splitlines()
    assert what == "the elements have no field 'taem'"
    lines = Path(__file__).read_text().splitlines()
    here = next(number for number, line in enumerate(lines, 1) if '"Here" >> transform' in line)
    assert where.startswith("  at step 'Here")
    assert where.endswith(f"(test_field_names.py:{here})")
    assert hint == "  hint: did you mean 'team'? The fields are: team, points"


def test_a_name_in_other_letters_is_no_field_either() -> None:
    with pytest.raises(TypeCheckError, match="did you mean 'team'"):
        _ = _rows() | beam.Select("TEAM")
    with pytest.raises(TypeCheckError, match=r"hint: the fields are: team, points"):
        _ = _rows() | "Far" >> beam.Select("xyz")


@pytest.mark.parametrize("elements", [[Score("red", 1)], [Made("red")], [{"team": 1}], [None]])
def test_what_elements_may_have_is_not_refused(elements) -> None:
    name = "double" if isinstance(elements[0], Score) else "more"
    _ = beam.Pipeline() | beam.Create(elements) | beam.Select(name)


# Without annotations: the types of these functions are inferred.
def _with_more(row):
    row.more = 1
    return row


def _with_more_by_name(row):
    setattr(row, "more", 1)  # noqa: B010
    return row


def _later(row: Any) -> Iterator[Any]:
    yield row.more


def _guarded(row: Any) -> int:
    try:
        return int(row.more)
    except AttributeError:
        return 0


def _replaced(row: Any) -> Any:
    row = Score(row.team, row.points)
    return row.double


@pytest.mark.parametrize(
    "function",
    [
        _with_more,
        _with_more_by_name,
        _guarded,
        _replaced,
        lambda row: row.more if hasattr(row, "more") else 0,
        lambda row: (row.as_dict(), row._fields),
        lambda row: Score(**vars(row)),
        _later,
    ],
)
def test_what_a_function_may_find_is_not_refused(function) -> None:
    found = _rows() | "Function" >> beam.Map(function)
    if function in (_with_more, _with_more_by_name):
        _ = found | "More" >> beam.Map(lambda row: row.more)
    _ = found | "Pairs" >> beam.Map(lambda row: (row, row)) | beam.MapTuple(lambda row, _: row.more)


def _enrich(row: Any) -> None:
    row.more = 1


def _set_and_read(row: Any) -> int:
    row.more = row.points * 2
    return int(row.more)


def _set_by_a_helper(row: Any) -> int:
    _enrich(row)
    return int(row.more)


def _set_under_another_name(row: Any) -> int:
    alias = row
    alias.more = 1
    return int(row.more)


def _set_by_name_and_read(row: Any) -> int:
    setattr(row, "more", 1)  # noqa: B010
    return int(row.more)


def _set_in_the_fields(row: Any) -> int:
    row.__dict__.update(more=1)
    return int(row.more)


@pytest.mark.parametrize(
    "function",
    [_set_and_read, _set_by_a_helper, _set_under_another_name, _set_by_name_and_read, _set_in_the_fields],
)
def test_a_field_that_a_function_may_have_set_is_not_refused(function) -> None:
    _ = _rows() | "Function" >> beam.Map(function)


def test_rows_that_a_function_has_had_may_have_more_fields() -> None:
    kept = _rows() | "Keep" >> beam.Filter(lambda row: _enrich(row) is None)
    _ = kept | "More" >> beam.Map(lambda row: row.more)


class _Described(beam.Row):
    @property
    def described(self) -> str:
        return f"{self.team}: {self.points}"


def test_a_class_of_rows_keeps_its_attributes() -> None:
    rows = beam.Pipeline() | beam.Create([_Described(team="red", points=3)])
    _ = rows | "Described" >> beam.Map(lambda row: row.described)


def test_values_of_the_program_have_the_fields_of_all_rows() -> None:
    rows = beam.Pipeline() | beam.Create([beam.Row(team="red"), beam.Row(team="red", bonus=2)])
    assert [name for name, _ in rows.element_type.fields] == ["team", "bonus"]
    _ = rows | beam.Filter(lambda row: hasattr(row, "bonus")) | beam.Map(lambda row: row.bonus)
    with pytest.raises(TypeCheckError, match="did you mean 'bonus'"):
        _ = rows | "Wrong" >> beam.Map(lambda row: row.bonsu)


@pytest.mark.parametrize("element", [("red", 3), 3, 1.5, True, "red", b"red"], ids=repr)
def test_pairs_numbers_and_texts_have_no_fields(element) -> None:
    elements = beam.Pipeline() | beam.Create([element])
    with pytest.raises(TypeCheckError) as refused:
        _ = elements | "Here" >> beam.GroupBy("team")
    what, where, hint = str(refused.value).splitlines()
    assert what == "the elements have no field 'team'"
    assert where.startswith("  at step 'Here/Key'")
    assert hint.endswith(" have none: pass a function of the element, or make rows")
    # Python's own attributes can be read as fields.
    _ = elements | "Class" >> beam.GroupBy("__class__")


def test_fields_that_a_step_makes_are_known_to_the_next() -> None:
    totals = _rows() | beam.GroupBy("team").aggregate_field("points", sum, "total")
    _ = totals | beam.Select("team", "total")
    with pytest.raises(TypeCheckError, match="did you mean 'total'"):
        _ = totals | "Wrong" >> beam.Filter(beam.field("totl") > 3)
    with pytest.raises(TypeCheckError, match="no field 'points'"):
        _ = totals | "Gone" >> beam.Select("points")


def test_the_fields_of_files_are_known_when_the_read_is_applied(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("team,points\nred,3\n")
    (tmp_path / "a.json").write_text('{"team": "red"}\n')
    pq.write_table(pa.table({"team": ["red"]}), tmp_path / "a.parquet")
    reads = {
        "csv": ReadFromCsv(str(tmp_path / "*.csv")),
        "json": ReadFromJson(str(tmp_path / "*.json")),
        "dicts": ReadFromParquet(str(tmp_path / "*.parquet")),
        "rows": ReadFromParquet(str(tmp_path / "*.parquet"), as_rows=True),
        "table": ReadFromSpark("orc", "/nowhere", schema="team string, points array<int>"),
    }
    pipeline = beam.Pipeline()
    for label, read in reads.items():
        rows = pipeline | label >> read
        with pytest.raises(TypeCheckError, match="did you mean 'team'"):
            _ = rows | f"{label} wrong" >> beam.Select("taem")
        with pytest.raises(TypeCheckError, match="did you mean 'team'"):
            _ = pipeline | f"{label} late" >> read.as_stream("taem", BoundedDisorder(60))


def test_the_types_of_files_are_those_of_their_values(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("i,f,b,s,n\n1,1.5,true,x,\n2,,False,,\n")
    rows = beam.Pipeline() | ReadFromCsv(str(tmp_path / "*.csv"))
    assert str(rows.element_type) == (
        "Row(i=Union[<class 'NoneType'>, <class 'int'>], f=Union[<class 'NoneType'>, <class 'float'>], "
        "b=Union[<class 'NoneType'>, <class 'bool'>], s=Union[<class 'NoneType'>, <class 'str'>], "
        "n=Union[<class 'NoneType'>, <class 'str'>])"
    )
    (tmp_path / "a.json").write_text('[{"a": 1, "b": {"c": [1.5, null]}}, {"a": "x"}]')
    rows = beam.Pipeline() | ReadFromJson(str(tmp_path / "*.json"), lines=False)
    assert str(rows.element_type) == (
        "Row(a=Union[<class 'NoneType'>, <class 'int'>, <class 'str'>], b=Union[<class 'NoneType'>, "
        "Dict(c=Union[<class 'NoneType'>, List[Union[<class 'NoneType'>, <class 'float'>]]])])"
    )


@pytest.mark.parametrize("name", ["odd name", "from", "_own", "a.b"])
def test_a_name_that_no_named_tuple_can_have_is_refused(name) -> None:
    rows = beam.Pipeline() | beam.Create([beam.Row(**{name: 1, "n": 2})])
    _ = rows | "alone" >> beam.GroupBy(name)
    with pytest.raises(
        ValueError, match=rf"{name!r} cannot be the name of a field.*\n.*\n.*GroupBy\(name={name!r}"
    ):
        _ = rows | "several" >> beam.GroupBy(name, "n")
    with pytest.raises(ValueError, match="cannot be the name"):
        _ = rows | "dest" >> beam.GroupBy("n").aggregate_field("n", sum, name)
    with pytest.raises(ValueError, match="two fields of the result have the name 'n'"):
        _ = rows | "twice" >> beam.GroupBy("n").aggregate_field("n", sum, "n")
    _ = rows | "renamed" >> beam.GroupBy(key=name).aggregate_field(name, sum, "total")


def test_columns_that_a_sink_names_are_fields_of_the_rows(tmp_path) -> None:
    with pytest.raises(TypeCheckError, match="did you mean 'team'"):
        _ = _rows() | WriteToSpark("orc", str(tmp_path / "out"), partition_by="taem")
    with pytest.raises(TypeCheckError, match="did you mean 'team'"):
        _ = _rows() | WriteToCsv(str(tmp_path / "out"), columns=["taem"])


def test_a_column_that_may_have_no_value_goes_where_none_may_not(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("team,points\nred,3\n")
    rows = beam.Pipeline() | ReadFromCsv(str(tmp_path / "*.csv"))
    points = rows | beam.Map(lambda row: row.points)
    _ = points | "int" >> beam.Map(lambda n: n).with_input_types(int)
    pairs = rows | beam.Map(lambda row: (row.team, row.points or 0))
    _ = pairs | beam.CombinePerKey(beam.combiners.MeanCombineFn())

    def named(row):
        points = row.points
        return row.team, points or 0

    _ = rows | beam.Map(named) | "named" >> beam.CombinePerKey(beam.combiners.MeanCombineFn())
    assert str(points.element_type) == "Union[<class 'NoneType'>, <class 'int'>]"
    with pytest.raises(TypeCheckError, match="str"):
        _ = points | "str" >> beam.Map(lambda n: n).with_input_types(str)
    declared = points | "or None" >> beam.Map(lambda n: None if n == 3 else n)
    with pytest.raises(TypeCheckError, match="int"):
        _ = declared | "None" >> beam.Map(lambda n: n).with_input_types(int)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'a,b\n"' + b"x" * 200_000, b"{" * 100_000])
def test_files_that_cannot_be_read_are_refused_when_they_are_opened_and_not_before(tmp_path, content) -> None:
    (tmp_path / "a").write_bytes(content)
    pipeline = beam.Pipeline()
    for read in (ReadFromCsv, ReadFromJson, ReadFromParquet):
        rows = pipeline | read(str(tmp_path / "a"))
        assert rows.element_type is not None


def test_a_declared_type_is_taken_instead_of_that_of_the_files(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("team,points\nred,3\n")
    rows = beam.Pipeline() | ReadFromCsv(str(tmp_path / "*.csv")).with_output_types(Score)
    assert rows.element_type is Score


def test_types_are_not_looked_up_where_types_are_not_checked(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("team,points\nred,3\n")
    pipeline = beam.Pipeline(
        options=beam.options.pipeline_options.PipelineOptions(["--no_pipeline_type_check"])
    )
    _ = pipeline | ReadFromCsv(str(tmp_path / "*.csv")) | beam.Select("taem")


class Tagged(NamedTuple):
    team: list[str]


class Dated(NamedTuple):
    team: datetime.date


class Misspelled(NamedTuple):
    taem: str


@pytest.mark.parametrize(
    ("declared", "what", "hint"),
    [
        (Tagged, "the field team is declared List", "declare int, float, bool, str, datetime.datetime"),
        (Misspelled, "the elements have no field 'taem'", "did you mean 'team'?"),
    ],
)
def test_a_declared_type_that_csv_does_not_have_is_refused(tmp_path, declared, what, hint) -> None:
    (tmp_path / "a.csv").write_text("team,points\nred,3\n")
    for read in (
        ReadFromCsv(f"{tmp_path}/*.csv"),
        ReadFromCsv(f"{tmp_path}/*.csv").as_stream(existing_only=True),
    ):
        with pytest.raises(TypeCheckError, match=what) as refused:
            _ = beam.Pipeline(mode="streaming") | "Here" >> read.with_output_types(declared)
        assert "'Here'" in str(refused.value)
        assert hint in str(refused.value)


def test_a_declared_type_names_the_columns_to_read_and_their_types(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("at,team,points\n1,red,3\n")
    read = ReadFromCsv(f"{tmp_path}/*.csv", dtype={"points": int}).with_output_types(Score)
    _ = beam.Pipeline() | read
    options = dict(read.source.options)
    assert options == {"usecols": ["team", "points"], "dtype": {"team": str, "points": int}}
    for dtype in (str, {"points": "float"}):
        other = ReadFromCsv(f"{tmp_path}/*.csv", dtype=dtype).with_output_types(Score)
        with pytest.raises(ValueError, match=r"the field points is declared int, but dtype says (str|float)"):
            _ = beam.Pipeline() | other


def test_a_declared_type_that_the_values_of_json_do_not_have_is_refused(tmp_path) -> None:
    (tmp_path / "a.json").write_text('{"team": "2026-01-01", "points": 3}\n')
    with pytest.raises(
        TypeCheckError, match=r"the field team is declared .*date.*, but is str in json"
    ) as refused:
        _ = beam.Pipeline() | ReadFromJson(f"{tmp_path}/*.json").with_output_types(Dated)
    assert "declare team: str, and convert the value with beam.Map" in str(refused.value)
    _ = beam.Pipeline() | ReadFromJson(f"{tmp_path}/*.json").with_output_types(Score)
