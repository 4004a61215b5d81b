"""Which queries in SQL over a stream of columns Spark computes, and why it does not compute others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as beam
from penstock.io import ReadFromParquet, WriteToParquet
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.sql import Catalog, SqlTransform
from penstock_spark.checkpoints.contract.compare import compare
from penstock_spark.checkpoints.contract.signature import signature_of
from penstock_spark.compiler import Target, compile_graph
from penstock_spark.formats.registry import table_of_schema
from penstock_spark.passes import native_streams
from penstock_spark.plan import query_columns
from penstock_spark.plan.column_plan import CombinedTexts
from penstock_spark.plan.stream_plan import StreamPlan, show_stream_plan
from penstock_spark.session.spark_versions import from_arrow_schema

SCORES = pa.schema(
    [
        ("team", pa.string()),
        ("points", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("real", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("other", pa.timestamp("us", "UTC")),
    ]
)
MINUTES = "FROM TUMBLE(TABLE scores, DESCRIPTOR(at), INTERVAL '1' MINUTE)"
AT_END = "GROUP BY window_start, window_end, team EMIT AFTER WATERMARK"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of scores."""
    folder = tmp_path_factory.mktemp("scores")
    pq.write_table(SCORES.empty_table(), folder / "scores.parquet")
    return folder


def plan_of(query: str, source: Path, *behind: Any, mode: str = "streaming", **more: Any) -> StreamPlan:
    """The plan of a query over a stream of scores, whose result a step takes."""
    catalog = Catalog()
    catalog.create_function("doubled", doubled)
    pipeline = beam.Pipeline()
    read = ReadFromParquet(f"{source}/*.parquet", as_rows=True)
    options = {"event_time": "at", "watermark": BoundedDisorder(60)} | more
    rows = {"scores": pipeline | "Read" >> read.as_stream(**options)} | "Q" >> SqlTransform(query, catalog)
    for transform in behind or (WriteToParquet(f"{source}/out/part"),):
        rows = rows | transform
    spark_schema = from_arrow_schema(SCORES)
    target = Target(
        mode, frozenset(), None, table_of=lambda step, source: table_of_schema(spark_schema, "row")
    )
    plan = compile_graph(pipeline.to_graph(), target).plan
    assert isinstance(plan, StreamPlan)
    return plan


def doubled(number: int) -> int:
    return 2 * number


GROUPED = {
    "tumbling windows": f"SELECT window_end, team, SUM(points) AS total {MINUTES} {AT_END}",
    "the call repeated": """SELECT WINDOW_END(TUMBLE(at, INTERVAL '1' MINUTE)) AS e, COUNT(*) AS n FROM scores
        GROUP BY TUMBLE(at, INTERVAL '1' MINUTE) EMIT AFTER WATERMARK""",
    "sliding windows": f"""SELECT window_end, MIN(at) AS first
        FROM HOP(TABLE scores, DESCRIPTOR(at), INTERVAL '20' SECONDS, INTERVAL '1' MINUTE) {AT_END}""",
    "conditions before and behind": f"""SELECT team, AVG(points) AS mean {MINUTES} WHERE points > 3 AND team IS NOT NULL
        GROUP BY window_start, window_end, team HAVING COUNT(*) > 1 EMIT AFTER WATERMARK""",
    "a stream that shows system columns": f"""SELECT STREAM window_end, MAX(team) AS last, Sys.Undo, Sys.EmitTiming,
        Sys.EmitIndex {MINUTES} {AT_END}""",
    "decimals": f"SELECT team, SUM(price) AS total, AVG(price) AS mean {MINUTES} {AT_END}",
    "rows that differ": f"SELECT DISTINCT window_end, team {MINUTES} EMIT AFTER WATERMARK",
    "the end of the window by name": f"""SELECT window_end, team, COUNT(points) AS n {MINUTES}
        GROUP BY window_start, window_end, team EMIT WHEN WATERMARK PAST window_end""",
}


@pytest.mark.parametrize("case", GROUPED)
def test_spark_computes_a_grouping_whole(case, source):
    plan = plan_of(GROUPED[case], source)
    assert plan.columns is not None
    assert isinstance(plan.columns.grouping, CombinedTexts)
    assert plan.columns.is_written
    assert not plan.levels
    assert "Q/Group = CombinePerKey" in show_stream_plan(plan)


def test_spark_computes_a_query_without_a_grouping_if_a_sink_takes_the_columns(source):
    plan = plan_of("SELECT team, points + 1 AS more FROM scores WHERE points > 3", source)
    assert plan.columns is not None
    assert plan.columns.is_written
    assert plan.columns.groupings == ()


def test_python_reads_what_it_has_to_see_behind_a_grouping(source):
    plan = plan_of(f"SELECT DOUBLED(SUM(points)) AS total {MINUTES} {AT_END}", source)
    assert plan.columns is not None
    assert plan.columns.grouping is not None
    assert "doubled is a function of the user" in show_stream_plan(plan).lower()


def test_a_query_over_the_result_of_another_is_computed_too(source):
    first = f"SELECT window_end, team, SUM(points) AS total {MINUTES} {AT_END}"
    second = SqlTransform("SELECT team AS name, total * 2 AS twice FROM PCOLLECTION WHERE total > 3")
    plan = plan_of(first, source, second, WriteToParquet(f"{source}/out/part"))
    assert plan.columns is not None
    assert plan.columns.is_written


STREAM = f"SELECT STREAM window_end, team, SUM(points) AS total {MINUTES}"
NOT_GROUPED: dict[str, tuple[str, dict[str, Any], str]] = {
    "each change": (
        f"{STREAM} GROUP BY window_start, window_end, team",
        {},
        "the trigger Repeatedly(AfterArrival()) may fire before the end",
    ),
    "early results": (
        f"{STREAM} GROUP BY window_start, window_end, team EMIT AFTER DELAY INTERVAL '5' SECONDS AND AFTER WATERMARK",
        {},
        "windows may emit several panes",
    ),
    "late results": (f"{STREAM} {AT_END} AND THEN AFTER 0 SECONDS", {}, "windows may emit several panes"),
    "rounds": (
        f"{STREAM} {AT_END}",
        {"mode": "micro_batch"},
        "a pane of a round has only what the round has added",
    ),
    "another time than the source's": (
        f"SELECT STREAM team, COUNT(*) AS n FROM TUMBLE(TABLE scores, DESCRIPTOR(other), INTERVAL '1' MINUTE) {AT_END}",
        {},
        "elements get the time other, and the watermark follows others",
    ),
    "sessions": (
        """SELECT STREAM team, COUNT(*) AS n
        FROM SESSION(TABLE scores PARTITION BY team, DESCRIPTOR(at), INTERVAL '1' MINUTE)
        GROUP BY window_start, window_end, team EMIT AFTER WATERMARK""",
        {},
        "makes windows that are not FixedWindows or SlidingWindows",
    ),
    "DISTINCT": (
        f"SELECT STREAM team, COUNT(DISTINCT points) AS n {MINUTES} {AT_END}",
        {},
        "Spark has no DISTINCT of aggregates in a stream",
    ),
    "what Spark computes with other last digits": (
        f"SELECT STREAM team, STDDEV(points) AS n {MINUTES} {AT_END}",
        {},
        "the result is the exact one, rounded",
    ),
    "a key of floats": (
        f"SELECT STREAM real, COUNT(*) AS n {MINUTES} GROUP BY window_start, window_end, real EMIT AFTER WATERMARK",
        {},
        "a key has the type double",
    ),
    "a struct": (
        f"SELECT STREAM team, MAX(struct(team, points)) AS most {MINUTES} {AT_END}",
        {},
        "values of STRUCT",
    ),
    "a function of the user before it": (
        f"SELECT STREAM team, SUM(DOUBLED(points)) AS n {MINUTES} {AT_END}",
        {},
        "is a function of the user",
    ),
}


@pytest.mark.parametrize("case", NOT_GROUPED)
def test_python_computes_it_and_says_why(case, source):
    query, more, reason = NOT_GROUPED[case]
    plan = plan_of(query, source, **more)
    assert plan.columns is None
    assert reason in show_stream_plan(plan)
    assert "in Python: columns end before it" in show_stream_plan(plan)


def test_python_computes_a_grouping_of_rows_that_are_retracted(source):
    first = "SELECT at, team, COUNT(*) AS total FROM scores GROUP BY at, team"
    changes = SqlTransform(
        f"SELECT STREAM window_end, SUM(total) AS n {MINUTES.replace('scores', 'PCOLLECTION')} "
        "GROUP BY window_start, window_end EMIT AFTER WATERMARK"
    )
    plan = plan_of(first, source, changes, WriteToParquet(f"{source}/out/part"))
    assert plan.columns is None
    assert len(plan.groupings) > 1


def _signature(query: str, source: Path) -> dict[str, Any]:
    return signature_of(plan_of(query, source), 2, "none")


@pytest.mark.parametrize(
    ("query", "refusals"),
    [
        pytest.param(f"SELECT team, SUM(points) AS total {MINUTES} {AT_END}", [], id="fewer columns"),
        pytest.param(
            f"SELECT window_end, team, SUM(points + 1) AS total {MINUTES} WHERE real > 0 AND points < 9 {AT_END}",
            [],
            id="other rows",
        ),
        pytest.param(
            f"SELECT window_end, team, MAX(points) AS total {MINUTES} {AT_END}",
            ["'Q/Group' has another CombineFn"],
            id="another aggregate",
        ),
        pytest.param(
            f"SELECT window_end, team, SUM(real) AS total {MINUTES} {AT_END}",
            ["'Q/Group' has another CombineFn"],
            id="another type",
        ),
        pytest.param(
            f"SELECT window_end, SUM(points) AS total {MINUTES} GROUP BY window_start, window_end EMIT AFTER WATERMARK",
            ["'Q/Group' has keys of different types"],
            id="another key",
        ),
    ],
)
def test_a_checkpoint_takes_what_leaves_the_state_as_it_is(query, refusals, source):
    old = _signature(f"SELECT window_end, team, SUM(points) AS total {MINUTES} {AT_END}", source)
    found = compare(old, _signature(query, source)).refusals
    assert [each[: len(start)] for each, start in zip(found, refusals, strict=True)] == refusals


def test_a_pass_that_does_not_ask_for_early_results_is_found(monkeypatch, source):
    monkeypatch.setattr(native_streams, "_check_panes", lambda windowing, mode: None)
    with pytest.raises(AssertionError):
        test_python_computes_it_and_says_why("early results", source)


def test_a_pass_that_takes_any_key_is_found(monkeypatch, source):
    monkeypatch.setattr(query_columns, "_KEYS", (object,))
    with pytest.raises(AssertionError):
        test_python_computes_it_and_says_why("a key of floats", source)
