"""The queries of Nexmark: pipelines on a toy engine, in batch and on streams, against the plain readings."""

from __future__ import annotations

import doctest
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import WriteToMemory
from penstock.transforms.sql import Catalog, SqlTransform
from tests.benchmarks.benchmark_programs import Load, numbers_of

QUERIES = ("q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q11", "q12", "q19")
EVENTS, PER_SECOND = 3_000, 100
"""So few in a second that there are several windows."""

CLOCK_MICROS = 1_700_000_000 * 10**6
SECONDS = 10**6


def made(load: Load, count: int = EVENTS) -> list[Any]:
    """Made-up events, and among them some where it matters where exactly something begins or ends."""
    generator, model = load("nexmark.generator"), load("nexmark.model")
    events: list[Any] = list(generator.events(count, PER_SECOND))

    def bid(auction: int, bidder: int, price: int, millis: int) -> Any:
        return model.Bid(generator.FIRST_MILLIS + millis, auction, bidder, price, "", "", "")

    def auction(number: int, opens: int, expires: int) -> Any:
        start = generator.FIRST_MILLIS
        return model.Auction(start + opens, number, "", "", 1, 1, start + expires, 1, 99, "")

    void = [bid(1, 5, 95, 4_999), bid(1, 4, 90, 6_001)]
    bids = [bid(1, 1, 50, 5_000), bid(1, 3, 70, 6_000), bid(1, 2, 70, 6_000), bid(3, 8, 60, 7_000)]
    apart = [bid(2, 6, 1, 1_000), bid(2, 7, 1, 1_000), bid(2, 7, 1, 10_999), bid(2, 6, 1, 11_000)]
    # The first bids come before their auctions do.
    after = {bids[0]: auction(1, 5_000, 6_000), bids[3]: auction(3, 7_000, 8_000)}
    for event in (*void, *bids, *apart):
        events.insert((event.time - generator.FIRST_MILLIS) * PER_SECOND // 1_000 + 12, event)
    for first, its_auction in after.items():
        events.insert(events.index(first) + 50, its_auction)
    return events


EXACTLY = {
    "q4": [(99, 10_000, 65), (99, 15_000, 65)],
    "q6": [(1, 1, 70), (1, 2, 65)],
    "q9": [(1, 1, 99, 6_000, 2, 70, 6_000), (3, 1, 99, 8_000, 8, 60, 7_000)],
    "q11": [(6, 1, 1_000, 11_000), (6, 1, 11_000, 21_000), (7, 2, 1_000, 20_999)],
}
"""What has to be among the answers because of those; times count from the first event."""


@pytest.mark.parametrize("query", EXACTLY)
def test_the_plain_readings_are_right_where_something_begins_or_ends(load: Load, query: str) -> None:
    start = load("nexmark.generator").FIRST_MILLIS

    def since_start(value: int) -> int:
        return value - start if value >= start else value

    rows = [tuple(map(since_start, row)) for row in load("nexmark.readings").READINGS[query](made(load))]
    about = {row[0] for row in EXACTLY[query]}
    assert sorted(row for row in rows if row[0] in about) == EXACTLY[query]


def read(load: Load, query: str, events: list[Any]) -> list[str]:
    """What the plain reading answers; there is something to answer."""
    queries = load("nexmark.queries")
    rows: list[str] = queries.QUERIES[query].answer(
        map(queries.as_line, load("nexmark.readings").READINGS[query](events))
    )
    assert len(rows) > 1
    return rows


def answered(load: Load, query: str, events: Any) -> Any:
    rows = load("nexmark.pipelines").PIPELINES[query](events)
    return rows | "Line" >> beam.Map(load("nexmark.queries").as_line)


def answered_in_sql(load: Load, query: str, events: Any) -> Any:
    jobs = load("nexmark.sql_jobs")
    return (jobs.batch_lines if events.is_bounded else jobs.stream_lines)(events, query)


EITHER = pytest.mark.parametrize(
    ("answered", "count"), [(answered, 2_000), (answered_in_sql, 2_000)], ids=["python", "sql"]
)
Answered = Callable[[Load, str, Any], Any]


@EITHER
@pytest.mark.parametrize("query", QUERIES)
def test_a_batch_answers_what_the_plain_reading_does(
    load: Load, query: str, answered: Answered, count: int
) -> None:
    from tests.runner.plain_runner import collect, run_plain

    pipelines, asked = load("nexmark.pipelines"), load("nexmark.queries").QUERIES[query]
    events = made(load, count)
    lines = [load("nexmark.model").to_line(event) for event in events]
    pipeline = beam.Pipeline()
    parsed = pipelines.parsed(pipeline | beam.Create(lines), asked.has_times)
    found = collect(answered(load, query, parsed))
    run_plain(pipeline)
    assert asked.answer(found) == read(load, query, events)


@EITHER
@pytest.mark.parametrize("query", QUERIES)
def test_a_stream_answers_what_the_plain_reading_does(
    load: Load, query: str, answered: Answered, count: int, tmp_path: Path
) -> None:
    from tests.shards.toy_query import ToyQuery

    pipelines, inputs = load("nexmark.pipelines"), load("nexmark.inputs")
    events = made(load, count)
    files = inputs.stream_lines(events, 4)
    pipeline = beam.Pipeline()
    # The toy query reads the lines that it is given.
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "part-0.txt").touch()
    rows = answered(load, query, pipelines.read_stream(pipeline, str(tmp_path)))
    _ = rows | "Write" >> WriteToMemory([])
    toy = ToyQuery(pipeline)
    [source], [sink] = [part.roots[0].label for part in toy.plan.readings], toy.plan.sinks
    found: list[str] = []
    for number, lines in enumerate(files):
        clock_micros = CLOCK_MICROS + number * 7 * SECONDS
        found += toy.batch({source: [lines[::2], lines[1::2]]}, clock_micros)[sink.label]
    found += toy.batch({}, CLOCK_MICROS + 60 * SECONDS)[sink.label]
    assert toy.counted("elements_dropped_as_late") == 0
    assert load("nexmark.queries").QUERIES[query].answer(found) == read(load, query, events)


def test_spark_alone_computes_all_queries_over_parquet_but_sessions(load: Load, tmp_path: Path) -> None:
    source = load("nexmark.inputs").batch_files(tmp_path, 100)
    for query in QUERIES:
        transform = load("nexmark.sql_jobs").over_parquet(beam.Pipeline(), query, str(source), "out")
        assert transform.explained.endswith("computed by: Spark alone") == (query != "q11")


@pytest.mark.spark
@pytest.mark.parametrize("query", ["q6", "q11"])
def test_penstock_and_spark_answer_in_sql_alike(
    load: Load, spark: SparkSession, tmp_path: Path, query: str
) -> None:
    jobs, answers = load("nexmark.jobs"), load("nexmark.answers")
    source = load("nexmark.inputs").batch_files(tmp_path, 1_000)
    for contender in ("native_sql", "penstock_sql_parquet"):
        target = tmp_path / contender
        jobs.JOBS[contender]["batch"](spark, query, str(source), str(target))
        assert answers.check(source, query, target) > 1


AS_FIRST_WRITTEN = {
    "q6": (
        """SELECT seller, AVG(price) OVER (
            PARTITION BY seller ORDER BY expires ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS mean
        FROM winning""",
        "Over(",
    ),
}
"""What Nexmark's own SQL has in other words than ours, and what the plan of that has."""


@pytest.mark.parametrize("query", AS_FIRST_WRITTEN)
def test_the_language_has_the_suites_own_words(load: Load, query: str) -> None:
    text, planned = AS_FIRST_WRITTEN[query]
    catalog = Catalog()
    for name, view in load("nexmark.sql").views(load("nexmark.sql").BATCH).items():
        catalog.create_view(name, view)
    pipeline = beam.Pipeline(mode="streaming")
    tables = {
        name: pipeline | name >> beam.Create([]).with_output_types(kind)
        for name, kind in load("nexmark.model").KINDS.items()
    }
    query = SqlTransform(text, catalog)
    _ = tables | query
    assert planned in query.explained


def test_a_row_that_is_undone_must_have_been_there(load: Load) -> None:
    with pytest.raises(AssertionError, match="1 rows are undone"):
        load("nexmark.queries").left_of(["7\t1", "7\t2\tundo"])


def test_events_are_the_same_every_time_in_their_proportion_and_a_little_out_of_order(load: Load) -> None:
    generator, model = load("nexmark.generator"), load("nexmark.model")
    events = list(generator.events(EVENTS, PER_SECOND))
    assert events[:100] == list(generator.events(100, PER_SECOND))
    lines = map(model.to_line, events)
    assert [model.time_of(line) for line in lines] == [event.time for event in events]
    kinds = Counter(type(event) for event in events)
    assert kinds == {model.Person: 60, model.Auction: 180, model.Bid: 2_760}
    newest, behind = 0, 0
    for event in events:
        newest = max(newest, event.time)
        behind = max(behind, newest - event.time)
    assert 0 < behind <= generator.DISORDER_MILLIS


def test_winning_bids_are_not_simply_the_highest(load: Load) -> None:
    events, model = made(load), load("nexmark.model")
    highest: dict[int, int] = {}
    for event in events:
        if isinstance(event, model.Bid):
            highest[event.auction] = max(highest.get(event.auction, 0), event.price)
    won = {row[0]: row[5] for row in load("nexmark.readings").q9(events)}
    assert any(price < highest[auction] for auction, price in won.items())
    assert len(won) < len(highest)


def test_a_wrong_missing_or_second_row_is_found(load: Load, tmp_path: Path) -> None:
    answers = load("nexmark.answers")
    source = load("nexmark.inputs").batch_files(tmp_path, 500)
    right = answers.expected(source, "q1")
    written = tmp_path / "written"
    written.mkdir()
    part = written / "part-0"
    end = load("nexmark.model").END
    part.write_text("".join(f"{row}\n" for row in [*reversed(right), f"{end}\t1\t1\t1"]))
    assert answers.check(source, "q1", written) == len(right) > 1
    for wrong in (right[1:], [*right, right[0]], [f"{right[0]}1", *right[1:]]):
        part.write_text("".join(f"{row}\n" for row in wrong))
        with pytest.raises(AssertionError, match="rows are missing"):
            answers.check(source, "q1", written)


def test_parquet_has_the_events_of_the_lines(load: Load, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    model = load("nexmark.model")
    source = load("nexmark.inputs").batch_files(tmp_path, 500)
    parsed = [model.parse(line) for line in load("nexmark.answers").lines_in(source / "lines")]
    assert parsed == list(load("nexmark.generator").events(500))
    for name, kind in model.KINDS.items():
        rows = [kind(**row) for row in pq.read_table(source / name).to_pylist()]
        assert rows == [event for event in parsed if isinstance(event, kind)]


@pytest.mark.parametrize("module", ["model", "queries", "report"])
def test_the_examples_in_the_queries_are_right(load: Load, module: str) -> None:
    done = doctest.testmod(load(f"nexmark.{module}"))
    assert done.attempted > 0
    assert done.failed == 0


def test_only_full_runs_of_everybody_are_kept(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    # The program changes the path; this is as it was afterwards.
    monkeypatch.setattr(sys, "path", list(sys.path))
    run = load("nexmark.run")
    for given in ([], ["--runs=1"], ["--mode", "batch"], ["--sql"]):
        assert run.is_full(run.arguments(given))
    for given in (
        ["--events=9"],
        ["--queries", "q1"],
        ["--files=2"],
        ["--contenders", "penstock"],
        ["--sql", "--files=2"],
    ):
        assert not run.is_full(run.arguments(given))


@dataclass(frozen=True)
class Knowing:
    """A contender that takes its answers from the plain readings, or, if it is asked to, leaves one row out."""

    load: Load
    forgets: bool = False

    def run(self, mode: str, query: str, source: str, target: str) -> Any:
        rows = self.load("nexmark.answers").expected(Path(source), query)[self.forgets :]
        Path(target).mkdir()
        (Path(target) / "part-0").write_text("".join(f"{row}\n" for row in rows))
        return self.load("processes").Answer({}, 2.0, 4.0, 100.0)


def test_each_contender_has_its_turns_and_its_numbers_are_kept(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    run = load("nexmark.run")
    results = tmp_path / "numbers.json"
    options = ["--events=500", "--runs=2", "--queries", "q1", "q6", f"--folder={tmp_path}"]
    options += [f"--results={results}", "--mode=streaming"]
    workers = {"penstock": Knowing(load), "native_python": Knowing(load)}
    monkeypatch.setattr(run, "running_workers", lambda *_: nullcontext(workers))
    run.main(options)
    numbers = json.loads(results.read_text())
    assert numbers["geometric_means"] == {"penstock": {"speed_by_wall": 1, "speed_by_cpu": 1}}
    contenders = {query: found["contenders"] for query, found in numbers["queries"].items()}
    # Spark's own streams have no answer to the second.
    assert {query: list(found) for query, found in contenders.items()} == {
        "q1": ["penstock", "native_python"],
        "q6": ["penstock"],
    }
    assert len(contenders["q1"]["penstock"]["runs"]) == 2
    assert "geometric mean" in capsys.readouterr().out
    workers["native_python"] = Knowing(load, forgets=True)
    with pytest.raises(AssertionError, match="1 rows are missing and 0 are wrong"):
        run.main(options)


@pytest.mark.spark
@pytest.mark.skipif(
    not os.environ.get("PENSTOCK_BENCHMARKS"),
    reason="starts several Sparks: set PENSTOCK_BENCHMARKS=1 to see that all answer the queries alike",
)
@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize("in_sql", [False, True])
def test_one_command_has_all_contenders_answer_all_queries_alike(
    mode: str, in_sql: bool, tmp_path: Path
) -> None:
    options = ["--mode", mode, "--events=2000", "--files=2", "--runs=1", *(["--sql"] if in_sql else [])]
    numbers, printed = numbers_of("nexmark/run.py", tmp_path, *options)
    assert "geometric mean" in printed
    assert tuple(numbers["queries"]) == QUERIES
    for query, found in numbers["queries"].items():
        wanted = {"penstock", "native_python", "native_parquet"}
        if in_sql:
            wanted = {"penstock", "penstock_sql"}
            wanted |= {"native_sql", "penstock_sql_parquet"} if mode == "batch" else set()
        elif mode == "streaming":
            wanted = {"penstock"} if query == "q6" else {"penstock", "native_python"}
        assert set(found["contenders"]) == wanted
