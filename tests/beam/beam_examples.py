"""For each quirk, a small program in which it alone makes the difference."""

from __future__ import annotations

from penstock.machines.records import AddElement, AdvanceClock, AdvanceWatermark
from tests.beam import beam_runner, on_penstock
from tests.beam.beam_panes import in_order
from tests.beam.beam_programs import SECOND, Make, Program, Step
from tests.beam.beam_quirks import Quirk

AFTER_WATERMARK = Make("AfterWatermark")
ALWAYS = Make("Always")
TENS = Make("FixedWindows", 10)


def after_count(count: int) -> Make:
    return Make("AfterCount", count)


def after_processing_time(seconds: int) -> Make:
    return Make("AfterProcessingTime", seconds)


def sessions(gap_seconds: int) -> Make:
    return Make("Sessions", gap_seconds)


def element(value: int, seconds: int, key: str = "a") -> Step:
    return AddElement(value, seconds * SECOND, key=key)


def watermark(seconds: int) -> Step:
    return AdvanceWatermark(seconds * SECOND)


def clock(seconds: int) -> Step:
    return AdvanceClock(seconds * SECOND)


def program(
    windows: Make, trigger: Make, *script: Step, lateness: int = 0, timestamps: str = "OUTPUT_AT_EOW"
) -> Program:
    return Program(windows, trigger, "DISCARDING", lateness, timestamps, False, script)


EXAMPLES = {
    # The lateness is over at 15: 10 and 5.
    Quirk.EXPIRES_ONE_LATER: program(TENS, after_count(1), watermark(15), element(1, 3), lateness=5),
    # One element does not make two.
    Quirk.NEVER_CLOSES: program(TENS, after_count(2), element(1, 3)),
    # The session [0, 10) is long over when a new one begins at 5.
    Quirk.NEVER_LETS_GO: program(sessions(10), ALWAYS, element(1, 0), watermark(12), element(2, 5)),
    # By itself the second element would be in [12, 22); it belongs to the session that goes on until 30.
    Quirk.DROPS_BEFORE_MERGING: program(sessions(10), ALWAYS, element(1, 20), watermark(25), element(2, 12)),
    Quirk.LAST_UNSAID: program(TENS, Make("DefaultTrigger"), element(1, 3)),
    # [8, 10) is over at 11; but the session that begins at 10 holds the output watermark just before 10.
    Quirk.HELD_TIMING: program(
        *(sessions(2), AFTER_WATERMARK, element(1, 10), watermark(11), element(2, 8)),
        lateness=5,
        timestamps="OUTPUT_AT_EARLIEST",
    ),
    # It is 10 o'clock when the window [0, 10) fires, and the watermark has not moved.
    Quirk.CLOCK_FOR_WATERMARK: program(TENS, after_processing_time(10), element(1, 3), clock(10)),
    # The second part has not seen an element when the watermark passes 10.
    Quirk.RINGS_ON_REQUEST: program(TENS, Make("AfterEach", after_count(1), AFTER_WATERMARK), element(1, 3)),
    # The second element comes after the delay: both parts of AfterAll are satisfied.
    Quirk.CLOCK_UNREAD: program(
        *(TENS, Make("AfterAny", Make("AfterAll", after_count(2), after_processing_time(5)), after_count(3))),
        *(element(1, 3), clock(5), element(2, 4), element(4, 5)),
    ),
    # The first part of AfterAll is satisfied for good by the first element, the other one always.
    Quirk.PARTS_FORGET: program(
        *(
            TENS,
            Make("AfterAny", Make("AfterAll", Make("AfterEach", after_count(1)), ALWAYS), after_count(3)),
        ),
        *(element(1, 3), element(2, 4), element(4, 5)),
    ),
    # The session at 0 has come to the second trigger, the one at 15 has not; the last element joins them.
    Quirk.MERGES_TRIGGERS: program(
        *(sessions(10), Make("AfterEach", after_count(2), after_count(1))),
        *(element(1, 0), element(2, 1), element(4, 15), element(8, 8)),
    ),
    # [0, 10) is finished when the others come.
    Quirk.FINISHED_SPREADS: program(
        sessions(10), after_count(1), element(1, 0), element(2, 7), element(4, 15)
    ),
    # What is there has been given before the clock strikes.
    Quirk.EMPTY_PANES: program(
        *(TENS, Make("AfterEach", Make("AfterAny", ALWAYS, after_processing_time(5)), after_count(1))),
        *(element(1, 3), clock(5)),
    ),
    Quirk.KEEPS_HOLD: program(
        *(TENS, Make("AfterWatermark", after_count(1), None), element(1, 3)), timestamps="OUTPUT_AT_EARLIEST"
    ),
    # The element at 3 is behind the watermark, 5, but not behind what the other key holds back.
    Quirk.HOLDS_LATE: program(
        *(TENS, AFTER_WATERMARK, element(1, 1, key="b"), watermark(5), element(2, 3)),
        timestamps="OUTPUT_AT_EARLIEST",
    ),
}


def transcript(example: Program) -> str:
    """An example and what both give, as the page shows it."""
    [beam] = beam_runner.run([example])
    lines = [str(example)]
    for name, panes in (("Beam", beam), ("penstock", on_penstock.run(example))):
        lines += [f"{name}:", *(f"  {pane}" for pane in in_order(panes))]
        lines += ["  nothing"] * (not panes)
    return "".join(f"{line}\n" for line in lines)
