"""A small stream for each transform with state: all that it keeps belongs to windows that end, or to timers."""

from __future__ import annotations

import tempfile
from typing import Any, NamedTuple

import penstock as beam
from penstock import combiners
from penstock.coders import BytesCoder, VarIntCoder
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.pvalue import AsDict, AsIter, AsList, AsMultiMap, AsSingleton
from penstock.sql.transform import SqlTransform
from penstock.transforms.core import RestrictionProvider
from penstock.transforms.deduplicate import Deduplicate, DeduplicatePerKey
from penstock.transforms.periodicsequence import PeriodicSequence
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
)
from penstock.transforms.userstate import (
    BagStateSpec,
    CombiningValueStateSpec,
    MapStateSpec,
    OrderedListStateSpec,
    ReadModifyWriteStateSpec,
    SetStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.transforms.util import BatchElements
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows
from penstock.typehints import KV
from penstock.utils.timestamp import Duration, Timestamp
from penstock.utils.windowed_value import ValueKind, WindowedValue, unknown_pane
from penstock.windows import triggers
from penstock.windows.window_fn import BoundedSessions, PerElementFixedWindows, UnalignedFixedWindows
from tests.shards.expiring_rounds import SECOND, Case, Streams

RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
EARLY_AND_LATE = AfterWatermark(early=AfterCount(1), late=AfterCount(1))

CASES: dict[str, Case] = {}


def of_pairs(name: str, *transforms: Any, windows: Any = (FixedWindows(10),)) -> None:
    """Registers a case of transforms that are applied one after the other to pairs in windows."""

    def made(streams: Streams) -> Any:
        found = streams.pairs("Left", *windows)
        for number, transform in enumerate(transforms):
            found = found | f"{name}: step {number}" >> transform
        return found

    CASES[name] = made


def of_two(name: str, transform: Any) -> None:
    """Registers a case of a transform that is applied to the pairs of both sources."""

    def made(streams: Streams) -> Any:
        return (streams.pairs("Left"), streams.pairs("Right")) | f"{name}: both" >> transform

    CASES[name] = made


def of_side(name: str, view: Any, *windows: Any, dofn: Any = None) -> None:
    """Registers a case of a step that sees the pairs of the other source."""

    def made(streams: Streams) -> Any:
        side = view(streams.pairs("Right", *windows))
        step = beam.Map(see, of=side) if dofn is None else beam.ParDo(dofn, side)
        return streams.pairs("Left") | f"{name}: step" >> step

    CASES[name] = made


def see(value: Any, of: Any) -> Any:
    return value, of if isinstance(of, int) else len([*of])


def as_row(pair: Any) -> beam.Row:
    return beam.Row(name=pair[0], score=pair[1])


def is_last(value: Any) -> bool:
    return value == 13


def size_of(pair: Any) -> int:
    return 5 + pair[1] % 3


TRIGGERS = {
    "default": triggers.DefaultTrigger(),
    "watermark": AfterWatermark(),
    "early and late": AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
    "early by the clock": AfterWatermark(early=AfterProcessingTime(5), late=AfterProcessingTime(5)),
    "count": Repeatedly(AfterCount(2)),
    "count once": AfterCount(2),
    "each": Repeatedly(AfterCount(1)),
    "clock": Repeatedly(AfterProcessingTime(7)),
    "aligned clock": Repeatedly(triggers.AfterAlignedProcessingTime(20)),
    "bytes": Repeatedly(triggers.AfterBytes(10)),
    "punctuation": Repeatedly(triggers.AfterPunctuation(is_last)),
    "pattern": Repeatedly(triggers.AfterPattern(is_last, is_last)),
    "percentile": triggers.AfterWatermarkPercentile(0.5),
    "signal": Repeatedly(triggers.AfterSignal("now")),
    "always": triggers.Always(),
    "any": Repeatedly(AfterAny(AfterCount(3), AfterProcessingTime(5))),
    "all": Repeatedly(AfterAll(AfterCount(3), AfterProcessingTime(5))),
    "in turn": AfterEach(AfterCount(1), AfterWatermark(), Repeatedly(AfterCount(2))),
    "until": triggers.OrFinally(Repeatedly(AfterCount(1)), AfterCount(3)),
    "synchronized": triggers.AfterSynchronizedProcessingTime(),
}
WINDOWS = {
    "sliding": SlidingWindows(20, 5),
    "sessions": Sessions(4),
    "bounded sessions": BoundedSessions(4, 8),
    "unaligned": UnalignedFixedWindows(10),
    "per element": PerElementFixedWindows(size_of),
}


def combine() -> Any:
    return beam.CombinePerKey(sum)


def of_windows(make: Any, name: str, *windows: Any) -> None:
    """Registers a case of a grouping with a trigger or a windowing, in a mode."""
    of_pairs(f"{name}, {windows[-1].name}", make(), windows=windows)


MODES = [*AccumulationMode]
for _name, _trigger in TRIGGERS.items():
    for _mode in MODES:
        of_windows(combine, f"CombinePerKey, {_name}", FixedWindows(10), _trigger, _mode)
        of_windows(beam.GroupByKey, f"GroupByKey, {_name}", FixedWindows(10), _trigger, _mode)
for _name, _windowfn in WINDOWS.items():
    for _mode in MODES:
        for _of in ("default", "early and late"):
            of_windows(combine, f"CombinePerKey, {_name}, {_of}", _windowfn, TRIGGERS[_of], _mode)
            of_windows(beam.GroupByKey, f"GroupByKey, {_name}, {_of}", _windowfn, TRIGGERS[_of], _mode)
WINDOWS_AND_TRIGGERS = [*CASES]
of_pairs(
    "CombinePerKey, delta",
    beam.CombinePerKey(sum),
    windows=(FixedWindows(10), triggers.AfterDelta(3), AccumulationMode.ACCUMULATING),
)

RETRACTED = (Sessions(4), EARLY_AND_LATE, RETRACTING)
COMBINERS = {
    "Count.PerKey": combiners.Count.PerKey(),
    "Mean.PerKey": combiners.Mean.PerKey(),
    "Latest.PerKey": combiners.Latest.PerKey(),
    "Top.PerKey": combiners.Top.PerKey(2),
    "Sample.FixedSizePerKey": combiners.Sample.FixedSizePerKey(2),
    "ApproximateUnique.PerKey": beam.ApproximateUnique.PerKey(20),
    "ApproximateQuantiles.PerKey": beam.ApproximateQuantiles.PerKey(3),
    "CombinePerKey of a list": beam.CombinePerKey(combiners.ToListCombineFn()),
    "CombinePerKey of two": beam.CombinePerKey(combiners.TupleCombineFn(sum, max).with_common_input()),
    "CombinePerKey with fanout": beam.CombinePerKey(sum).with_hot_key_fanout(2),
}
for _name, _combiner in COMBINERS.items():
    of_pairs(_name, _combiner)
    of_pairs(
        f"{_name}, early and late",
        _combiner,
        windows=(FixedWindows(10), EARLY_AND_LATE, AccumulationMode.DISCARDING),
    )
    if "fanout" not in _name:
        of_pairs(f"{_name} behind sessions", beam.CombinePerKey(sum), _combiner, windows=RETRACTED)


def of_numbers(name: str, combiner: Any) -> None:
    """Registers a case of a combiner of all numbers of a window."""
    of_pairs(name, beam.Map(lambda pair: pair[1]), combiner.without_defaults())


of_numbers("CombineGlobally", beam.CombineGlobally(sum))
of_numbers("Count.Globally", combiners.Count.Globally())
of_numbers("Mean.Globally", combiners.Mean.Globally())
of_numbers("Latest.Globally", combiners.Latest.Globally())
of_numbers("Top.Of", combiners.Top.Of(2))
of_numbers("Sample.FixedSizeGlobally", combiners.Sample.FixedSizeGlobally(2))
of_numbers("ToList", combiners.ToList())
of_numbers("ToSet", combiners.ToSet())
of_pairs("ToDict", combiners.ToDict().without_defaults())
of_pairs("Count.PerElement", combiners.Count.PerElement())
of_pairs("GroupBy", beam.Map(as_row), beam.GroupBy("name"))
of_pairs(
    "GroupBy with aggregates", beam.Map(as_row), beam.GroupBy("name").aggregate_field("score", sum, "total")
)
of_pairs("Distinct", beam.Distinct())
of_pairs("RemoveDuplicates", beam.RemoveDuplicates())
of_pairs("Reshuffle", beam.Reshuffle())
of_pairs("ReshufflePerKey", beam.ReshufflePerKey())
of_pairs("Deduplicate by event time", Deduplicate(event_time_duration=5))
of_pairs("Deduplicate by the clock", Deduplicate(processing_time_duration=5))
of_pairs("DeduplicatePerKey by both", DeduplicatePerKey(5, 5))
of_pairs(
    "DeduplicatePerKey by event time in the global window",
    DeduplicatePerKey(event_time_duration=5),
    windows=(GlobalWindows(),),
)
of_pairs(
    "DeduplicatePerKey by the clock in the global window",
    DeduplicatePerKey(processing_time_duration=5),
    windows=(GlobalWindows(),),
)
of_pairs("GroupIntoBatches", beam.GroupIntoBatches(2))
of_pairs("GroupIntoBatches that wait", beam.GroupIntoBatches(4, max_buffering_duration_secs=5))
of_pairs("GroupIntoBatches in sessions", beam.GroupIntoBatches(4), windows=(Sessions(4),))
of_pairs(
    "GroupIntoBatches that wait in the global window",
    beam.GroupIntoBatches(4, max_buffering_duration_secs=5),
    windows=(GlobalWindows(),),
)
of_pairs(
    "GroupIntoBatches that are full in the global window",
    beam.GroupIntoBatches(1),
    windows=(GlobalWindows(),),
)
of_pairs(
    "GroupIntoBatches.WithShardedKey", beam.GroupIntoBatches.WithShardedKey(2, max_buffering_duration_secs=5)
)
of_pairs("BatchElements that wait", BatchElements(5, 5, max_batch_duration_secs=5))
of_pairs(
    "BatchElements that wait in the global window",
    BatchElements(5, 5, max_batch_duration_secs=5),
    windows=(GlobalWindows(),),
)
of_pairs(
    "two groupings",
    beam.GroupByKey(),
    beam.Map(lambda pair: (pair[0][:3], len(list(pair[1])))),
    beam.CombinePerKey(sum),
)
of_pairs("Upserts by window", beam.CombinePerKey(sum), beam.Upserts(by_window=True))
of_pairs(
    "Upserts by window of panes",
    beam.CombinePerKey(sum),
    beam.Upserts(by_window=True),
    windows=(FixedWindows(10), EARLY_AND_LATE, AccumulationMode.ACCUMULATING),
)
of_pairs(
    "Upserts by window of retractions",
    beam.CombinePerKey(sum),
    beam.Upserts(by_window=True),
    windows=(FixedWindows(10), EARLY_AND_LATE, RETRACTING),
)
of_pairs(
    "Upserts by window of sessions", beam.CombinePerKey(sum), beam.Upserts(by_window=True), windows=RETRACTED
)


for _kind in ("inner", "left", "right", "full", "semi", "anti", "left_anti"):
    of_two(f"JoinRows, {_kind}", beam.JoinRows(_kind))
    if _kind not in ("inner", "semi"):
        of_two(f"JoinRows, {_kind}, at the end", beam.JoinRows(_kind, "at_end"))
    of_two(f"JoinRows, {_kind}, matching", beam.JoinRows(_kind, matching=lambda left, right: left < right))
for _kind in ("inner", "left", "full"):
    of_two(f"ValidityJoin, {_kind}", beam.ValidityJoin(_kind))
for _kind in ("inner", "left"):
    of_two(f"ValidityJoin, {_kind}, final", beam.ValidityJoin(_kind, final=True))
of_pairs("ValidFrom", beam.ValidFrom())
of_two("CoGroupByKey", beam.CoGroupByKey())


def with_late_data(streams: Streams) -> Any:
    return [*(streams.pairs() | "with_late_data: sums" >> beam.CombinePerKey(sum).with_late_data())]


def wait_on(streams: Streams) -> Any:
    return streams.pairs() | "WaitOn: step" >> beam.WaitOn(streams.pairs("Right"))


def as_singleton(pairs: Any) -> AsSingleton:
    values = pairs | "AsSingleton: values" >> beam.Map(lambda pair: pair[1])
    return AsSingleton(values | "AsSingleton: sum" >> beam.CombineGlobally(sum).without_defaults(), 0)


CASES |= {"with_late_data": with_late_data, "WaitOn": wait_on}
of_side("AsDict", AsDict)
of_side("AsIter", AsIter)
of_side("AsList", AsList)
of_side("AsMultiMap", AsMultiMap)
of_side("AsSingleton", as_singleton)
of_side("AsList of panes", AsList, FixedWindows(10), EARLY_AND_LATE, AccumulationMode.ACCUMULATING)
of_side("AsList of longer windows", AsList, FixedWindows(50))


class Cells(beam.DoFn):
    """Fills a cell of each kind, and empties all of them by a timer."""

    SPECS = (
        BagStateSpec("bag", VarIntCoder()),
        SetStateSpec("set", VarIntCoder()),
        CombiningValueStateSpec("sum", sum),
    )
    BAG, SET, SUM = SPECS
    VALUE = ReadModifyWriteStateSpec("value", VarIntCoder())
    MAP = MapStateSpec("map", VarIntCoder(), VarIntCoder())
    LIST = OrderedListStateSpec("list", VarIntCoder())
    BY_WATERMARK = TimerSpec("by watermark", TimeDomain.WATERMARK)
    BY_CLOCK = TimerSpec("by clock", TimeDomain.REAL_TIME)

    def __init__(self, by_clock: bool) -> None:
        self.by_clock = by_clock

    def process(
        self,
        element: Any,
        at: Any = beam.DoFn.TimestampParam,
        bag: Any = beam.DoFn.StateParam(BAG),
        set: Any = beam.DoFn.StateParam(SET),
        sum: Any = beam.DoFn.StateParam(SUM),
        value: Any = beam.DoFn.StateParam(VALUE),
        map: Any = beam.DoFn.StateParam(MAP),
        list: Any = beam.DoFn.StateParam(LIST),
        by_watermark: Any = beam.DoFn.TimerParam(BY_WATERMARK),
        by_clock: Any = beam.DoFn.TimerParam(BY_CLOCK),
    ) -> Any:
        number = element[1]
        for cell in (bag, set, sum):
            cell.add(number)
        value.write(number)
        map.put(number, number)
        list.add((at, number))
        if self.by_clock:
            by_clock.set_relative(5)
        else:
            by_watermark.set_relative(5)
        yield number

    @on_timer(BY_WATERMARK)
    @on_timer(BY_CLOCK)
    def empty(
        self,
        bag: Any = beam.DoFn.StateParam(BAG),
        set: Any = beam.DoFn.StateParam(SET),
        sum: Any = beam.DoFn.StateParam(SUM),
        value: Any = beam.DoFn.StateParam(VALUE),
        map: Any = beam.DoFn.StateParam(MAP),
        list: Any = beam.DoFn.StateParam(LIST),
    ) -> Any:
        for number in [*set.read()]:
            set.remove(number)
        for number in [*map.keys()]:
            map.remove(number)
        list.clear_range(0, 1 << 40)
        for cell in (bag, sum, value):
            cell.clear()


class CellsWithEnd(Cells):
    """Has a method for the end of its window, which in the global window is the end of time."""

    @on_window_expiration
    def end(self, bag: Any = beam.DoFn.StateParam(Cells.BAG)) -> Any:
        yield from bag.read()


class CellsToTheEnd(Cells):
    """Leaves the cells to the end of their window."""

    def process(
        self,
        element: Any,
        bag: Any = beam.DoFn.StateParam(Cells.BAG),
        map: Any = beam.DoFn.StateParam(Cells.MAP),
    ) -> Any:
        bag.add(element[1])
        map.put(element[1], 1)

    @on_window_expiration
    def end(self, bag: Any = beam.DoFn.StateParam(Cells.BAG)) -> Any:
        yield len([*bag.read()])


for _by_clock, _by in ((True, "the clock"), (False, "the watermark")):
    of_pairs(
        f"a DoFn that empties its cells by {_by}", beam.ParDo(Cells(_by_clock)), windows=(GlobalWindows(),)
    )
    of_pairs(
        f"a DoFn with an end that empties its cells by {_by}",
        beam.ParDo(CellsWithEnd(_by_clock)),
        windows=(GlobalWindows(),),
    )
of_pairs("a DoFn whose windows end", beam.ParDo(CellsToTheEnd(True)))


class LongList(beam.DoFn):
    """Has a list so long that its values are sealed in segments, until a timer empties it."""

    VALUES = BagStateSpec("long", BytesCoder())
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(
        self,
        element: Any,
        values: Any = beam.DoFn.StateParam(VALUES),
        end: Any = beam.DoFn.TimerParam(END),
    ) -> Any:
        values.add(bytes(30_000))
        end.set_relative(50)
        yield element

    @on_timer(END)
    def empty(self, values: Any = beam.DoFn.StateParam(VALUES)) -> None:
        values.clear()


of_pairs("a DoFn with a long list", beam.ParDo(LongList()), windows=(GlobalWindows(),))
of_pairs("GroupByKey of a long list", beam.MapTuple(lambda key, _: (key, bytes(30_000))), beam.GroupByKey())


class SeesSide(beam.DoFn):
    SEEN = BagStateSpec("seen", VarIntCoder())

    def process(self, element: Any, of: Any, seen: Any = beam.DoFn.StateParam(SEEN)) -> Any:
        seen.add(element[1])
        yield element, len(of)


of_side("a DoFn with state and a side input", AsList, dofn=SeesSide())


class ComeAndGo(beam.DoFn):
    """Turns pairs into rows, which come with the number 1 and are retracted with the number 10."""

    emits_retractions = True
    KINDS = {1: ValueKind.INSERT, 10: ValueKind.DELETE}

    def process(self, pair: Any, seen: Any = beam.DoFn.WindowedValueParam) -> Any:
        key, number = pair
        if number in self.KINDS:
            at = Timestamp.from_micros(seen.timestamp.micros - (number - 1) * SECOND)
            yield WindowedValue((key, "row"), at, seen.windows, unknown_pane(self.KINDS[number]))


def rows_that_go(streams: Streams, source: str = "Left") -> Any:
    """Rows in the global window, none of which stays."""
    rows = beam.ParDo(ComeAndGo()).with_output_types(KV[str, str])
    return streams.pairs(source, GlobalWindows()) | f"{streams.case}: rows that go of {source}" >> rows


def of_rows_that_go(name: str, transform: Any, is_join: bool = False) -> None:
    """Registers a case of a transform in the global window, which forgets a key when it has no rows any more."""
    name = f"{name} of rows that go"

    def made(streams: Streams) -> Any:
        rows = rows_that_go(streams)
        given = (rows, rows_that_go(streams, "Right")) if is_join else rows
        return given | f"{name}: step" >> transform

    CASES[name] = made


def sql_of_rows_that_go(streams: Streams) -> Any:
    named = beam.Map(lambda row: Named(row[0])).with_output_types(Named)
    rows = rows_that_go(streams) | f"{streams.case}: named" >> named
    return {"Rows": rows} | f"{streams.case}: query" >> SqlTransform("SELECT name, Sys.MTime AS t FROM Rows")


class Named(NamedTuple):
    name: str


of_rows_that_go("Upserts", beam.Upserts())
of_rows_that_go("ValidFrom", beam.ValidFrom())
for _kind in ("inner", "left", "right", "full", "semi", "anti", "left_anti"):
    of_rows_that_go(f"JoinRows, {_kind},", beam.JoinRows(_kind), is_join=True)
for _kind in ("inner", "left", "full"):
    of_rows_that_go(f"ValidityJoin, {_kind},", beam.ValidityJoin(_kind), is_join=True)
CASES["SQL of rows that go"] = sql_of_rows_that_go


class Steps(RestrictionProvider):
    def initial_restriction(self, element: Any) -> Any:
        return OffsetRange(0, 3)

    def create_tracker(self, restriction: Any) -> Any:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, element: Any, restriction: Any) -> float:
        return float(restriction.size())


class StepByStep(beam.DoFn):
    """Three outputs, one each second."""

    @beam.DoFn.unbounded_per_element()
    def process(self, element: Any, tracker: Any = beam.DoFn.RestrictionParam(Steps())) -> Any:
        place = tracker.current_restriction().start
        if not tracker.try_claim(place):
            return
        yield element[0], place
        tracker.defer_remainder(Duration(1))


of_pairs("a splittable DoFn", beam.ParDo(StepByStep()))
of_pairs(
    "PeriodicSequence",
    beam.Map(lambda pair, at=beam.DoFn.TimestampParam: (at, at + 3, 1)),
    PeriodicSequence(),
    windows=(GlobalWindows(),),
)
of_pairs("a splittable DoFn in the global window", beam.ParDo(StepByStep()), windows=(GlobalWindows(),))


def of_rows(name: str, query: str, *sources: str) -> None:
    """Registers a case of a query."""
    name = f"SQL, {name}"

    def made(streams: Streams) -> Any:
        tables = {source: streams.rows(source) for source in sources or ("Left",)}
        return tables | f"{name}: query" >> SqlTransform(query)

    CASES[name] = made


TUMBLE = "TUMBLE(TABLE {}, DESCRIPTOR(at), INTERVAL '10' SECONDS)"
HOP = "HOP(TABLE {}, DESCRIPTOR(at), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)"
SESSION = "SESSION(TABLE {} PARTITION BY name, DESCRIPTOR(at), INTERVAL '4' SECONDS)"
BY_NAME = "GROUP BY name, window_start, window_end"
SUMS = f"SELECT name, SUM(score) AS total, window_end FROM {{}} {BY_NAME}"
SYSTEM = "SELECT STREAM name, SUM(score) AS total, window_end, Sys.EmitTime, Sys.EmitIndex, Sys.Undo"
FINAL = "EMIT AFTER WATERMARK"
EMITS = (FINAL, "EMIT AFTER DELAY INTERVAL '5' SECONDS AND AFTER WATERMARK")
for _name, _table in {"tumble": TUMBLE, "hop": HOP, "session": SESSION}.items():
    for _emit in EMITS:
        of_rows(f"{_name}, {_emit}", f"{SUMS.format(_table.format('Left'))} {_emit}")
_of = TUMBLE.format("Left")
of_rows(
    "COUNT(DISTINCT)",
    f"SELECT COUNT(DISTINCT name) AS names, window_end FROM {_of} GROUP BY window_start, window_end {FINAL}",
)
of_rows(
    "MIN and MAX",
    f"SELECT name, MIN(score) AS low, MAX(score) AS high, window_end FROM {_of} {BY_NAME} {FINAL}",
)
of_rows(
    "a stream with the columns of the system",
    f"{SYSTEM} FROM {_of} {BY_NAME} {FINAL}",
)
of_rows("distinct rows of windows", f"SELECT DISTINCT name, window_end FROM {_of} {FINAL}")
of_rows("distinct starts of windows", f"SELECT DISTINCT window_start FROM {HOP.format('Left')} {FINAL}")
of_rows("arrival", "SELECT STREAM name, CURRENT_TIMESTAMP AS now FROM Left")
of_rows("union", "SELECT name FROM Left UNION ALL SELECT name FROM Right", "Left", "Right")


FOLDER = tempfile.TemporaryDirectory()


def windowed_files(streams: Streams) -> Any:
    lines = streams.pairs() | f"{streams.case}: lines" >> beam.Map(str)
    write = beam.io.WriteToText(f"{FOLDER.name}/out", triggering_frequency=10)
    return lines | f"{streams.case}: write" >> write


CASES["files of windows"] = windowed_files


def with_rejects(streams: Streams) -> Any:
    step = beam.Map(len).with_exception_handling()
    return [*(streams.pairs() | f"{streams.case}: step" >> step)]


def in_parts(streams: Streams) -> Any:
    return [
        *(streams.pairs() | f"{streams.case}: step" >> beam.Partition(lambda pair, count: pair[1] % count, 2))
    ]


def flattened(streams: Streams) -> Any:
    return streams.pairs() | f"{streams.case}: step" >> beam.FlattenWith(streams.pairs("Right"))


def of_elements(name: str, transform: Any) -> None:
    """Registers a transform that keeps nothing from one element to the next."""
    STATELESS[name] = lambda streams: streams.pairs() | f"{streams.case}: step" >> transform


STATELESS: dict[str, Case] = {
    "exception handling": with_rejects,
    "Partition": in_parts,
    "FlattenWith": flattened,
}
of_elements("Select", beam.Select(key=lambda pair: pair[0]))
of_elements("LogElements", beam.LogElements())
of_elements("Tee", beam.Tee(beam.Map(str)))
of_elements("Reify.Timestamp", beam.Reify.Timestamp())
of_elements("Reify.TimestampInValue", beam.Reify.TimestampInValue())
of_elements("Reify.Window", beam.Reify.Window())
of_elements("Reify.WindowInValue", beam.Reify.WindowInValue())
of_elements("SetTrigger", beam.SetTrigger(Repeatedly(AfterCount(1)), AccumulationMode.DISCARDING))
of_elements("WithTimestamps", beam.WithTimestamps(lambda pair: pair[1]))
of_elements("SortAndBatchElements", beam.SortAndBatchElements(1, 3, 3))


KEPT_FOR_EVER: dict[str, Case] = {}
"""Cases that keep something by their nature, as docs/streaming.md and docs/sql.md say."""

_before = [*CASES]
EACH = (GlobalWindows(), Repeatedly(AfterCount(1)), AccumulationMode.ACCUMULATING)
of_pairs("GroupByKey in the global window", beam.GroupByKey(), windows=EACH)
of_pairs("CombinePerKey in the global window", beam.CombinePerKey(sum), windows=EACH)
of_pairs("Distinct in the global window", beam.Distinct(), windows=EACH)
of_pairs("Upserts of values that replace each other", beam.CombinePerKey(sum), beam.Upserts(), windows=EACH)
of_pairs("GroupIntoBatches in the global window", beam.GroupIntoBatches(99), windows=(GlobalWindows(),))
of_pairs("ValidFrom in the global window", beam.ValidFrom(), windows=(GlobalWindows(),))
of_rows("groups", "SELECT name, SUM(score) AS total FROM Left GROUP BY name")
of_rows("a join", "SELECT l.name FROM Left l JOIN Right r ON l.name = r.name", "Left", "Right")
of_rows("windows without EMIT", SUMS.format(_of))
of_rows(
    "distinct rows of grouped windows",
    f"SELECT DISTINCT total, window_end FROM ({SUMS.format(_of)}) AS t {FINAL}",
)
of_rows("numbers of changes", f"{SUMS.format(_of)} EMIT STREAM AFTER WATERMARK")
for _name in [name for name in CASES if name not in _before]:
    KEPT_FOR_EVER[_name] = CASES.pop(_name)
