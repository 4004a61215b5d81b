"""What Spark computes of a stream's query is what Python computes, whatever the settings of the program's session."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from decimal import Decimal
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.io import ReadFromParquet, WriteToParquet
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.sql import SqlTransform
from tests.runner.native_runs import ended, instants, pipeline_of

pytestmark = pytest.mark.spark

_DAY, _LOCAL = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 5)
_MINUTES = "FROM TUMBLE(TABLE scores, DESCRIPTOR(at), INTERVAL '1' MINUTE)"
_AT_END = "EMIT AFTER WATERMARK"


def scores(chance: Random, file: int) -> pa.Table:
    """Rows at random of half a minute, which arrive out of order within ten seconds."""
    rows = range(30)
    seconds = [file * 30 - 100 + chance.randrange(-10, 10) for _ in rows]
    prices = [Decimal("1.50"), Decimal("-0.25"), None]
    return pa.table(
        {
            "team": pa.array([chance.choice(["a", "b", None]) for _ in rows], pa.string()),
            "small": pa.array([chance.choice([-1, 7, None]) for _ in rows], pa.int8()),
            "yes": pa.array([chance.choice([True, False, None]) for _ in rows], pa.bool_()),
            "raw": pa.array([chance.choice([b"\x00\xff", None]) for _ in rows], pa.binary()),
            "number": pa.array([chance.choice([-3, 0, 5, None, 1 << 40]) for _ in rows], pa.int64()),
            "price": pa.array([chance.choice(prices) for _ in rows], pa.decimal128(10, 2)),
            "real": pa.array([chance.choice([0.0, -0.0, 1.5, None]) for _ in rows], pa.float64()),
            "day": pa.array([chance.choice([_DAY, None]) for _ in rows], pa.date32()),
            "local": pa.array([chance.choice([_LOCAL, None]) for _ in rows], pa.timestamp("us")),
            "at": instants(seconds),
        }
    )


QUERIES = {
    "tumble": f"""SELECT window_start, window_end, team, day, SUM(number) AS total, COUNT(*) AS n, COUNT(number) AS m,
        AVG(number) AS mean, MIN(number) AS least, MAX(team) AS last, BOOL_AND(yes) AS every, BOOL_OR(yes) AS some,
        SUM(price) AS paid, AVG(price) AS price, MIN(real) AS least_real, MAX(real) AS most_real,
        BIT_XOR(small) AS bits,
        COUNT(*) FILTER (WHERE number > 0) AS more, HOUR(MAX(at)) AS hour, DATE_TRUNC('day', MIN(at)) AS first_day,
        CAST(MAX(at) AS STRING) AS written
        {_MINUTES} WHERE number IS NULL OR number <> 5
        GROUP BY window_start, window_end, team, day HAVING COUNT(*) > 1 {_AT_END}""",
    "hop": f"""SELECT STREAM window_end, small, yes, raw, local, price, SUM(real) AS total, Sys.EmitTiming AS timing,
        Sys.EmitIndex AS number, Sys.Undo AS undo
        FROM HOP(TABLE scores, DESCRIPTOR(at), INTERVAL '20' SECONDS, INTERVAL '1' MINUTE)
        GROUP BY window_start, window_end, small, yes, raw, local, price {_AT_END}""",
}


@pytest.mark.parametrize("case", QUERIES)
def test_results_are_those_of_python(spark, tmp_path, case):
    chance = Random(5)
    (tmp_path / "in").mkdir()
    for number in range(4):
        path = tmp_path / "in" / f"{number:03}.parquet"
        pq.write_table(scores(chance, number), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    settings = {"spark.sql.session.timeZone": "Asia/Kolkata", "spark.sql.ansi.enabled": "false"}
    before = {name: spark.conf.get(name) for name in settings}
    found: list[Counter[str]] = []
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        for number, flags in enumerate(([], ["--without=native_streams"])):
            pipeline = pipeline_of("streaming", *flags)
            read = ReadFromParquet(f"{tmp_path}/in/*.parquet", as_rows=True)
            stream = read.as_stream("at", BoundedDisorder(20), max_files_per_batch=1, existing_only=True)
            rows = {"scores": pipeline | "Read" >> stream} | "Query" >> SqlTransform(QUERIES[case])
            _ = rows | WriteToParquet(f"{tmp_path}/{number}/out", file_name_suffix=".parquet")
            assert ("takes the columns unchanged" in pipeline.explain()) is not bool(flags)
            ended(pipeline)
            table = pq.read_table(f"{tmp_path}/{number}")
            found.append(Counter(map(repr, table.to_pylist())))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert found[0] == found[1]
    assert len(found[0]) > 8
