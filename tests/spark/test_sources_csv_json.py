"""CSV and JSON files opened by the runner: types, missing values, and lines that are wrong."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.error import RunnerError
from penstock.io import ReadFromCsv, ReadFromJson, ReadFromSpark, WriteToMemory
from penstock.pvalue import Row
from penstock.transforms.sql import SqlTransform
from penstock_spark.formats.registry import open_source
from tests.spark.scanned import WHERE, elements


@pytest.fixture
def read(spark: SparkSession) -> Callable[[Any], list[Any]]:
    return lambda transform: elements(open_source(transform.source, spark, WHERE))


@pytest.fixture
def small_splits(spark: SparkSession) -> Iterator[None]:
    """Files are cut into splits of 100 bytes, so that lines straddle splits and partitions hold several."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {name: spark.conf.get(name) for name in names}
    spark.conf.set(names[0], "100")
    spark.conf.set(names[1], "1")
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def test_csv_columns_get_the_types_of_their_values(tmp_path: Path, read: Any) -> None:
    (tmp_path / "a.csv").write_text(
        "i,long,f,b,s,when,empty,some\n"
        '1,99999999999999999999,1,True,"a, ""b""",2024-01-01,,3\n'
        "-2,1,1e3,false,007x,2024-01-02,NA,null\n"
    )
    assert read(ReadFromCsv(f"{tmp_path}/a.csv")) == [
        Row(i=1, long=10**20 - 1, f=1.0, b=True, s='a, "b"', when="2024-01-01", empty=None, some=3),
        Row(i=-2, long=1, f=1000.0, b=False, s="007x", when="2024-01-02", empty=None, some=None),
    ]


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("a;b\n1;x\n", {"sep": ";"}, [Row(a=1, b="x")]),
        ("1,x\n", {"header": None}, [Row(**{"0": 1, "1": "x"})]),
        ("1,x\n", {"names": ["a", "b"]}, [Row(a=1, b="x")]),
        ("a,b\n1,x\n", {"names": ["c", "d"], "header": 0}, [Row(c=1, d="x")]),
        ("a,b\n1,x\n", {"usecols": ["b"]}, [Row(b="x")]),
        ("a,b\n1,2\n", {"dtype": {"a": str, "b": float}}, [Row(a="1", b=2.0)]),
        ("a,b\n1,-\n", {"na_values": "-"}, [Row(a=1, b=None)]),
        ("a,b\n1,\n2,NA\n", {"keep_default_na": False}, [Row(a=1, b=""), Row(a=2, b="NA")]),
        ("a,b\n1,'x,y'\n", {"quotechar": "'"}, [Row(a=1, b="x,y")]),
        ('a,b\n1,"x\ny"\n', {"splittable": False}, [Row(a=1, b="x\ny")]),
        ('a,b\n1,"x"y\n2,x"y\n', {}, [Row(a=1, b="xy"), Row(a=2, b='x"y')]),
        ('a,b\n"x,y","1""2"\n', {}, [Row(a="x,y", b='1"2')]),
        ("a,b\n#no\n1,é\n", {"comment": "#"}, [Row(a=1, b="é")]),
        (
            'a,b # note\n1,2# note\n3,"4#"\n',
            {"comment": "#"},
            [Row(a=1, **{"b ": "2"}), Row(a=3, **{"b ": "4#"})],
        ),
        ('#no "\na,b\n1,"x\n#y" # "\n', {"comment": "#", "splittable": False}, [Row(a=1, b="x\n#y")]),
        (
            'a,b\r\n1,"x\r\ny"\r\n2,"\r\nz\n"\r\n',
            {"splittable": False},
            [Row(a=1, b="x\r\ny"), Row(a=2, b="\r\nz\n")],
        ),
    ],
)
def test_csv_arguments_mean_what_they_mean_in_pandas(
    tmp_path: Path, read: Any, text: str, arguments: dict[str, Any], expected: list[Row]
) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert read(ReadFromCsv(f"{tmp_path}/a.csv", **arguments)) == expected


@pytest.mark.parametrize("splittable", [True, False])
def test_compressed_files_have_comments(tmp_path: Path, read: Any, splittable: bool) -> None:
    text = b'#no\na,b\n1,"x#"\n2,y# note\n'
    (tmp_path / "1.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "2.csv.xz").write_bytes(lzma.compress(text))
    (tmp_path / "3.csv").write_bytes(text)
    rows = read(ReadFromCsv(f"{tmp_path}/*", comment="#", splittable=splittable))
    assert sorted(rows, key=str) == sorted([Row(a=1, b="x#"), Row(a=2, b="y")] * 3, key=str)


@pytest.mark.xfail(strict=True, reason="Spark's parser loses it: see docs/connectors/files.md")
@pytest.mark.parametrize("arguments", [{}, {"comment": "#"}, {"splittable": False}])
def test_u0000_in_quotes_at_the_end_of_a_record_stays(
    tmp_path: Path, read: Any, arguments: dict[str, Any]
) -> None:
    (tmp_path / "a.csv").write_text('a,b\n1,"x\0y\0"\n')
    assert read(ReadFromCsv(f"{tmp_path}/a.csv", **arguments)) == [Row(a=1, b="x\0y\0")]


@pytest.mark.usefixtures("small_splits")
def test_csv_headers_are_left_out_of_every_file_and_the_file_can_be_a_column(
    tmp_path: Path, read: Any
) -> None:
    expected = []
    for file in range(3):
        path = tmp_path / f"{file}.csv"
        path.write_text("a,b\n" + "".join(f"{line},{file}\n" for line in range(50)))
        expected += [Row(a=line, b=file, f=str(path)) for line in range(50)]
    rows = read(ReadFromCsv(f"{tmp_path}/*.csv", filename_column="f"))
    assert sorted(rows, key=lambda row: (row.b, row.a)) == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1", "has 1 field instead of 2"),
        ("1,2,3", "has 3 fields instead of 2"),
        ('1,"x', "leaves a quote open"),
    ],
)
@pytest.mark.parametrize("arguments", [{}, {"comment": "#"}])
def test_malformed_lines_of_csv_are_an_error_that_names_the_file_and_the_line(
    tmp_path: Path, spark: SparkSession, line: str, problem: str, arguments: dict[str, Any]
) -> None:
    (tmp_path / "good.csv").write_text("a,b\n1,x\n")
    (tmp_path / "zbad.csv").write_text(f"a,b\n1,x\n{line}\n2,y\n")
    with pytest.raises(ValueError, match=r"1 malformed line of CSV.*zbad\.csv") as caught:
        open_source(ReadFromCsv(f"{tmp_path}/*.csv", **arguments).source, spark, WHERE)
    assert WHERE in str(caught.value)
    assert f"where line 3 {problem}" in str(caught.value)


@pytest.mark.parametrize("arguments", [{"splittable": False}, {"encoding": "utf-16"}])
def test_a_quote_of_csv_that_is_never_closed_does_not_swallow_the_rest_of_the_file(
    tmp_path: Path, spark: SparkSession, arguments: dict[str, Any]
) -> None:
    for name, text in (("1.csv", 'a,b\n1,"x"\n'), ("2.csv", 'a,b\n1,"x\n2,y\n' + "3,secret\n" * 9)):
        (tmp_path / name).write_text(text, encoding=str(arguments.get("encoding", "utf-8")))
    with pytest.raises(ValueError, match="ends within quotes") as caught:
        open_source(ReadFromCsv(f"{tmp_path}/*", **arguments).source, spark, WHERE)
    assert str(caught.value).startswith(f"{tmp_path}/2.csv ends")
    assert WHERE in str(caught.value)


def test_csv_values_that_are_not_of_the_type_asked_for_are_an_error(
    tmp_path: Path, spark: SparkSession
) -> None:
    (tmp_path / "a.csv").write_text("a\n1\nx\n")
    with pytest.raises(ValueError, match=r"line 3 of .* cannot be read: the value of a is not of type int"):
        open_source(ReadFromCsv(f"{tmp_path}/a.csv", dtype=int).source, spark, WHERE)


def test_json_lines_are_rows_that_all_have_all_fields(tmp_path: Path, read: Any) -> None:
    (tmp_path / "1.json").write_text(
        '{"b": 1, "a": "x"}\n\n{"b": 123456789012345678901234567890, "a": {"n": [1.5]}}\r\n'
    )
    (tmp_path / "2.json").write_text('{"c": null, "a": true}')
    rows = read(ReadFromJson(f"{tmp_path}/*.json"))
    assert sorted(rows, key=lambda row: (row.b is None, row.b)) == [
        Row(b=1, a="x", c=None),
        Row(b=123456789012345678901234567890, a={"n": [1.5]}, c=None),
        Row(b=None, a=True, c=None),
    ]


def test_json_files_may_be_lists_of_objects(tmp_path: Path, read: Any) -> None:
    (tmp_path / "a.json").write_text('[{"a": 1},\n {"a": 2}]')
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'[{"a": 3}]'))
    (tmp_path / "c.json.xz").write_bytes(lzma.compress(b'{"b": 4}'))
    assert read(ReadFromJson(f"{tmp_path}/a.json", lines=False)) == [Row(a=1), Row(a=2)]
    rows = read(ReadFromJson(f"{tmp_path}/?.json.*", lines=False))
    assert sorted(rows, key=str) == [Row(a=3, b=None), Row(a=None, b=4)]
    (tmp_path / "c.json.xz").write_bytes(lzma.compress(b'{"b": 4}')[:-4])
    with pytest.raises(ValueError, match=r"c\.json\.xz cannot be read: the content is not whole lzma"):
        read(ReadFromJson(f"{tmp_path}/?.json.*", lines=False))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"secret": ', "not JSON"),
        ("[1]", "not a JSON object"),
        ("\udcff", "not utf-8"),
        (r'{"\ud800": 1}', "surrogate"),
    ],
)
def test_malformed_lines_of_json_are_an_error_that_names_the_file_and_not_the_data(
    tmp_path: Path, spark: SparkSession, text: str, problem: str
) -> None:
    (tmp_path / "good.json").write_text('{"a": 1}\n')
    (tmp_path / "zbad.json").write_bytes(b'{"a": 1}\n' + text.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(ValueError, match=rf"line 2 of .*zbad\.json cannot be read: .*{problem}") as caught:
        open_source(ReadFromJson(f"{tmp_path}/*.json").source, spark, WHERE)
    assert WHERE in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["latin1", "iso-8859-1", "utf8", "utf-16"])
def test_csv_in_an_encoding_by_any_of_the_names_that_python_has_for_it(
    tmp_path: Path, read: Any, encoding: str
) -> None:
    (tmp_path / "a.csv").write_text("name,age\nZoë,3\n", encoding=encoding)
    assert read(ReadFromCsv(str(tmp_path / "a.csv"), encoding=encoding)) == [Row(name="Zoë", age=3)]


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        ("a,b\n1,é\n".encode("latin-1"), {}),
        ("a,b\n1,é\n".encode("latin-1"), {"splittable": False}),
        ("é,b\n1,x\n".encode("latin-1"), {}),
        ("a,b\n1,é\n".encode("utf-16"), {}),
        ("a,b\n1,é\n".encode(), {"encoding": "ascii"}),
    ],
)
def test_csv_that_is_not_in_its_encoding_is_an_error_and_no_other_text(
    tmp_path: Path, spark: SparkSession, content: bytes, arguments: dict[str, Any]
) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.csv has text that is not (utf-8|ascii)"):
        open_source(ReadFromCsv(f"{tmp_path}/a.csv", **arguments).source, spark, WHERE)


def test_csv_may_have_the_character_that_stands_for_others_and_names_with_quotes_of_sql(
    tmp_path: Path, read: Any
) -> None:
    (tmp_path / "a.csv").write_text("a`b,c.d\n1,\ufffd\n")
    assert read(ReadFromCsv(f"{tmp_path}/a.csv")) == [Row(**{"a`b": 1, "c.d": "\ufffd"})]


def test_the_class_of_a_row_that_was_read_tells_the_fields_as_that_of_a_named_tuple_does(
    tmp_path: Path, read: Any
) -> None:
    # Beam's own tests and many programs of its users go from one to the other in this way.
    (tmp_path / "scores.csv").write_text("team,points\nred,3\n")
    (tmp_path / "scores.json").write_text('{"team": "red", "points": 3}\n')
    for transform in (ReadFromCsv(f"{tmp_path}/scores.csv"), ReadFromJson(f"{tmp_path}/scores.json")):
        [row] = read(transform)
        assert dict(zip(type(row)._fields, row, strict=True)) == {"team": "red", "points": 3}


def rows_of_spark(read: Any, mode: str) -> list[Any]:
    found: list[Any] = []
    with beam.Pipeline(mode=mode) as pipeline:
        _ = (
            pipeline
            | (read.as_stream(existing_only=True) if mode == "streaming" else read)
            | WriteToMemory(found)
        )
    return sorted(found, key=str)


SCHEMA = "a int, b string"


MALFORMED = {
    "too few": ("csv", "2", Row(a=2, b=None)),
    "too many": ("csv", "2,y,z", Row(a=2, b="y")),
    "another type": ("csv", "x,y", Row(a=None, b="y")),
    "another type of JSON": ("json", '{"a": "x", "b": "y"}', Row(a=None, b="y")),
    "cut short": ("json", '{"a": 2', Row(a=None, b=None)),
}
"""The format of a malformed record, the record, and what Spark makes of it where it may."""

IN_STREAMS = {"too many", "cut short"}
"""Of each format, the records that are always read by a stream as well: it reads files as a batch does."""


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(name, mode, marks=[] if mode == "batch" or name in IN_STREAMS else pytest.mark.soak)
        for name in MALFORMED
        for mode in ("batch", "streaming")
    ],
)
def test_spark_cuts_no_malformed_record_unless_it_is_told_to(name: str, mode: str, tmp_path: Path) -> None:
    format, malformed, cut = MALFORMED[name]
    first = "1,x" if format == "csv" else '{"a": 1, "b": "x"}'
    (tmp_path / f"1.{format}").write_text(f"{first}\n{malformed}\n")
    read = partial(ReadFromSpark, format, str(tmp_path))
    with pytest.raises(RunnerError, match="does not fit the columns"):
        rows_of_spark(read(schema=SCHEMA), mode)
    assert cut in rows_of_spark(read(schema=SCHEMA, mode="PERMISSIVE"), mode)
    kept = rows_of_spark(read(schema=f"{SCHEMA}, _corrupt_record string"), mode)
    assert sorted(row._corrupt_record for row in kept if row._corrupt_record) == [malformed]


def test_a_malformed_record_is_found_if_nobody_reads_its_fields(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("1,x\n2,y,z\n")
    pipeline = beam.Pipeline()
    rows = pipeline | ReadFromSpark("csv", str(tmp_path), SCHEMA)
    _ = rows | SqlTransform("SELECT COUNT(a) AS n FROM PCOLLECTION") | WriteToMemory([])
    with pytest.raises(RunnerError, match="does not fit the columns"):
        pipeline.run().wait_until_finish()
