"""Programs on penstock's machine."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.functions.combinefn import CombineFn
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import AdvanceClock, Pane
from penstock.machines.reference_engine import ReferenceEngine
from penstock.utils.timestamp import Timestamp
from penstock.windows.windowing import Windowing
from tests.beam.beam_panes import Shown, shown
from tests.beam.beam_programs import END_OF_TIME, Program


def run(program: Program) -> list[Shown]:
    """What penstock gives for a program."""
    combine = CombineFn.from_callable(sum) if program.summed else None
    windowing = Windowing(*program.windowing("penstock").values())
    return list(_play(program, ReferenceEngine(GroupingMachine(windowing, combine))))


def _play(program: Program, player: ReferenceEngine) -> Iterator[Shown]:
    """Beam's clock starts at 0, and what is due at once fires at once: so the clock strikes after every step."""
    clock = AdvanceClock(0)
    player.play(clock)
    for number, step in enumerate([*program.script, END_OF_TIME]):
        clock = step if isinstance(step, AdvanceClock) else clock
        for played in player.play(step) + player.play(clock):
            match played.emitted:
                case Pane(value, window, timestamp_micros, info):
                    yield shown(number, played.key, value, Timestamp(micros=timestamp_micros), window, info)
