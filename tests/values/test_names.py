"""Columns are chosen by their names, whatever is in these, and a name never stands for another column."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import penstock as beam
from penstock_spark.formats.orc.scan import records_of_file as orc_records
from penstock_spark.formats.parquet.scan import records_of_file as parquet_records

NAMES = ("plain", "a.b", "a b", "Capital", "select", "`", "é", "0")
"""Names of columns that are likely to go wrong."""

OTHERS = {"a": pa.array([{"b": "of a record", "c": 1}]), "b": pa.array(["another"]), "n": pa.array([1])}
"""Columns that a wrong reading of a name would find."""

UNLIKE = {"capital": pa.array(["small"]), "PLAIN": pa.array(["large"])}
"""Columns that Spark takes for others."""

WANTED = {name: f"the column {name}" for name in NAMES}


def table(**more: Any) -> pa.Table:
    return pa.table({**OTHERS, **{name: [value] for name, value in WANTED.items()}, **more})


@pytest.mark.parametrize("more", [{}, UNLIKE], ids=["", "and others in capital letters"])
@pytest.mark.parametrize(
    ("write", "records"),
    [
        (pq.write_table, lambda file, columns: parquet_records(file, "f", columns, False)),
        (orc.write_table, lambda file, columns: orc_records(file, "f", columns)),
    ],
    ids=["Parquet", "ORC"],
)
def test_each_column_can_be_chosen(write: Callable[..., Any], records: Any, more: dict[str, Any]) -> None:
    content = io.BytesIO()
    write(table(**more), content)
    for name, value in WANTED.items():
        assert list(records(io.BytesIO(content.getvalue()), (name,))) == [{name: value}]
    assert list(records(io.BytesIO(content.getvalue()), NAMES)) == [WANTED]


def test_a_name_with_a_dot_is_a_field_of_a_record_if_no_column_has_it() -> None:
    content = io.BytesIO()
    pq.write_table(pa.table({"a": [{"b": {"c.d": 1, "e": 2}}], "a.b.e": [3]}), content)
    assert list(parquet_records(content, "f", ("a.b.c.d",), False)) == [{"a": {"b": {"c.d": 1}}}]
    assert list(parquet_records(content, "f", ("a.b.e",), False)) == [{"a.b.e": 3}]
    with pytest.raises(ValueError, match=r"the files have no columns a\.x"):
        list(parquet_records(content, "f", ("a.x",), False))


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_each_column_can_be_chosen_in_a_pipeline(mode: str, spark: Any, tmp_path: Path) -> None:
    for folder, more in (("like", {}), ("unlike", UNLIKE)):
        (tmp_path / folder).mkdir()
        pq.write_table(table(**more), tmp_path / folder / "1.parquet")
        orc.write_table(table(**more), tmp_path / folder / "1.orc")
    found: dict[str, list[Any]] = {}
    expected: dict[str, list[Any]] = {}
    pipeline = beam.Pipeline(spark=spark, mode=mode)

    def keep(way: str, read: Any, wanted: Any = WANTED) -> None:
        found[way], expected[way] = [], [wanted]
        source = read.as_stream(existing_only=True) if mode == "streaming" else read
        _ = pipeline | way >> source | f"Keep {way}" >> beam.io.WriteToMemory(found[way])

    for folder in ("like", "unlike"):
        for scheme in ("", "file://"):
            path = f"{scheme}{tmp_path}/{folder}/*"
            keep(f"Parquet {path}", beam.io.ReadFromParquet(f"{path}.parquet", columns=NAMES))
            keep(f"ORC {path}", beam.io.ReadFromOrc(f"{path}.orc", columns=NAMES))
        only = beam.io.ReadFromParquet(f"{tmp_path}/{folder}/*.parquet", columns=["a.b"])
        keep(f"Dot {folder}", only, {"a.b": WANTED["a.b"]})
    whole = beam.io.ReadFromParquet(f"{tmp_path}/unlike/*.parquet")
    keep("Whole", whole, table(**UNLIKE).to_pylist()[0])
    pipeline.run().wait_until_finish()
    assert found == expected
