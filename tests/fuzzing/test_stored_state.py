"""What shards store and are told: it comes back as it was, and what is cut off or of another version is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from penstock.machines.trigger_machine import CLOCK, WATERMARK
from penstock.transforms.window import GlobalWindow, IntervalWindow
from penstock_spark.process.written_formats import COMMAND
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.key_pages import KeyPage
from penstock_spark.stream.state.page_index import NOTHING, PageNotes
from penstock_spark.stream.state.window_pages import WindowPage, page_of, store_window
from penstock_spark.stream.transport import control
from penstock_spark.worker.messages import LogicalTime, WatermarkUpdate
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, is_refusal, result_or_refusal, seeds


def time_of(chance: Chance) -> int:
    return chance.one_of((0, -1, NOTHING - 1, -NOTHING, chance.randint(-(2**60), 2**60)))


def key_page(chance: Chance) -> KeyPage:
    page = KeyPage()
    for _ in range(chance.randint(1, 6)):
        alarms = {domain: time_of(chance) for domain in (WATERMARK, CLOCK) if chance.often()}
        hold = time_of(chance) if chance.often() else None
        pickled_key = chance.blob() if chance.often() else None
        segments = {-1 - chance.randint(0, 2**40): chance.randint(1, 2**30)} if chance.often() else {}
        page.change({chance.blob(): (chance.blob(), alarms, hold, pickled_key, segments)})
    return page


def column_page(chance: Chance) -> WindowPage:
    page = WindowPage()
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(-(2**50), 2**50)
        window = chance.one_of((GlobalWindow(), IntervalWindow.from_micros(start, start + 60)))
        cells: Any = {
            b"s" + str(number).encode(): (
                chance.json_value(),
                1,
                0,
                chance.one_of((None, 5)),
                chance.randint(0, 3),
            )
            for number in range(chance.randint(1, 4))
        }
        page[window] = store_window(cells, {}, time_of(chance), set(list(cells)[: chance.randint(0, 2)]))
    return page


def header(chance: Chance) -> Header:
    made = Header(clock_micros=time_of(chance), is_draining=chance.often())
    for _ in range(chance.randint(0, 4)):
        origin = chance.text(3)
        made.note(origin, chance.one_of((1.0, 0.5)), time_of(chance))
        hold = WatermarkUpdate(
            LogicalTime(0, time_of(chance)), origin, time_of(chance), holder=chance.randint(0, 3)
        )
        made.take(hold)
    notes = PageNotes()
    notes.add_pages(chance.randint(1, 4))
    for number in range(len(notes)):
        notes.note(number, chance.randint(0, 999), {CLOCK: time_of(chance)}, time_of(chance))
    made.notes["Sums"] = notes
    made.last = LogicalTime(chance.randint(0, 9), time_of(chance))
    return made


def columns_of(page: KeyPage) -> tuple[Any, ...]:
    return page.states, page.hold_micros, page.alarms, page.pickled_keys, page.segments


@seeds(200, 20_000)
def test_what_is_stored_comes_back(count: int) -> None:
    def law(chance: Chance) -> None:
        keys = key_page(chance)
        encoded, earliest, hold = keys.encoded()
        again = KeyPage.decoded(encoded)
        assert columns_of(again) == columns_of(keys)
        assert earliest == {domain: min(column.values()) for domain, column in again.alarms.items()}
        assert hold == min(again.hold_micros.values())
        windows = column_page(chance)
        found = page_of(windows.encoded()[0])
        assert found == windows
        assert [each.opened() for each in found.values()] == [each.opened() for each in windows.values()]
        own = header(chance)
        assert Header.decoded(own.encoded()) == own

    each_seed(count, law)


READERS: dict[str, tuple[Callable[[Chance], bytes], Callable[[bytes], Any]]] = {
    "keys": (lambda chance: key_page(chance).encoded()[0], KeyPage.decoded),
    "windows": (lambda chance: column_page(chance).encoded()[0], page_of),
    "header": (lambda chance: header(chance).encoded(), Header.decoded),
}


@pytest.mark.parametrize("kind", READERS)
@seeds(100, 10_000)
def test_what_is_cut_off_or_of_another_version_is_refused(kind: str, count: int) -> None:
    """Other damage may make a pickle do anything, which is why only its owner may write to a checkpoint."""
    make, read = READERS[kind]

    def law(chance: Chance) -> None:
        encoded = make(chance)
        cut = encoded[: chance.randint(1, len(encoded) - 1)]
        version, *content = pickle.loads(encoded)
        other = pickle.dumps((f"{version} of another", *content))
        for wrong in (cut, chance.one_of((b"\x00", b"{", b"\xff")) + encoded, other):
            with pytest.raises(ValueError, match=r"cannot be read|no format number") as caught:
                read(wrong)
            assert is_refusal(caught.value)

    each_seed(count, law)


@seeds(500, 100_000)
def test_a_row_for_a_shard_is_a_command_or_a_heartbeat_or_is_refused(count: int) -> None:
    def law(chance: Chance) -> None:
        name, argument, clock = chance.one_of(control.COMMANDS), chance.text(), chance.randint(0, 2**53)
        line = json.dumps({"format": COMMAND.number, "command": name, "name": argument or None})
        row = f"{control.COMMAND}{clock} {line}".encode()
        assert control.decode_row(row) == control.Command(clock, name, argument)
        beat = f"{control.HEARTBEAT}{clock}".encode()
        assert control.decode_row(beat) == clock
        wrong = chance.damaged(chance.one_of((row, beat)))
        if wrong[:1] == b"\x80":
            return
        found = result_or_refusal(lambda: control.decode_row(wrong))
        if found is not None and isinstance(found[0], control.Command):
            assert found[0].name in control.COMMANDS

    each_seed(count, law)
