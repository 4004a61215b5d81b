"""Elements of one moment may be combined by the tasks that read them: shards emit the same results."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import pytest

from penstock.coders.deterministic import encode_key
from penstock.functions.combinefn import CombineFn
from penstock.functions.folds import fold_of
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import AddElement, Dropped, EndMicroBatch, Event, EventOutput, Pane, Times
from penstock.metrics.execution import MetricsContainer
from penstock.transforms.combining.ready_combiners import CountCombineFn, MeanCombineFn, TupleCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
)
from penstock.utils.windowed_value import ValueKind, unknown_pane
from penstock.windows.windowing import Windowing
from penstock_spark.passes.choose_folds import loop_of_arrivals
from penstock_spark.plan.hosts import Loop
from penstock_spark.reports.failure import StepFailure, find_failure
from penstock_spark.stream.program import CombiningWriterSpec
from penstock_spark.stream.shards.keys import KeyTable
from penstock_spark.stream.state.key_pages import KeyPages
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.transport import combining
from penstock_spark.stream.transport.combining import CombiningWriter
from penstock_spark.stream.transport.outbox import Outbox
from penstock_spark.worker.batch import Batch, dumps, loads
from penstock_spark.worker.fixed_windows import FixedAssigner
from penstock_spark.worker.messages import LogicalTime, Message, Part
from tests.machines.generated import COMBINES, Case, Listing, Sum
from tests.machines.generated_events import with_events
from tests.machines.laws_of_combining import crowded_case, logical_times_of, outcome, punctual_case
from tests.machines.outcomes import ACCUMULATING, RETRACTING, finals, latest, settled
from tests.shards.shard_streams import GROUPING, DictStore, Stream

SECOND = 1_000_000
NOON = LogicalTime(12, 0)
PRODUCERS = 3


def writer_of(windowing: Windowing, combine: Any = None, outbox: Outbox | None = None) -> CombiningWriter:
    loop = loop_of_arrivals(windowing, combine)
    spec = CombiningWriterSpec(0, GROUPING, "at step 'Group'", 1, windowing, combine, loop)
    outbox = outbox or Outbox((0, 0), 1)
    if outbox.now == LogicalTime(0, 0):
        outbox.now = NOON
    return CombiningWriter(spec, outbox, MetricsContainer(GROUPING))


def pairs(windowing: Windowing, *elements: tuple[Any, Any, float]) -> Batch:
    """Keys and values at some seconds, in their windows."""
    machine = GroupingMachine(windowing)
    stamps = [round(seconds * SECOND) for _, _, seconds in elements]
    windows = [
        machine.assign(micros, (key, value)) for (key, value, _), micros in zip(elements, stamps, strict=True)
    ]
    return Batch([(key, value) for key, value, _ in elements], stamps, windows)


def written(writer: CombiningWriter, *batches: Batch) -> Message:
    """The message for the only shard, as it arrives there."""
    writer.setup()
    for batch in batches:
        assert list(writer.push(batch)) == []
    assert list(writer.finish_bundle()) == []
    writer.teardown()
    message: Message = loads(dumps(writer.outbox.messages[1, 0]))
    return message


def entries(message: Message) -> list[tuple[Any, ...]]:
    """The entries of a message: the encoded key, the window, the partial result, and the number of elements."""
    found = []
    for part in message.parts.get(GROUPING, []):
        assert part.counts is not None
        windows = [window for (window,) in part.batch.expand().windows]
        found += zip(part.names, map(str, windows), part.batch.values, part.counts, strict=True)
    return found


TENS = Windowing(FixedWindows(10))


def test_values_of_a_key_and_a_window_travel_as_one_list_in_the_order_read() -> None:
    elements = [("a", 1, 0), ("b", 2, 3), ("a", 3, 12), ("a", 4, 9)]
    message = written(writer_of(TENS), pairs(TENS, *elements), pairs(TENS, ("a", 5, 1)))
    assert entries(message) == [
        (b"sa", "[0.0, 10.0)", [1, 4, 5], 3),
        (b"sb", "[0.0, 10.0)", [2], 1),
        (b"sa", "[10.0, 20.0)", [3], 1),
    ]


@pytest.mark.parametrize("combine", [Sum(), CombineFn.from_callable(sum)])
def test_partial_results_travel_instead_of_values(combine: CombineFn) -> None:
    message = written(writer_of(TENS, combine), pairs(TENS, *[("a", number, 0) for number in range(100)]))
    [(name, _, partial, count)] = entries(message)
    assert (name, fold_of(combine).finish(partial), count) == (b"sa", 4950, 100)


def test_an_element_is_in_each_of_its_windows() -> None:
    windowing = Windowing(SlidingWindows(10, 5))
    message = written(writer_of(windowing), pairs(windowing, ("a", 1, 7), ("a", 2, 2)))
    assert [(window, held) for _, window, held, _ in entries(message)] == [
        ("[5.0, 15.0)", [1]),
        ("[0.0, 10.0)", [1, 2]),
        ("[-5.0, 5.0)", [2]),
    ]


def test_each_moment_has_parts_of_its_own() -> None:
    writer = writer_of(TENS)
    for step in (1, 2, 1):
        writer.outbox.now = LogicalTime(step, 0)
        list(writer.push(pairs(TENS, ("a", step, 0))))
    message = written(writer)
    assert [(part.logical_time.step, part.batch.values) for part in message.parts[GROUPING]] == [
        (1, [[1, 1]]),
        (2, [[2]]),
    ]


def test_keys_that_python_finds_equal_stay_apart_and_those_of_classes_travel_along() -> None:
    keys = [1, True, 1.0, "1", (1, "x"), (1, "x")]
    message = written(writer_of(TENS), pairs(TENS, *[(key, None, 0) for key in keys]))
    assert [name for name, *_ in entries(message)] == [encode_key(key) for key in keys[:-1]]
    assert message.pickled_keys == {encode_key((1, "x")): (1, "x")}


def test_texts_among_other_keys_are_the_texts_that_come_alone() -> None:
    batches = [[("a", 1, 0)], [("a", 2, 0), (5, 3, 0)], [("a", 4, 0)]]
    message = written(writer_of(TENS), *[pairs(TENS, *batch) for batch in batches])
    assert fired(TENS, None, message) == {("a", "[0.0, 10.0)"): [1, 2, 4], (5, "[0.0, 10.0)"): [3]}


@pytest.mark.parametrize(
    ("merge_touching", "together"), [(False, [[1, 3], [2], [4]]), (True, [[1, 3], [2, 4]])]
)
def test_elements_of_a_session_travel_as_one(merge_touching: bool, together: list[list[int]]) -> None:
    windowing = Windowing(Sessions(10, merge_touching))
    message = written(
        writer_of(windowing), pairs(windowing, ("a", 1, 9), ("a", 2, 30), ("a", 3, 0), ("a", 4, 40))
    )
    assert [held for _, _, held, _ in entries(message)] == together


def fired(windowing: Windowing, combine: Any, *messages: Message, watermark: float = 10**6) -> dict[Any, Any]:
    """The value of each key and window at the end, if messages arrive together."""
    return {
        (key, str(pane.window)): pane.value for key, pane in panes_of(windowing, combine, messages, watermark)
    }


def panes_of(
    windowing: Windowing, combine: Any, messages: Iterable[Message], watermark: float = 10**6
) -> list[tuple[Any, Pane]]:
    keys = table_of(windowing, combine)
    given = list(keys.arrive([(part, one) for one in messages for part in one.parts[GROUPING]], Times()))
    assert given == []
    return [
        (key, pane)
        for key, panes in keys.advance_watermark(Times(round(watermark * SECOND)))
        for pane in panes
    ]


def table_of(windowing: Windowing, combine: Any = None) -> KeyTable:
    return KeyTable(GroupingMachine(windowing, combine), KeyPages(DictStore(), PageNotes(), 1))


@pytest.mark.parametrize(
    ("rule", "micros"),
    [
        (TimestampCombiner.OUTPUT_AT_EOW, 9_999_999),
        (TimestampCombiner.OUTPUT_AT_LATEST, 8_000_000),
        # The earliest of those that are not behind the watermark, which the writers do not know.
        (TimestampCombiner.OUTPUT_AT_EARLIEST, 6_000_000),
    ],
)
@pytest.mark.parametrize("combine", [None, Sum()])
def test_the_output_has_the_timestamp_that_its_rule_gives_it(rule: Any, micros: int, combine: Any) -> None:
    windowing = Windowing(FixedWindows(10), timestamp_combiner=rule)
    early = written(writer_of(windowing, combine), pairs(windowing, ("a", 1, 6), ("a", 1, 1)))
    late = written(writer_of(windowing, combine), pairs(windowing, ("a", 1, 8), ("a", 1, 7)))
    keys = table_of(windowing, combine)
    parts = [(part, message) for message in (early, late) for part in message.parts[GROUPING]]
    assert list(keys.arrive(parts, Times(5 * SECOND))) == []
    [(_, [pane])] = keys.advance_watermark(Times(10 * SECOND))
    assert pane.timestamp_micros == micros


def test_values_are_in_the_order_of_producers_and_then_as_read() -> None:
    first = written(writer_of(TENS), pairs(TENS, ("a", 3, 2), ("a", 1, 0)))
    second = written(writer_of(TENS), pairs(TENS, ("a", 2, 1)))
    assert fired(TENS, None, first, second) == {("a", "[0.0, 10.0)"): [3, 1, 2]}


def test_what_several_tasks_combined_of_late_data_gives_one_pane_and_what_is_dropped_is_counted() -> None:
    late = AfterWatermark(late=AfterCount(1))
    windowing = Windowing(FixedWindows(10), late, AccumulationMode.DISCARDING, allowed_lateness=10)
    elements = [("a", 1, 9), ("a", 2, 8), ("a", 3, 19)]
    messages = [written(writer_of(windowing, Sum()), pairs(windowing, *elements)) for _ in range(PRODUCERS)]
    parts = [(part, message) for message in messages for part in message.parts[GROUPING]]
    given = list(table_of(windowing, Sum()).arrive(parts, Times(20 * SECOND)))
    dropped = [one for _, emitted in given for one in emitted if isinstance(one, Dropped)]
    panes = [one for _, emitted in given for one in emitted if isinstance(one, Pane)]
    assert [one.count for one in dropped] == [2 * PRODUCERS]
    assert [(pane.value, str(pane.window)) for pane in panes] == [(3 * PRODUCERS, "[10.0, 20.0)")]


SUM = CombineFn.from_callable(sum)
MAX = CombineFn.from_callable(max)
WINDOW_FNS = FixedWindows(10), SlidingWindows(10, 5), SlidingWindows(1, 4), GlobalWindows()


@pytest.mark.parametrize("windowfn", WINDOW_FNS, ids=str)
@pytest.mark.parametrize("combine", [SUM, MAX, CountCombineFn()], ids=["sum", "max", "count"])
@pytest.mark.parametrize("seed", range(5))
def test_pairs_that_are_added_up_as_they_come_give_what_tables_give(
    windowfn: Any, combine: CombineFn, seed: int
) -> None:
    windowing = Windowing(windowfn)
    random = Random(seed)
    keys = ["a", "b", "c", *random.choice([[], [1], [True, 1.0, ("a", 1)]])]
    values = random.choice([[1, 2, -(2**70)], [1, 0.5], [True, 3]])
    batches = []
    for _ in range(random.randint(1, 5)):
        some = [(random.choice(keys), random.choice(values), random.randint(-20, 40) / 2) for _ in range(20)]
        batch = pairs(windowing, *some[: random.randint(0, 20)])
        if random.random() < 0.3:
            batch = batch.with_values([random.choice([list, tuple])(pair) for pair in batch.values])
        batches.append(batch)
    tables = writer_of(windowing, combine)
    assert tables.spec.loop is Loop.PAIRS
    tables = CombiningWriter(
        replace(tables.spec, loop=Loop.VALUES), tables.outbox, MetricsContainer(GROUPING)
    )
    found, expected = (written(writer, *batches) for writer in (writer_of(windowing, combine), tables))
    assert sorted(map(repr, entries(found))) == sorted(map(repr, entries(expected)))
    if isinstance(windowfn, FixedWindows):
        # The step that assigns windows leaves that to the writer.
        direct, windows = writer_of(windowing, combine), FixedAssigner(windowfn)
        for batch in batches:
            list(direct.take_fixed(Batch(batch.values, batch.expand().timestamps), windows))
        assert entries(written(direct)) == entries(found)


class Key(NamedTuple):
    team: Any
    day: Any = None


class Loud(NamedTuple):
    """A key that is equal to another one in small letters, although its encoding differs."""

    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loud) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())


FAMILIES: tuple[list[Any], ...] = (
    ["a", "b"],
    [1, 2, -(2**70)],
    [1, True, 1.0],
    [True, False],
    [(), ("a", 1), ("a", None), (b"a", 1)],
    [("a", 1), ("a", True), ("a", 1.0)],
    [(("a",), 1), (("a",), 2)],
    [Key("a", 1), Key("b", 1), Key("a")],
    [Key("a", 1), ("a", 1)],
    [Key(True), Key(1), Key(1.0)],
    [Loud("a"), Loud("A")],
)


SIDE_BY_SIDE = ([sum], [sum, max, CountCombineFn(), min], [max, MeanCombineFn()], [])


@pytest.mark.parametrize("combiners", SIDE_BY_SIDE, ids=["sum", "known", "other", "none"])
@pytest.mark.parametrize("windowfn", [*WINDOW_FNS, Sessions(4)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_combine_fns_of_lists_give_what_the_same_give_when_they_are_called(
    combiners: list[Any], windowfn: Any, seed: int
) -> None:
    windowing, random = Windowing(windowfn), Random(seed)
    batches = []
    for _ in range(4):
        some = [
            (random.choice("abc"), [random.randint(-9, 9) for _ in combiners], random.randint(0, 40) / 2)
            for _ in range(12)
        ]
        batches.append(pairs(windowing, *some))
    # Those of tuples may be of any length, and no loop takes them.
    called, written_in = TupleCombineFn(*combiners), TupleCombineFn.of_lists(combiners)
    found, expected = (
        sorted(map(repr, panes_of(windowing, each, [written(writer_of(windowing, each), *batches)])))
        for each in (written_in, called)
    )
    assert found == expected
    are_known = not any(isinstance(each, MeanCombineFn) for each in combiners)
    takes_pairs = are_known and not windowfn.is_merging()
    assert (writer_of(windowing, written_in).spec.loop is Loop.PAIRS) == takes_pairs
    assert writer_of(windowing, called).spec.loop is not Loop.PAIRS


@pytest.mark.parametrize("combine", [None, SUM, Sum()], ids=["lists", "known", "combine fn"])
@pytest.mark.parametrize("seed", range(20))
def test_keys_that_are_their_own_names_give_what_encoded_keys_give(
    combine: CombineFn | None, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    batches = []
    for _ in range(6):
        family = random.choice(FAMILIES)
        batches.append(pairs(TENS, *[(random.choice(family), random.randint(-9, 9), 3) for _ in range(8)]))
    own = written(writer_of(TENS, combine), *batches)
    monkeypatch.setattr(combining, "kind_of_keys", lambda pairs, kinds: None)
    monkeypatch.setattr(combining, "find_plain_key_type", lambda keys: None)
    encoded = written(writer_of(TENS, combine), *batches)
    found, expected = (sorted(map(repr, panes_of(TENS, combine, [each]))) for each in (own, encoded))
    assert found == expected


@pytest.mark.parametrize("combine", [Sum(), SUM])
@pytest.mark.parametrize(("limit", "most"), [("MOST_NAMES", 10), ("MOST_COMBINED", 15)])
def test_a_writer_that_holds_too_much_gives_several_parts_that_come_to_the_same(
    limit: str, most: int, combine: CombineFn, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [pairs(TENS, *[(f"key{key}", key, 10 * (key % 3)) for key in range(10)])] * 4
    whole = written(writer_of(TENS, combine), *batches)
    monkeypatch.setattr(combining, limit, most)
    divided = written(writer_of(TENS, combine), *batches)
    assert len(divided.parts[GROUPING]) > len(whole.parts[GROUPING]) == 3
    assert fired(TENS, combine, divided) == fired(TENS, combine, whole)


class Noted(Listing):
    """Notes that it was set up and torn down."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def setup(self) -> None:
        self.notes.append("setup")

    def add_input(self, accumulator: list[Any], element: Any) -> list[Any]:
        assert self.notes == ["setup"]
        return super().add_input(accumulator, element)

    def teardown(self) -> None:
        self.notes.append("teardown")


def test_a_combine_fn_is_set_up_before_it_combines_and_torn_down_after() -> None:
    combine = Noted()
    written(writer_of(TENS, combine), pairs(TENS, ("a", 1, 0)))
    assert combine.notes == ["setup", "teardown"]


def taken_back(batch: Batch) -> Batch:
    return Batch(batch.values, batch.timestamps, batch.windows, unknown_pane(ValueKind.DELETE))


@pytest.mark.parametrize(
    ("combine", "batch", "message"),
    [
        (None, Batch(["no pair"]), "not .key, value. pairs"),
        (None, taken_back(pairs(TENS, ("a", 1, 0))), "retract others"),
        (SUM, pairs(TENS, ("a", "text", 0)), "unsupported operand"),
        (SUM, pairs(TENS, ("a", 1, 0), (1, "text", 0)), "unsupported operand"),
        (SUM, Batch([("a", 1), ("a", "text"), "no pair"]), "not .key, value. pairs"),
        (SUM, Batch([("a", 1), "no pair"]), "not .key, value. pairs"),
        (SUM, Batch([("a", 1), ("a", 2, 3)]), "not .key, value. pairs"),
        (SUM, Batch([("a", "text"), (frozenset(), 1)]), "frozenset"),
        (None, pairs(TENS, (frozenset(), 1, 0)), "frozenset"),
    ],
)
def test_what_goes_wrong_names_the_step(combine: Any, batch: Batch, message: str) -> None:
    with pytest.raises(StepFailure, match="Group") as failed:
        written(writer_of(TENS, combine), batch)
    failure = find_failure(str(failed.value))
    assert failure is not None
    with pytest.raises(Exception, match=message):
        raise pickle.loads(failure.exception or b"")


# Any grouping whose trigger tells no one element from many.


class CombinedStream(Stream):
    """A stream where several tasks combine the elements of each moment."""

    def __init__(
        self,
        machine: GroupingMachine,
        combine: Any,
        random: Random,
        micro_batch: bool = False,
        columns: Any = None,
    ) -> None:
        super().__init__(machine, random.choice((1, 2, 3)), micro_batch, columns)
        self._combine = combine
        self._random = random

    def _messages(self, events: list[Event], ends: bool) -> list[Message]:
        outboxes = [Outbox((0, number), self.shards) for number in range(PRODUCERS)]
        writers = [writer_of(self.machine.windowing, self._combine, outbox) for outbox in outboxes]
        messages = [Message((0, 0)) for _ in range(self.shards)]
        for together in logical_times_of(events):
            if not isinstance(together[0], AddElement):
                self._add_to(messages, super()._messages(together, False))
                continue
            self._add_to(messages, super()._messages([together[0]], False), with_parts=False)
            for event in together:
                assert isinstance(event, AddElement)
                writer = self._random.choice(writers)
                writer.outbox.now = LogicalTime(self.step - 1, self.clock_micros)
                windows = self.machine.assign(event.timestamp_micros, (event.key, event.value))
                list(writer.push(Batch([(event.key, event.value)], event.timestamp_micros, windows)))
        for writer in writers:
            list(writer.finish_bundle())
            self._add_to(messages, [writer.outbox.messages[1, shard] for shard in range(self.shards)])
        self._add_to(messages, super()._messages([], ends))
        return messages

    def _add_to(self, messages: list[Message], others: Iterable[Message], with_parts: bool = True) -> None:
        for message, other in zip(messages, others, strict=True):
            message.timeline += other.timeline
            message.ends |= other.ends
            message.watermark_updates += other.watermark_updates
            message.signals += other.signals
            message.pickled_keys.update(other.pickled_keys)
            for label, parts in other.parts.items() if with_parts else ():
                own: list[Part] = message.parts.setdefault(label, [])
                own += parts

    def played(self) -> list[EventOutput]:
        """The panes, as a machine that is played emits them."""
        return [
            EventOutput(0, now.clock_micros, key, Pane(value, window, timestamp_micros, pane))
            for now, key, value, window, timestamp_micros, pane in self.panes
        ]


def streamed(case: Case, random: Random, mode: Any = None, micro_batch: bool = False) -> list[EventOutput]:
    stream = CombinedStream(case.machine(mode), COMBINES[case.combine], random, micro_batch)
    stream.batch(list(case.events))
    stream.batch([], ends=True)
    return stream.played()


def told(played: Iterable[EventOutput]) -> Counter[str]:
    return Counter(
        repr((one.key, settled(pane.value), pane.window, pane.timestamp_micros, pane.info))
        for one in played
        if isinstance(pane := one.emitted, Pane)
    )


@pytest.mark.parametrize("seed", range(100))
def test_combined_before_the_shuffle_punctual_elements_give_the_same_panes(seed: int) -> None:
    random = Random(seed)
    case = punctual_case(random)
    assert told(streamed(case, random)) == told(outcome(case)), case
    in_one_round = [event for event in case.events if not isinstance(event, EndMicroBatch)] + [
        EndMicroBatch()
    ]
    case = with_events(case, in_one_round)
    assert told(streamed(case, random, micro_batch=True)) == told(outcome(case, engine="micro_batch")), case


@pytest.mark.parametrize("seed", range(100))
def test_combined_before_the_shuffle_all_elements_come_to_the_same(seed: int) -> None:
    random = Random(seed)
    case = crowded_case(random)
    left = finals(outcome(case, RETRACTING))
    assert finals(streamed(case, random, RETRACTING)) == left, case
    last = latest(streamed(case, random, ACCUMULATING))
    expected = latest(outcome(case, ACCUMULATING))
    assert {place: last[place] for place in left} == {place: expected[place] for place in left}, case
