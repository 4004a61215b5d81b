"""A failing step shows the lines of its function, hints at names that are meant, and says each thing once."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from tests.runner.plain_runner import run_plain


class Score(NamedTuple):
    team: str
    score: int


def parse(line: str) -> int:
    return int(line)


def parse_or_say_so(line: str) -> int:
    try:
        return parse(line)
    except ValueError as error:
        raise LookupError("no number") from error


class Ratio(beam.CombineFn):
    def create_accumulator(self) -> int:
        return 0

    def add_input(self, accumulator: int, element: int) -> int:
        return accumulator + element

    def merge_accumulators(self, accumulators: Any) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> float:
        return accumulator / 0


class Split(beam.DoFn):
    def process(self, line: str) -> Any:
        return len(line)


PROGRAMS: dict[str, tuple[Callable[[Any], object], list[str], str]] = {
    "a function": (
        lambda p: p | beam.Create(["x"]) | "A" >> beam.Map(parse),
        ["parse"],
        "hint: set show_elements_in_errors to see the element",
    ),
    "a sum of values that do not add up": (
        lambda p: p | beam.Create([("a", 1), ("a", "x")]) | "A" >> beam.CombinePerKey(sum),
        [],
        "and full_trace to see the lines of penstock that called the function",
    ),
    "a maximum of values in sessions": (
        lambda p: (
            p
            | beam.Create([("a", 1), ("a", "x")])
            | beam.WindowInto(beam.window.Sessions(9))
            | "A" >> beam.CombinePerKey(max)
        ),
        [],
        "and full_trace to see the lines of penstock that called the function",
    ),
    "a function of Python": (
        lambda p: p | beam.Create(["x"]) | "A" >> beam.Map(int),
        [],
        "and full_trace to see the lines of penstock that called the function",
    ),
    "an error that another one has led to": (
        lambda p: p | beam.Create(["x"]) | "A" >> beam.Map(parse_or_say_so),
        ["parse_or_say_so"],
        "LookupError: no number [while running 'A'",
    ),
    "a field": (
        lambda p: p | beam.Create([Score("red", 3)]) | "A" >> beam.Map(lambda each: each.taem),
        ["<lambda>"],
        "hint: did you mean 'team'?",
    ),
    "a key": (
        lambda p: p | beam.Create([(1, {"team": "red"})]) | "A" >> beam.Map(lambda each: each[1]["taem"]),
        ["<lambda>"],
        "hint: did you mean 'team'?",
    ),
    "a variable": (
        lambda p: p | beam.Create(["x"]) | "A" >> beam.Map(lambda each: pars(each)),  # type: ignore[name-defined]  # noqa: F821
        ["<lambda>"],
        "hint: did you mean 'parse'?",
    ),
    "a wrong result": (
        lambda p: p | beam.Create(["x"]) | "A" >> beam.ParDo(Split()),
        [],
        "hint: yield the element, return [element], or use Map",
    ),
    "a combiner": (
        lambda p: p | beam.Create([("a", 1), ("a", 2)]) | "A" >> beam.CombinePerKey(Ratio()),
        ["extract_output"],
        "ZeroDivisionError: division by zero [while running 'A'",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_failing_step_shows_the_lines_of_its_function(name: str) -> None:
    build, functions, said = PROGRAMS[name]
    pipeline = beam.Pipeline()
    build(pipeline)
    with pytest.raises(StepFailure) as raised:
        run_plain(pipeline)
    failure = find_failure(str(raised.value))
    assert failure is not None
    error = to_exception(failure)
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)] == functions
    text = "".join(traceback.format_exception(error))
    assert said in text
    assert text.count("[while running 'A'") + text.count("at step 'A'") == 1
    assert "penstock_spark/" not in text
    if name == "an error that another one has led to":
        assert error.__cause__ is not None
        assert traceback.extract_tb(error.__cause__.__traceback__)[-1].name == "parse"
    else:
        assert error.__cause__ is None
        assert text.count("Traceback") == (1 if functions else 0)
