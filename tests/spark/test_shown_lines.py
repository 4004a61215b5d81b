"""What a failing run shows: the lines of the program, of its driver and of its workers, and no others; once."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import penstock as beam
from penstock import tracebacks
from penstock.transforms.periodicsequence import PeriodicImpulse
from tests.runner.test_lines_of_steps import PROGRAMS, parse

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def failure_of(build: Callable[[Any], object], **options: Any) -> BaseException:
    with (
        pytest.raises(
            (ValueError, ArithmeticError, LookupError, TypeError, NameError, AttributeError)
        ) as caught,
        beam.Pipeline(**options) as pipeline,
    ):
        build(pipeline)
    return caught.value


def names_of(error: BaseException) -> list[str]:
    """The functions of the lines that are shown, without the two of this file."""
    shown = traceback.extract_tb(error.__traceback__)
    assert shown[0].name == "failure_of"
    return [frame.name for frame in shown[1:]]


@pytest.mark.parametrize("name", ["a function", "a combiner", "an error that another one has led to"])
def test_a_failing_step_shows_the_lines_of_its_function(name: str) -> None:
    build, functions, said = PROGRAMS[name]
    error = failure_of(build)
    assert names_of(error) == functions
    text = "".join(traceback.format_exception(error))
    assert said in text
    assert text.count("[while running 'A'") + text.count("at step 'A'") == 1
    assert "penstock_spark/" not in text
    assert "pyspark/" not in text
    if name == "an error that another one has led to":
        assert [frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)][-1] == "parse"  # type: ignore[union-attr]
    else:
        assert text.count("Traceback") == 1


def test_all_lines_of_driver_and_worker_are_shown_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "_asked", False)
    text = "".join(traceback.format_exception(failure_of(PROGRAMS["a function"][0], full_trace=True)))
    for each in (
        "penstock/construction/pipeline.py",
        "penstock_spark/runs/execute.py",
        "penstock_spark/worker/steps.py",
    ):
        assert each in text
    assert text.index("worker/steps.py") < text.index("in parse")


def test_a_stream_that_someone_waits_for_says_once_what_made_it_fail(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        error = failure_of(
            lambda p: p | PeriodicImpulse(fire_interval=1) | "A" >> beam.Map(half), mode="streaming"
        )
    assert names_of(error) == ["half"]
    assert not [record for record in caplog.records if "half" in record.getMessage() or record.levelno >= 40]
    printed = capfd.readouterr()
    assert "ZeroDivisionError" not in printed.out + printed.err


def half(number: Any) -> float:
    return 1 / 0


def test_a_dead_letter_has_the_lines_of_the_function_alone(capfd: pytest.CaptureFixture[str]) -> None:
    pipeline = beam.Pipeline()
    _, bad = pipeline | beam.Create(["x"]) | beam.Map(parse).with_exception_handling()
    ((_, (kind, _, lines)),) = bad.collect()
    assert kind is ValueError
    text = "".join(lines)
    assert [line.rpartition(" in ")[2] for line in text.splitlines() if line.startswith("  File")] == [
        "parse"
    ]
    assert text.startswith("Traceback (most recent call last):\n")
