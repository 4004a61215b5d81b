"""The elements of steps and composites: the counts of an edge, folded, and per second."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import penstock as beam
from penstock.metrics.execution import ELEMENTS, take_out
from penstock.pvalue import AsList
from penstock_spark.live.batch_snapshots import Totals
from penstock_spark.live.elements import (
    Counts,
    Flow,
    StepElements,
    add_counts,
    choose_counts_for_rate,
    composites_of,
    elements_of,
    flows_of,
)
from penstock_spark.live.notebook import run_html
from penstock_spark.live.prometheus import metrics_text
from penstock_spark.live.snapshot import RunSnapshot
from penstock_spark.live.stream_snapshots import RunFacts, StreamFacts, stream_snapshot, with_elements
from penstock_spark.reports.metrics import GroupingReport, Watermarks, take_snapshots
from penstock_spark.session.classic.accumulators import SnapshotParam
from tests.live.sample import BEGAN, FLOWS, PER_SECOND, SECOND, SUM, TOTAL, batch, stream

ABOUT = RunFacts(
    "a", "r", "streaming", 0, flows=FLOWS, composites=composites_of(FLOWS), counted=frozenset(range(9)) - {3}
)


def by_label(elements: tuple[StepElements, ...]) -> dict[str, StepElements]:
    return {one.label: one for one in elements}


def look(seen: StreamFacts, seconds: float, state: str = "RUNNING") -> RunSnapshot:
    return stream_snapshot(ABOUT, seen, state, Watermarks({}, 0), {}, round(seconds * SECOND))


def test_a_step_has_taken_what_its_inputs_carried_and_given_what_its_outputs_did_by_tag() -> None:
    counts = Counts(0, {0: 10, 1: 7, 2: 3, 4: 7})
    parse, enrich = (
        by_label(elements_of(FLOWS, counts, Counts(0, {})))[label] for label in ("Parse", "Enrich")
    )
    assert (parse.elements_in, parse.elements_out, parse.tagged) == (10, 10, {"rejected": 3})
    # A side input is not among the elements that a step takes.
    assert (enrich.elements_in, enrich.elements_out, enrich.tagged) == (7, 7, {})


def test_what_nobody_counts_is_unknown_and_what_nothing_has_passed_is_zero() -> None:
    counts = Counts(0, {0: 0, 1: 0})
    found = by_label(elements_of(FLOWS, counts, Counts(0, {})))
    assert found["Read/Kafka"] == StepElements("Read/Kafka", None, 0)
    # One of the outputs of `Parse` is not counted, so what they give together is unknown.
    assert (found["Parse"].elements_in, found["Parse"].elements_out) == (0, None)
    assert (found["Enrich"].elements_in, found["Enrich"].elements_out) == (0, None)
    assert found.keys() == {"Read/Kafka", "Parse", "Enrich"}


def test_an_edge_that_a_step_reads_twice_counts_twice_and_enters_a_composite_once() -> None:
    flows = (Flow("Read", (), ((None, 0),)), Flow("All/Twice", (0, 0), ((None, 1),)), Flow("Write", (1,)))
    counts = Counts(0, {0: 5, 1: 10})
    assert by_label(elements_of(flows, counts, counts))["All/Twice"].elements_in == 10
    [whole] = elements_of(composites_of(flows), counts, counts)
    assert (whole.label, whole.elements_in, whole.elements_out) == ("All", 5, 10)


def test_a_composite_has_what_enters_and_leaves_it_at_each_depth() -> None:
    flows = {flow.label: flow for flow in composites_of(FLOWS)}
    scores = flows["Scores"]
    assert (scores.inputs, scores.outputs) == ((5, 7), ((None, 6), (None, 8)))
    assert flows["Scores/ByTeam"].inputs == (5,)
    assert flows.keys() == {"Read", "Scores", "Scores/ByTeam", "Scores/All"}


def test_what_only_the_steps_of_a_composite_read_does_not_leave_it_and_a_side_input_does() -> None:
    pipeline = beam.Pipeline()
    words = pipeline | "Read" >> beam.Create(["a"])
    counts = words | "Count" >> beam.combiners.Count.PerElement()
    _ = words | "Join" >> beam.FlatMap(lambda word, seen: [word], seen=AsList(counts)) | beam.Map(print)
    graph = pipeline.to_graph()
    makers = {output.edge: step.label for step in graph.steps for output in step.outputs}
    [count] = [flow for flow in composites_of(flows_of(graph)) if flow.label == "Count"]
    assert [makers[edge] for edge in count.inputs] == ["Read"]
    [last] = [makers[edge] for _, edge in count.outputs]
    assert last.startswith("Count/")
    assert last == [step.label for step in graph.steps if step.label.startswith("Count/")][-1]


def test_a_step_with_the_label_of_a_composite_is_a_part_of_it() -> None:
    flows = (Flow("A/B", (), ((None, 0),)), Flow("A", (0,), ((None, 1),)), Flow("C", (1,)))
    assert composites_of(flows) == (Flow("A", (), ((None, 1),)),)


def test_folding_keeps_what_flows_between_the_rest_and_a_composite() -> None:
    chance = random.Random(5)
    for _ in range(200):
        flows: list[Flow] = []
        for number in range(12):
            before = [edge for edge in range(number) if chance.random() < 0.3]
            label = "/".join(chance.choice("abc") for _ in range(chance.randrange(3))) + f"/{number}"
            flows.append(Flow(label.strip("/"), tuple(before), ((None, number),)))
        readers = {edge: [flow.label for flow in flows if edge in flow.inputs] for edge in range(12)}
        makers = {edge: flow.label for flow in flows for _, edge in flow.outputs}
        for whole in composites_of(flows):
            within = {label for label in makers.values() if label.startswith(f"{whole.label}/")}
            entering = {e for e in range(12) if makers[e] not in within and within.intersection(readers[e])}
            leaving = {e for e in range(12) if makers[e] in within and not within.issuperset(readers[e])}
            assert set(whole.inputs) == entering
            assert {edge for _, edge in whole.outputs} == leaving


def test_a_rate_is_of_the_last_ten_seconds_and_at_the_end_of_the_whole_run() -> None:
    seen = StreamFacts()
    for second in range(1, 61):
        seen = with_elements(seen, {"0": 100 if second > 30 else 1}, second * SECOND, ABOUT)
    read = look(seen, 60).elements[0]
    assert (read.elements_out, read.out_per_second) == (3_030, 100.0)
    assert look(seen, 60, "DONE").elements[0].out_per_second == 3_030 / 60


def test_long_micro_batches_have_a_rate_between_their_ends_and_a_pause_lowers_it() -> None:
    seen = StreamFacts()
    for second in (20, 40, 60):
        seen = with_elements(seen, {"0": 2_000}, second * SECOND, ABOUT)
        assert look(seen, second).elements[0].out_per_second == 100.0
    rates = [look(seen, second).elements[0].out_per_second for second in (60, 70, 79, 90, 120, 600)]
    assert rates[:3] == [100.0] * 3
    assert rates == sorted(rates, reverse=True)  # type: ignore[type-var]
    assert 0 < rates[-1] < 5 < rates[3] < 100  # type: ignore[operator]


def test_the_moments_that_are_kept_for_rates_are_few_whatever_comes() -> None:
    chance, marks, micros = random.Random(1), (Counts(0, {}),), 0
    for _ in range(5_000):
        micros += round(chance.choice((0.01, 0.5, 3, 40)) * SECOND * chance.random())
        marks = add_counts(marks, Counts(micros, {}))
        assert len(marks) <= 13
        assert list(marks) == sorted(marks, key=lambda mark: mark.at_micros)
        now, since = choose_counts_for_rate(marks, micros)
        assert now.at_micros - since.at_micros >= min(marks[-1].at_micros - marks[0].at_micros, 10 * SECOND)


def test_a_run_without_a_view_has_no_elements() -> None:
    unwatched = replace(ABOUT, flows=(), composites=())
    seen = with_elements(StreamFacts(), {}, SECOND, unwatched)
    now = stream_snapshot(unwatched, seen, "RUNNING", Watermarks({}, 0), {}, SECOND)
    assert (now.elements, now.composites, seen.elements) == ((), (), ())
    assert "penstock_elements" not in metrics_text(now)


def counted(**edges: int) -> dict[Any, Any]:
    return {("elements", edge.strip("_"), "penstock", "elements"): count for edge, count in edges.items()}


def test_a_task_that_runs_twice_counts_once_in_a_batch() -> None:
    totals = Totals([0, 1])
    held = {("r", 0, 0): counted(_0=5, _1=2), ("r", 0, 1): counted(_0=1, _1=0)}
    assert totals.see(held) == {0: 6, 1: 2}
    # Another look at the same; then a second attempt has replaced what the first one sent.
    assert totals.see(held) == {0: 6, 1: 2}
    held["r", 0, 0] = counted(_0=5, _1=3)
    assert totals.see(held) == {0: 6, 1: 3}
    # At the end of the run, the accumulator has none of them any more.
    assert totals.see({}) == {0: 6, 1: 3}


def test_a_task_of_a_stream_that_is_tried_again_counts_once_and_only_when_its_micro_batch_has_ended() -> None:
    accumulator: Any = SimpleNamespace(value={})

    def tell(batch: int, producer: int, count: int) -> None:
        SnapshotParam().addInPlace(
            accumulator.value, {("r", 0, (batch, producer)): counted(_0=count, _1=count)}
        )

    def fold(seen: StreamFacts, batch: int) -> StreamFacts:
        taken = take_out(take_snapshots(accumulator, "r", batch), ELEMENTS)[1]
        return with_elements(seen, taken, (batch + 1) * SECOND, ABOUT)

    tell(0, 1, 5)
    # The machine was slow, so Spark has started the task once more; the next micro-batch has begun.
    tell(0, 1, 5)
    tell(0, 2, 2)
    tell(1, 1, 100)
    seen = fold(StreamFacts(), 0)
    assert look(seen, 1).elements[0].elements_out == 7
    seen = fold(seen, 1)
    assert look(seen, 2).elements[0].elements_out == 107


def test_open_windows_add_up_over_shards_and_one_that_does_not_know_makes_them_unknown() -> None:
    def windows(*of_shards: int | None) -> int | None:
        shards = {
            (1, number): {"Sum": GroupingReport(5, 5, windows=count)}
            for number, count in enumerate(of_shards)
        }
        about = RunFacts("a", "r", "streaming", 0, levels={"Sum": 1})
        [grouping] = stream_snapshot(about, StreamFacts(), "RUNNING", Watermarks(shards, 9), {}, 10).groupings
        return grouping.open_windows

    assert windows(3, 4) == 7
    assert windows(3, None) is None
    assert windows(None, 3) is None
    assert windows() is None


def test_json_has_the_elements_of_steps_and_composites() -> None:
    now = stream(60)
    found = json.loads(now.to_json())
    parse = next(one for one in found["elements"] if one["label"] == "Parse")
    assert parse == {
        "label": "Parse",
        "elements_in": 60 * PER_SECOND["0"],
        "elements_out": 60 * (PER_SECOND["1"] + PER_SECOND["2"]),
        "tagged": {"rejected": 60 * PER_SECOND["2"]},
        "in_per_second": 412.0,
        "out_per_second": 412.0,
    }
    assert [one["label"] for one in found["composites"]] == ["Read", "Scores", "Scores/ByTeam", "Scores/All"]
    assert now.began_micros == BEGAN


def test_prometheus_gets_elements_by_step_and_tag_and_each_once() -> None:
    text = metrics_text(stream(60))
    lines = [line for line in text.splitlines() if "elements_out_total{" in line]
    numbers = {line.partition("{")[2].rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines}
    assert len(numbers) == len(lines)
    run = 'run="4f1c09a2b7de"'
    assert numbers[f'{run},step="Parse",tag=""}}'] == str(60 * PER_SECOND["1"])
    assert numbers[f'{run},step="Parse",tag="rejected"}}'] == str(60 * PER_SECOND["2"])
    assert f'penstock_elements_in_total{{{run},step="{SUM}"}} {60 * PER_SECOND["5"]}' in text
    assert f'penstock_open_windows{{{run},grouping="{SUM}"}} 13' in text
    assert 'step="Scores"' not in text


def test_a_notebook_has_a_table_of_elements() -> None:
    shown = run_html(batch(), {})
    assert "<caption>Elements</caption>" in shown
    assert "<tr><td>Words</td><td>12.4 M</td><td>96.1 M</td><td>165.0 k</td><td>1.3 M</td></tr>" in shown
    assert "<td>13</td>" in run_html(stream(60), {})


@pytest.fixture
def console() -> io.StringIO:
    pytest.importorskip("rich", reason="the tree in the terminal needs the package rich")
    return io.StringIO()


def test_the_tree_has_the_elements_of_composites_of_steps_at_the_top_and_of_groupings(
    console: io.StringIO,
) -> None:
    from rich.console import Console

    from penstock_spark.live.tree import draw_tree

    Console(file=console, width=120).print(draw_tree(stream(60)))
    lines = console.getvalue().splitlines()

    def line(word: str) -> str:
        [found] = [each for each in lines if each.lstrip("├└│─ ").startswith(f"{word}  ")]
        return found

    assert "24.7 k in · 24.7 k out" in line("Parse")
    assert "24.9 k in · 600 out" in line("Scores")
    assert "48.2 k rows" in line("Kafka")
    assert "24.7 k elements" in line("Kafka")
    assert any("6 open keys, 13 open windows" in each for each in lines)
    assert any("24.4 k in · 540 out" in each for each in lines)
    assert TOTAL.rpartition("/")[2] in console.getvalue()


def test_the_tree_of_a_batch_has_its_steps(console: io.StringIO) -> None:
    from rich.console import Console

    from penstock_spark.live.tree import draw_tree

    Console(file=console, width=120).print(draw_tree(batch()))
    assert "Words  12.4 M in · 96.1 M out · 165.0 k a second" in console.getvalue()
    assert "Top  0 in · 0 out" in console.getvalue()
