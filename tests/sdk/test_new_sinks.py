"""Sinks of the program itself, as they are written down: the console, a function, a list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import penstock as beam
from penstock import graph
from penstock.io import ForEachBatch, WriteToConsole, WriteToMemory
from penstock.io.console import ConsoleSink
from penstock.io.each_batch import EachBatchSink
from penstock.relations.changelog import Changelog
from penstock.transforms.trigger import AccumulationMode
from penstock.transforms.window import FixedWindows, GlobalWindow, IntervalWindow
from penstock.utils.windowed_value import ValueKind

RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING


def scores(mode: AccumulationMode = AccumulationMode.DISCARDING) -> Any:
    made = beam.Pipeline() | beam.Create([("blue", 3)])
    return made | beam.WindowInto(FixedWindows(60), accumulation_mode=mode) | beam.CombinePerKey(sum)


def steps_below(pcoll: Any, transform: Any) -> tuple[Any, dict[str, graph.Step]]:
    """What a transform gives, and its steps by label."""
    written = pcoll | "Out" >> transform
    steps = pcoll.pipeline.to_graph().steps
    return written, {step.label: step for step in steps if step.label.startswith("Out")}


def line_of(steps: dict[str, graph.Step], *arguments: Any) -> str:
    """The text that the step before the console makes of an element."""
    primitive = steps["Out/Lines"].primitive
    assert isinstance(primitive, graph.ParDo)
    extra = [each for each in primitive.args if callable(each)]
    [line] = primitive.dofn.process(arguments[0], *extra, *arguments[1:])
    return str(line)


def test_elements_are_printed_as_they_are() -> None:
    written, steps = steps_below(scores(), WriteToConsole("score: ", limit=20))
    assert list(steps) == ["Out/Lines", "Out/Print"]
    assert isinstance(steps["Out/Print"].primitive, graph.Write)
    assert steps["Out/Print"].primitive.sink == ConsoleSink(20)
    assert line_of(steps, ("blue", 3)) == "score: ('blue', 3)"
    assert isinstance(written, beam.pvalue.PCollection)


@pytest.mark.parametrize(
    ("mode", "has_changes"), [(RETRACTING, True), (AccumulationMode.ACCUMULATING, False)]
)
def test_lines_have_signs_where_elements_may_take_back_earlier_ones(
    mode: AccumulationMode, has_changes: bool
) -> None:
    _, steps = steps_below(scores(mode), WriteToConsole())
    assert ("Out/Changes/ParDo(_PairWithKind)" in steps) is has_changes
    if has_changes:
        lines = [line_of(steps, (kind, ("blue", 3))) for kind in ValueKind]
        assert lines == [f"{sign} ('blue', 3)" for sign in "+-+-"]
    else:
        assert line_of(steps, ("blue", 3)) == "('blue', 3)"


def test_changes_that_the_user_has_made_data_of_are_data() -> None:
    _, steps = steps_below(scores(RETRACTING) | Changelog(), WriteToConsole())
    assert list(steps) == ["Out/Lines", "Out/Print"]
    assert line_of(steps, (ValueKind.DELETE, 3)) == str((ValueKind.DELETE, 3))


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (IntervalWindow(0, 90.5), "[1970-01-01T00:00:00Z, 1970-01-01T00:01:30.500000Z)"),
        (GlobalWindow(), "GlobalWindow"),
    ],
)
def test_windows_are_shown_if_asked_for(window: Any, text: str) -> None:
    _, steps = steps_below(scores(), WriteToConsole("> ", windows=True))
    assert line_of(steps, ("blue", 3), window) == f"> ('blue', 3) in {text}"
    _, steps = steps_below(scores(RETRACTING), WriteToConsole(windows=True))
    assert line_of(steps, (ValueKind.UPDATE_BEFORE, 3), window) == f"- 3 in {text}"


def test_a_function_and_a_list_are_sinks_of_their_own() -> None:
    def store(elements: list[Any], batch_id: int) -> None: ...

    _, steps = steps_below(scores(), ForEachBatch(store))
    [primitive] = [step.primitive for step in steps.values()]
    assert isinstance(primitive, graph.Write)
    assert isinstance(primitive.sink, EachBatchSink)
    assert primitive.sink.function is store
    assert graph.describe(primitive) == "Write(each batch: store)"
    found: list[Any] = []
    _, steps = steps_below(scores(), WriteToMemory(found))
    [primitive] = [step.primitive for step in steps.values()]
    assert isinstance(primitive, graph.Write)
    assert isinstance(primitive.sink, graph.DriverList)
    assert primitive.sink.into is found


def test_a_function_may_be_anything_that_takes_two_arguments() -> None:
    class Store:
        def __call__(self, elements: list[Any], batch_id: int) -> None: ...

        def write(self, elements: list[Any], batch_id: int) -> None: ...

    def into_table(table: str, elements: list[Any], batch_id: int) -> None: ...

    for function in (Store(), Store().write, partial(into_table, "scores"), print, max, lambda *both: None):
        assert ForEachBatch(function).sink.function is function


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: WriteToConsole(3), TypeError, "prefix must be a string, but is 3"),
        (lambda: WriteToConsole(limit="20"), TypeError, "limit must be an integer, but is '20'"),
        (lambda: WriteToConsole(limit=True), TypeError, "limit must be an integer"),
        (lambda: WriteToConsole(limit=0), ValueError, "limit must be 1 or more, but is 0"),
        (lambda: ForEachBatch("print"), TypeError, "ForEachBatch needs a function, but got 'print'"),
        (lambda: ForEachBatch(None), TypeError, "ForEachBatch needs a function"),
        (
            lambda: ForEachBatch(lambda elements: None),
            TypeError,
            "cannot be called with two arguments: too many",
        ),
        (
            lambda: ForEachBatch(lambda a, b, c: None),
            TypeError,
            "cannot be called with two arguments: missing",
        ),
        (lambda: WriteToMemory(()), TypeError, "WriteToMemory needs a list, but got a tuple"),
        (lambda: WriteToMemory(None), TypeError, "WriteToMemory needs a list, but got None"),
    ],
)
def test_what_is_no_sink_is_refused(build: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        build()
    assert "  at test_new_sinks.py:" in str(caught.value)
    assert "  hint: " in str(caught.value)


@pytest.mark.parametrize("make", [WriteToConsole, lambda: ForEachBatch(print), lambda: WriteToMemory([])])
def test_a_sink_is_applied_to_a_collection(make: Callable[[], Any]) -> None:
    with pytest.raises(beam.error.TransformError, match="Expecting a PCollection"):
        _ = beam.Pipeline() | make()
