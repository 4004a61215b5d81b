"""Plays scenarios, on the machines of the model or on Spark, and reports each result as it comes."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from penstock.construction.pipeline import Pipeline
from penstock.error import RunnerError
from penstock.transforms.elements.create import Create
from penstock_conformance import bare, pipelines
from penstock_conformance.outcomes import Outcome, Status, status_of
from penstock_conformance.scenario import Scenario

ENGINES = ("spark", "bare")
"""Spark, with pipelines; or only the machines of the model, without an engine."""


def outcomes_of(
    scenarios: Sequence[Scenario],
    modes: Sequence[str],
    engine: str,
    tell: Callable[[str], None] = lambda line: None,
    **arguments: object,
) -> Iterator[Outcome]:
    """The result of each scenario in each of its modes.

    The function `tell` receives a line from time to time. The other arguments are those of `Pipeline`, for Spark,
    such as ``master="local[2]"``. With ``record_events``, outcomes have recordings.
    """
    if engine == "spark":
        start(**arguments)
    for mode in modes:
        here = [scenario for scenario in scenarios if mode in scenario.modes]
        yield from (
            play_on_spark(here, mode, tell, **arguments) if engine == "spark" else play_on_machine(here, mode)
        )


def play_on_machine(scenarios: Sequence[Scenario], mode: str) -> Iterator[Outcome]:
    """The result of each scenario on the machines of the model."""
    for scenario in scenarios:
        began = time.perf_counter()
        try:
            run = bare.run(scenario, mode)
        except Exception:
            # The failure of one transcript does not stop the others.
            run = bare.Run(f"{scenario.place}: {scenario.title} ({mode})\n{traceback.format_exc()}")
        seconds = time.perf_counter() - began
        status = status_of(scenario, mode, run.report)
        yield Outcome(scenario, mode, status, run.report or "", seconds, run)


def start(**arguments: Any) -> None:
    """Runs a pipeline of one element, so that problems of Spark do not look like problems of a scenario."""
    try:
        pipeline = Pipeline(mode="batch", **arguments)
        _ = pipeline | Create([None])
        pipeline.run().wait_until_finish()
    except RunnerError:
        raise
    except Exception as error:
        what = f"Spark cannot run a pipeline of one element: {_first_line(error)}"
        raise RunnerError(what, where="", hint="read Spark's output above, and check --master") from error


def play_on_spark(
    scenarios: Sequence[Scenario],
    mode: str,
    tell: Callable[[str], None] = lambda line: None,
    **arguments: Any,
) -> Iterator[Outcome]:
    """The result of each scenario as a part of a pipeline; results of one pipeline come together."""
    left = {scenario.place: scenario for scenario in scenarios}
    began = time.perf_counter()
    try:
        for scenario, wrong, recording in pipelines.run_scenarios(scenarios, mode, tell=tell, **arguments):
            del left[scenario.place]
            seconds, began = time.perf_counter() - began, time.perf_counter()
            status = status_of(scenario, mode, wrong)
            yield Outcome(scenario, mode, status, wrong or "", seconds, recording=recording)
    except Exception as error:
        # A broken run says nothing about its scenarios and the later ones: they have not passed.
        details = traceback.format_exc()
        for scenario in [one for one in left.values() if not _why_not_played(one, mode)]:
            del left[scenario.place]
            text = f"{scenario.place}: {scenario.title} ({mode})\n  the run broke: {_first_line(error)}"
            yield Outcome(scenario, mode, Status.FAILED, f"{text}\n{details}".rstrip())
            details = ""
    for scenario in left.values():
        if reason := _why_not_played(scenario, mode):
            yield Outcome(scenario, mode, Status.NOT_PLAYED, reason)
        else:
            text = f"{scenario.place}: {scenario.title} ({mode})\n  it was not played, and nothing says why"
            yield Outcome(scenario, mode, Status.FAILED, text)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _why_not_played(scenario: Scenario, mode: str) -> str | None:
    """Why a pipeline does not play a scenario; None if it should."""
    if scenario.unmet is not None:
        return "it tests the harness that plays the bare machine"
    if not any(step.events for step in scenario.steps(mode)):
        return "it is refused before anything happens"
    return None
