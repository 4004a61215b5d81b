"""Judges whether the output of an engine for a scenario is right, as far as a pipeline can show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from penstock.machines import records
from penstock.machines.reference_engine import ReferenceEngine
from penstock_conformance.branches import played_of
from penstock_conformance.comparing import PANE_INFO, find_differences, format_played, hold_text
from penstock_conformance.programs import program_of
from penstock_conformance.scenario import Expected, ExpectedDrop, ExpectedPane, Scenario, Step

DROPPED = {
    records.DropReason.EXPIRED: "elements_dropped_as_late",
    records.DropReason.FINISHED: "elements_dropped_after_last_pane",
}
"""The counters of dropped elements, by reason."""


class RoundOutput(NamedTuple):
    """The events and the output of an engine since the micro-batch before."""

    complete: int  # The number of the scenario's steps that are complete now.
    seen: Sequence[Any]  # The output of a `penstock_conformance.branches.Branch`.
    clock_micros: int | None = None  # Processing time; None if it is not compared.
    watermarks: tuple[int, int] | None = None  # Of the grouping's input and output; None if they are unknown.


def add_end_of_input(scenario: Scenario, mode: str, end_clock_micros: int = 0) -> tuple[Step, ...]:
    """The steps of a scenario, and the end of the input, which every pipeline reaches.

    If the scenario does not say what comes out then, the bare machine does; `end_clock_micros` is the time of the end.

    >>> from penstock_conformance.parsing import parse
    >>> text = '''
    ... = A
    ... source:  us
    ... windows: FixedWindows(10)
    ...
    ... element 5 at 3
    ... '''
    >>> [len(step.expected) for step in add_end_of_input(parse({"a": text})[0], "streaming")]
    [0, 1]
    """
    steps = scenario.steps(mode)
    if steps[-1].ends_input:
        return steps
    player = ReferenceEngine(program_of(scenario).machine(), mode)
    for step in steps:
        for event in step.events:
            player.play(event)
    last: tuple[records.Event, ...] = (records.EndMicroBatch(), records.AdvanceClock(end_clock_micros))
    played = [*(one for event in last for one in player.play(event)), *player.finish()]
    text, expected = "what the bare machine emits at the end", tuple(map(_expected_of, played))
    return (*steps, Step(text, steps[-1].place, ends_input=True, expected=expected))


def _expected_of(played: records.EventOutput) -> Expected:
    """An expectation of exactly one output."""
    text, emitted = format_played(played).removeprefix("-> "), played.emitted
    if not isinstance(emitted, records.Pane):
        [window] = emitted.element.windows
        return ExpectedDrop(text, emitted.element.value, played.key, window, emitted.reason)
    info = emitted.info
    return ExpectedPane(
        text=text,
        value=emitted.value,
        key=played.key,
        window=emitted.window,
        is_retraction=info.kind.is_retraction,
        timestamp_micros=emitted.timestamp_micros,
        **{name: getattr(info, name) for name in PANE_INFO},
    )


def move_to_ends_of_rounds(
    steps: Iterable[Step], ends_micros: Sequence[int], slack_micros: int = 0
) -> tuple[Step, ...]:
    """Steps with each pane at the end of the round in which it is expected: micro-batches show nothing before.

    Processing time may differ by the slack from the times of `add_end_of_input`.
    """

    def shown(one: Expected) -> Expected:
        if one.clock_micros is None:
            return one
        first_micros = one.clock_micros - one.tolerance_micros - slack_micros
        ends = [end_micros for end_micros in ends_micros if end_micros >= first_micros]
        return replace(one, clock_micros=ends[0] if ends else one.clock_micros)

    return tuple(replace(step, expected=tuple(map(shown, step.expected))) for step in steps)


def find_wrong_steps(
    scenario: Scenario, steps: Sequence[Step], taken: Iterable[RoundOutput], slack_micros: int = 0
) -> Iterator[str]:
    """Yields what is wrong with the output: lines for a report.

    Steps that end in the same micro-batch are compared together, because their outputs cannot be distinguished.
    Processing time may differ by the slack.
    """
    done, output_micros = 0, records.MIN_MICROS
    seen: list[records.EventOutput] = []
    for one in taken:
        seen += [played_of(done, one.clock_micros or 0, element) for element in one.seen]
        before_micros, output_micros = output_micros, one.watermarks[1] if one.watermarks else output_micros
        if one.complete <= done:
            continue
        together = _as_one(steps[done : one.complete], one.clock_micros is not None, slack_micros)
        found = find_differences(together, seen, scenario.in_written_order)
        if one.watermarks and together.hold:
            found += _wrong_hold(together.hold.micros, before_micros, *one.watermarks)
        if found:
            yield f"  at {together.place}: {together.text}"
            yield from (f"    {line}" for line in found)
        done, seen = one.complete, []
    if done < len(steps):
        yield f"  at {steps[done].place}: {steps[done].text}"
        yield "    this was never complete"
    elif seen:
        yield "  after the end of the input"
        yield from (f"    {line}" for line in find_differences(Step("", ""), seen))


def _as_one(steps: Sequence[Step], has_clock: bool, slack_micros: int) -> Step:
    """Some steps as one, with what a pipeline shows of their expectations."""
    shown: list[Expected] = []
    for one in (expected for step in steps for expected in step.expected):
        if isinstance(one, ExpectedDrop):
            # An element is dropped when it arrives, not when its micro-batch ends, and without a reason.
            shown.append(replace(one, reason=None, clock_micros=None))
        else:
            clock_micros = one.clock_micros if has_clock else None
            tolerance_micros = one.tolerance_micros + slack_micros
            shown.append(replace(one, clock_micros=clock_micros, tolerance_micros=tolerance_micros))
    return replace(steps[-1], expected=tuple(shown))


def _wrong_hold(
    hold_micros: int | None, before_micros: int, input_micros: int, output_micros: int
) -> Iterator[str]:
    """The output's watermark is where the input's is, or held back; it never goes back."""
    held_micros = input_micros if hold_micros is None else min(input_micros, hold_micros)
    if output_micros != max(before_micros, held_micros):
        written, found = hold_text(hold_micros), hold_text(output_micros)
        yield f"wrong hold: {written} is written, but the watermark of the output is at {found.removeprefix('hold ')}"


def find_wrong_reasons(steps: Iterable[Step], counted: Mapping[str, int]) -> Iterator[str]:
    """Elements that were not dropped for the expected reason, by the counters of a run.

    Args:
        steps: What `add_end_of_input` says.
        counted: The values of the counters in `DROPPED`, by name.
    """
    dropped = [one for step in steps for one in step.expected if isinstance(one, ExpectedDrop)]
    for reason, name in DROPPED.items():
        stated = [one for one in dropped if one.reason is reason]
        if len(stated) > counted.get(name, 0):
            yield f"  missing:    -> {stated[-1].text} (elements are dropped for another reason)"
    if sum(counted.values()) != len(dropped):
        yield f"  {len(dropped)} elements are to be dropped, but {sum(counted.values())} are counted"
