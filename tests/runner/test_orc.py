"""ORC files without Spark: what is damaged or has no place in them, and that values come back unchanged."""

from __future__ import annotations

import datetime
import decimal
import errno
import io
import random
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from penstock.error import UnsupportedByRunner
from penstock.io.files.shards import Shards
from penstock.io.orcio import OrcSink, OrcSource, WriteToOrc
from penstock_spark.formats.orc.records import OrcRecords
from penstock_spark.formats.orc.scan import records_of_file, type_of_orc
from penstock_spark.formats.orc.writer import orc_files
from penstock_spark.formats.registry import plan_sink, window_files
from penstock_spark.sources.partition_values import partition_values

WHERE = "at step 'Write' (game.py:41)"
NUMBERS = pa.schema([("n", pa.int64()), ("text", pa.string())])


def written(path: Path, schema: pa.Schema, *batches: list[Any], **arguments: Any) -> Path:
    """Writes a file as a task does."""
    shard = orc_files(WriteToOrc(str(path), schema, **arguments).sink, WHERE).open_shard(str(path))
    for batch in batches:
        shard.write(batch)
    shard.close()
    return path


def back(path: Path, columns: tuple[str, ...] | None = None) -> list[Any]:
    with path.open("rb") as file:
        return list(records_of_file(file, str(path), columns))


def test_what_is_not_orc_or_is_cut_off_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    rows = [{"n": number, "text": f"text {number}"} for number in range(3000)]
    data = written(tmp_path / "whole", NUMBERS, rows, codec="zlib").read_bytes()
    hidden = bytearray(data)
    hidden[3 : len(data) // 2] = bytes(len(data) // 2 - 3)
    cases = {
        "text": b"no ORC",
        "empty": b"",
        "magic": b"ORC",
        "cut": data[:-5],
        "half": data[: len(data) // 2],
        "zeros": data[:-40] + bytes(40),
        "content": bytes(hidden),
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=rf"/{name} is not an ORC file, or it is damaged") as caught:
            back(tmp_path / name)
        assert "hint: " in str(caught.value)
        assert "text 7" not in str(caught.value)


class Lost(io.BytesIO):
    """A file whose connection is lost."""

    is_lost = False

    def read(self, size: int | None = -1) -> bytes:
        if self.is_lost:
            raise ConnectionResetError(errno.ECONNRESET, "the connection is lost")
        return super().read(size)


def test_a_file_that_cannot_be_read_is_not_taken_for_a_damaged_one(tmp_path: Path) -> None:
    written(tmp_path / "file", NUMBERS, [{"n": number, "text": "x"} for number in range(500_000)])
    file = Lost((tmp_path / "file").read_bytes())
    records = OrcRecords(None, partition_values((), None, WHERE), WHERE)
    opened = records.open(file, "file")
    file.is_lost = True
    with pytest.raises(ConnectionResetError, match="the connection is lost"):
        list(records.stripe(opened, 0))
    with pytest.raises(ConnectionResetError, match="the connection is lost"):
        records.open(file, "file")


def test_a_file_without_records_has_its_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "none", NUMBERS)
    assert back(path) == []
    assert orc.ORCFile(path).schema.names == ["n", "text"]
    assert "n=" in str(type_of_orc(OrcSource(str(path), as_rows=True), None, WHERE))


VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    "small": (pa.int8(), st.integers(-128, 127)),
    "real": (pa.float64(), st.floats(allow_nan=False)),
    "text": (pa.string(), st.text()),
    "raw": (pa.binary(), st.binary()),
    "truth": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates()),
    "local": (
        pa.timestamp("us"),
        st.datetimes(datetime.datetime(1678, 1, 1), datetime.datetime(2262, 1, 1)),
    ),
    "instant": (
        pa.timestamp("us", "Europe/Berlin"),
        st.datetimes(
            datetime.datetime(1678, 1, 1),
            datetime.datetime(2262, 1, 1),
            timezones=st.just(datetime.UTC),
        ),
    ),
    "price": (pa.decimal128(38, 3), st.decimals(-(10**30), 10**30, places=3)),
    "list": (
        pa.list_(pa.timestamp("us")),
        st.lists(st.none() | st.just(datetime.datetime(1969, 12, 31, 23, 59, 59, 1))),
    ),
    "record": (
        pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
        st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "y": st.lists(st.text())}),
    ),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(st.text(), st.integers(0, 9)).map(lambda pairs: list(pairs.items())),
    ),
}
RECORDS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()}), max_size=20
)


@given(RECORDS, RECORDS, st.sampled_from(["none", "zlib", "snappy", "lz4", "zstd"]))
def test_every_value_comes_back(
    tmp_path_factory: pytest.TempPathFactory, first: list[Any], second: list[Any], codec: str
) -> None:
    schema = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
    path = written(tmp_path_factory.mktemp("orc") / "file", schema, first, second, codec=codec)
    assert back(path) == [*first, *second]


def test_stripes_are_of_the_wanted_size_and_compressed(tmp_path: Path) -> None:
    chance = random.Random(7)
    rows = [{"n": number, "text": chance.randbytes(40).hex()} for number in range(50_000)]
    batches = [rows[start : start + 1000] for start in range(0, len(rows), 1000)]
    path = written(tmp_path / "file", NUMBERS, *batches, stripe_size=1 << 18, codec="zstd")
    opened = orc.ORCFile(path)
    assert opened.nstripes > 5
    assert opened.compression == "ZSTD"
    assert back(path) == rows


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (pa.uint8(), "uint8"),
        (pa.time64("us"), r"time64\[us\]"),
        (pa.duration("us"), r"duration\[us\]"),
        (pa.list_(pa.null()), "list<item: null>"),
        (pa.decimal256(40, 2), r"decimal256\(40, 2\)"),
    ],
)
def test_a_type_that_orc_lacks_is_refused_when_it_is_planned(kind: pa.DataType, shown: str) -> None:
    sink = OrcSink(Shards("/out/o"), pa.schema([("ok", pa.int64()), ("odd", kind)]))
    with pytest.raises(ValueError, match=rf"ORC has no type for the column odd of type {shown}") as caught:
        plan_sink(sink, WHERE)
    assert WHERE in str(caught.value)
    assert "hint: " in str(caught.value)


def test_paths_that_only_hadoop_reaches_are_refused_when_they_are_planned() -> None:
    for plan in (plan_sink, window_files):
        with pytest.raises(UnsupportedByRunner, match="cannot be written to hdfs://lake/o") as caught:
            plan(OrcSink(Shards("hdfs://lake/o"), NUMBERS), WHERE)
        assert WHERE in str(caught.value)
    with pytest.raises(TypeError, match=r"must be a pyarrow.Schema, but is a dict"):
        plan_sink(OrcSink(Shards("/o"), {"type": "record"}), WHERE)


@pytest.mark.parametrize("wrong", [{"n": "x"}, {"n": 1 << 70}, {"n": 1.5}, "text", None])
def test_an_element_that_does_not_fit_is_refused_without_being_shown(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError) as caught:
        written(tmp_path / "file", NUMBERS, [{"n": 1, "text": "secret"}, wrong])
    assert WHERE in str(caught.value)
    assert "secret" not in str(caught.value)


def test_times_that_pyarrow_could_not_read_are_refused_and_told(tmp_path: Path) -> None:
    schema = pa.schema([("at", pa.timestamp("us")), ("n", pa.int64())])
    with pytest.raises(ValueError, match="a time is before the year 1678 or after 2261") as caught:
        written(tmp_path / "ours", schema, [{"at": datetime.datetime(1500, 1, 1)}])
    assert WHERE in str(caught.value)
    orc.write_table(pa.table({"at": [datetime.datetime(1500, 1, 1)], "n": [1]}), tmp_path / "theirs")
    with pytest.raises(ValueError, match="theirs has times before the year 1678"):
        back(tmp_path / "theirs")
    assert back(tmp_path / "theirs", ("n",)) == [{"n": 1}]


def test_wanted_columns_are_read_in_order_and_missing_ones_are_none(tmp_path: Path) -> None:
    orc.write_table(pa.table({"a.b": [1], "a": [{"b": 2, "c": 3}], "z": ["x"]}), tmp_path / "dots")
    assert back(tmp_path / "dots", ("z", "a.b")) == [{"z": "x", "a.b": 1}]
    assert back(tmp_path / "dots", ("a", "gone")) == [{"a": {"b": 2, "c": 3}, "gone": None}]
    orc.write_table(pa.table({"n": [1, 2], "team": ["in the file"] * 2}), tmp_path / "f")
    values = partition_values(["team"], None, WHERE)
    for columns, expected in [
        (None, [{"n": 1, "team": "a"}, {"n": 2, "team": "a"}]),
        (("team",), [{"team": "a"}, {"team": "a"}]),
        (("gone",), [{"gone": None}] * 2),
    ]:
        records = OrcRecords(columns, values, WHERE)
        found = records.all_of(io.BytesIO((tmp_path / "f").read_bytes()), "/out/team=a/f")
        assert [row for batch in found for row in batch.to_pylist()] == expected


class Inner(NamedTuple):
    x: int


class Everything(NamedTuple):
    number: int
    price: decimal.Decimal
    at: datetime.datetime
    inner: Inner | None
    table: dict[str, float]


def test_the_type_of_rows_gives_the_schema(tmp_path: Path) -> None:
    at = datetime.datetime(2026, 5, 1, 1, 2, 3, 4, datetime.UTC)
    row = Everything(-5, decimal.Decimal("1.500000000000000001"), at, Inner(2), {"a": 0.5})
    shard = orc_files(OrcSink(Shards("/o"), element_type=Everything), WHERE).open_shard(
        str(tmp_path / "file")
    )
    shard.write([row])
    shard.close()
    assert back(tmp_path / "file") == [{**row._asdict(), "inner": {"x": 2}, "table": [("a", 0.5)]}]
