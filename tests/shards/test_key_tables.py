"""The keys of one grouping in one shard: who is due, and when."""

from __future__ import annotations

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import MIN_MICROS, Element, Pane, Times
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermarkPercentile, Repeatedly
from penstock.transforms.window import FixedWindows, Sessions
from penstock.windows.windowing import Windowing
from penstock_spark.checkpoints.state_table import rows_of_page
from penstock_spark.stream.shards.keys import KeyTable
from penstock_spark.stream.state.key_pages import KeyPages
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.pages import FIRST_PAGES
from tests.shards.shard_streams import DictStore

SECOND = 1_000_000


def test_a_percentile_before_the_epoch_rings_when_it_comes_and_not_before() -> None:
    trigger = Repeatedly(AfterWatermarkPercentile(0.9))
    machine = GroupingMachine(Windowing(FixedWindows(10), trigger, AccumulationMode.DISCARDING))
    keys = KeyTable(machine, KeyPages(DictStore(), PageNotes(), 1))
    keys.element(b"sa", None, Element(1, -25 * SECOND, machine.assign(-25 * SECOND)), Times())

    def given(percentile_seconds: int) -> list[object]:
        times = Times(MIN_MICROS, percentile_micros={0.9: percentile_seconds * SECOND})
        fired = [one for _, emitted in keys.advance_watermark(times) for one in emitted]
        return [pane.value for pane in fired if isinstance(pane, Pane)]

    assert given(-21) == []
    assert given(-20) == [[1]]


def test_each_key_of_many_gets_its_own_state_back_while_pages_split() -> None:
    machine = GroupingMachine(Windowing(FixedWindows(10)))
    store = DictStore()
    notes = PageNotes()
    names = [b"s" + str(number).encode() for number in range(1000)]
    for _ in range(2):
        keys = KeyTable(machine, KeyPages(store, notes, 1))
        for name in names:
            keys.element(name, None, Element(name, 0, machine.assign(0)), Times())
        keys.save()
    assert len(notes) > FIRST_PAGES
    fired = KeyTable(machine, KeyPages(store, notes, 1)).advance_watermark(Times(10 * SECOND))
    values = {key: pane.value for key, given in fired for pane in given if isinstance(pane, Pane)}
    assert values == {name[1:].decode(): [name, name] for name in names}


def test_what_merged_sessions_have_given_is_held_for_in_later_batches_and_told_by_the_table() -> None:
    mode = AccumulationMode.ACCUMULATING_AND_RETRACTING
    machine = GroupingMachine(Windowing(Sessions(10), Repeatedly(AfterCount(2)), mode))
    store = DictStore()
    notes = PageNotes()
    told = []
    for seconds in (0, 1, 8, 9):
        keys = KeyTable(machine, KeyPages(store, notes, 1))
        keys.element(b"sa", None, Element(1, seconds * SECOND, machine.assign(seconds * SECOND)), Times())
        hold_micros = keys.hold_micros()
        keys.save()
        [row] = [row for page in store.pages.values() for row in rows_of_page("Group", page, 1, False)]
        assert (None if row.hold is None else row.hold.micros) == hold_micros
        told.append(row.hold)
    # The session to 11 has fired a pane, and the one to 18 retracts it at its next element.
    assert told == [9.999999, None, 10.999999, None]
