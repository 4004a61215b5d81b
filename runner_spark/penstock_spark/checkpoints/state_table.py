"""The state in a checkpoint as a table: what each grouping holds for each key and window."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.checks.similar_names import hint_at_name
from penstock.coders.deterministic import decode_key
from penstock.elements.bounded_window import BoundedWindow, GlobalWindow
from penstock.error import refusal
from penstock.functions.folds import NOTHING
from penstock.functions.userstate import TimerSpec
from penstock.machines.long_lists import LongList
from penstock.machines.separable_values import SeparableValues
from penstock.machines.splittable import SplittableKey
from penstock.machines.stateful_keys import StatefulKey, window_of
from penstock.machines.states import KeyState, WindowState
from penstock.machines.timers import END_OF_WINDOW
from penstock.machines.trigger_machine import CLOCK
from penstock.utils.timestamp import Timestamp, format_time
from penstock_spark.checkpoints.contract.compare import Signature
from penstock_spark.checkpoints.contract.kept_cells import Readers, Unreadable, cell_readers, describe
from penstock_spark.checkpoints.contract.operators import levels_of_operators
from penstock_spark.checkpoints.contract.signature import ALWAYS, WAITS
from penstock_spark.checkpoints.custody.folder import Checkpoint, find_checkpoint
from penstock_spark.checkpoints.spark_state import check_readable, pages_of_operator
from penstock_spark.session.backends import backend_of, is_local_session, map_in_arrow
from penstock_spark.session.session import SessionOptions, session_for
from penstock_spark.session.spark_versions import from_arrow_schema
from penstock_spark.session.worker_socket import acknowledge_each
from penstock_spark.shipping.import_paths import import_like_driver, ship_packages, worker_sys_path
from penstock_spark.stream.shards.keys import state_of
from penstock_spark.stream.shards.waiting import WaitingPage, show_waiting_page
from penstock_spark.stream.shards.waiting_state import label_of_waiting, waiting_label
from penstock_spark.stream.state.key_pages import keys_of
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.segments import Segments
from penstock_spark.stream.state.window_pages import is_by_window, page_of
from penstock_spark.worker.batch import loads

_MOMENT = pa.timestamp("us", "UTC")
_SCHEMA = pa.schema(
    [
        ("level", pa.int32()),
        ("grouping", pa.string()),
        ("key", pa.string()),
        ("window_start", _MOMENT),
        ("window_end", _MOMENT),
        ("value", pa.string()),
        ("new_elements", pa.int64()),
        ("panes", pa.int64()),
        ("hold", _MOMENT),
        ("next_alarm", _MOMENT),
        ("next_clock_alarm", _MOMENT),
        ("timers", pa.string()),
    ]
)
_GLOBAL = GlobalWindow()
_COLUMNS = from_arrow_schema(_SCHEMA)
_PAGE = ("shard", "grouping", "page", "content")
# Spark returns rows with Python's datetime, which ends beyond these years.
_FIRST_MICROS = Timestamp.from_rfc3339("0001-01-02T00:00:00Z").micros
_LAST_MICROS = Timestamp.from_rfc3339("9999-12-30T00:00:00Z").micros


class SetTimer(NamedTuple):
    """A timer that a DoFn has set.

    Attributes:
        name: The name that the user has given its TimerSpec.
        tag: Its dynamic tag; empty without one.
        is_event_time: True if it follows the watermark, and not the clock.
        time: When it fires.
    """

    name: str
    tag: str
    is_event_time: bool
    time: Timestamp

    def __str__(self) -> str:
        name = f"{self.name}[{self.tag}]" if self.tag else self.name
        return f"{name} at {format_time(self.time)} in {'event' if self.is_event_time else 'processing'} time"


class StateRow(NamedTuple):
    """The state of a grouping for one key and window.

    Attributes:
        level: The grouping's level in the query, from 1 up.
        grouping: The grouping's label.
        key: The key. For a step that waits for side inputs: the number of the side input, or None for waiting elements.
        window: The window.
        value: The partial result: a number for sums and counts, the list of values without a CombineFn, the accumulator
            for other CombineFns. If elements may be retracted, the present values and those that were retracted before
            they came, for some CombineFns beside an accumulator. None after the window's last pane, and if nothing is
            new since the last pane. For a DoFn with state, a dict with what each cell has.
        new_elements: The number of elements since the last pane.
        panes: The number of panes so far.
        hold: The event time that the output's watermark must not pass; None if the window does not hold it back.
        next_alarm: The event time at which the window is examined next.
        next_clock_alarm: The same in processing time; None if its trigger does not wait for the clock.
        timers: The timers that a DoFn has set.
    """

    level: int
    grouping: str
    key: object
    window: BoundedWindow
    value: object
    new_elements: int = 0
    panes: int = 0
    hold: Timestamp | None = None
    next_alarm: Timestamp | None = None
    next_clock_alarm: Timestamp | None = None
    timers: tuple[SetTimer, ...] = ()


class _Known(NamedTuple):
    level: int
    fires_empty_at_end: bool
    waits: bool
    cells: Mapping[str, str]  # What decodes the cells of a DoFn with state.


def read_state(location: str | os.PathLike[str], spark: SparkSession | None = None) -> DataFrame:
    """The state in a checkpoint after its last finished micro-batch, as a DataFrame with a row for each key and window.

    Its columns are the attributes of `StateRow`, with the window's bounds as ``window_start`` and ``window_end``, and
    with keys and values as Python shows them. Times beyond the calendar, such as the bounds of the global window, are
    null. The query may be running; read the rows before it has run another hundred micro-batches.

    Args:
        location: The folder of the checkpoint, as in the pipeline's option ``checkpoint_location``.
        spark: The session; by default the session that a pipeline would run in.

    Raises:
        ValueError: There is no checkpoint, Spark's own aggregate has its state, or its path has spaces or other
            characters that Spark's reader rejects.
    """
    spark = session_for(SessionOptions(spark=spark))
    checkpoint = find_checkpoint(spark, location)
    pages = _pages(spark, checkpoint)
    if pages is None:
        return spark.createDataFrame([], _COLUMNS)
    backend_of(spark).check_workers()
    if not is_local_session(spark):
        ship_packages(spark)
    function = _table_function(_groupings(checkpoint.plan), worker_sys_path(spark))
    rows: DataFrame = map_in_arrow(pages, function, _COLUMNS)
    return rows


def state_rows(
    location: str | os.PathLike[str],
    spark: SparkSession | None = None,
    label: str | None = None,
    *,
    shows_unreadable: bool = False,
) -> Iterator[StateRow]:
    """The state as Python objects, row by row; this process unpickles the keys, windows and values.

    Args:
        location: The folder of the checkpoint.
        spark: The session; by default the session that a pipeline would run in.
        label: The label of the only step or composite to read; None for all.
        shows_unreadable: True to return an `Unreadable` for what this process cannot unpickle, without an error.

    Raises:
        ValueError: There is no checkpoint, no step with state has the label, Spark's own aggregate has its state, or it
            holds objects of classes that this process cannot import.
    """
    spark = session_for(SessionOptions(spark=spark))
    checkpoint = find_checkpoint(spark, location)
    known = _groupings(checkpoint.plan)
    pages = _pages(spark, checkpoint)
    if label is not None:
        chosen = _labels_in(label, known, location)
        pages = None if pages is None else pages.where(pages["grouping"].isin(chosen))
    for each, page, segments in _with_segments(() if pages is None else pages.toLocalIterator()):
        yield from rows_of_page(
            each, page, *known[each], segments=segments, shows_unreadable=shows_unreadable
        )


def _labels_in(label: str, known: Iterable[str], location: str | os.PathLike[str]) -> list[str]:
    """The labels of the state of a step, or of all steps in a composite.

    >>> _labels_in("Mean", ["Mean/Combine", "Means"], "/checkpoints/scores")
    ['Mean/Combine']
    """
    chosen = [each for each in known if f"{label_of_waiting(each)}/".startswith(f"{label}/")]
    if not chosen:
        what = f"no step with state has the label {label!r}"
        steps = {label_of_waiting(each) for each in known}
        raise refusal(ValueError, what, where=f"in {os.fspath(location)}", hint=hint_at_name(label, steps))
    return chosen


def rows_of_page(
    label: str,
    page: bytes,
    level: int,
    fires_empty_at_end: bool,
    waits: bool = False,
    cells: Mapping[str, str] = {},
    segments: Mapping[int, bytes] = {},
    *,
    shows_unreadable: bool = False,
) -> Iterator[StateRow]:
    """The rows of one page of a grouping or, with `waits`, of a step that waits for side inputs.

    `segments` are what long lists in the page consist of, by number.
    """

    def unknown(error: Exception, window: BoundedWindow = _GLOBAL) -> StateRow:
        """The row of what cannot be unpickled."""
        if not shows_unreadable:
            raise _unknown_class(label, error) from error
        return StateRow(level, label_of_waiting(label), Unreadable(describe(error)), window, None)

    if waits:
        try:
            waiting_page = show_waiting_page(page)
        except (ImportError, AttributeError) as error:
            yield unknown(error)
            return
        if waiting_page is not None:
            yield _row_of_waiting_page(label_of_waiting(label), level, waiting_page)
        return
    if is_by_window(page):
        yield from _rows_of_columns(label, level, page, fires_empty_at_end, segments, unknown)
        return
    readers = cell_readers(cells)
    for name, kept in keys_of(page):
        try:
            key = decode_key(name) if kept.pickled_key is None else loads(kept.pickled_key)
            state: KeyState | StatefulKey | SplittableKey = state_of(key, kept.state)
        except (ImportError, AttributeError) as error:
            yield unknown(error)
            continue
        match state:
            case SplittableKey():
                yield from _rows_of_restriction(label, level, key, state)
            case StatefulKey():
                yield from _rows_of_cells(label, level, key, state, readers, segments)
            case KeyState():
                yield from _rows_of_windows(label, level, key, state, fires_empty_at_end, segments)


def _rows_of_windows(
    label: str,
    level: int,
    key: object,
    state: KeyState,
    fires_empty_at_end: bool,
    segments: Mapping[int, bytes],
) -> Iterator[StateRow]:
    """The rows of a grouping's windows for one key."""
    for window in state.windows.values():
        held = window.held.whole if isinstance(window.held, SeparableValues) else window.held
        yield StateRow(
            level=level,
            grouping=label,
            key=key,
            window=window.window,
            value=_whole(held, segments),
            new_elements=window.fresh,
            panes=window.panes,
            hold=_moment(_hold_micros(window, fires_empty_at_end, state.owed.get(window.number))),
            next_alarm=_moment(_next_alarm_micros(window)),
            next_clock_alarm=_moment(window.alarms.get(CLOCK)),
        )


def _with_segments(
    rows: Iterable[tuple[int, str, int, bytes]],
) -> Iterator[tuple[str, bytes, dict[int, bytes]]]:
    """The pages among the rows of `_pages`, each with its label, and with the segments of its shard and grouping."""
    for (_, label), own in groupby(rows, itemgetter(0, 1)):
        segments: dict[int, bytes] = {}
        for _, _, number, content in own:
            if number < 0:
                segments[number] = bytes(content)
            else:
                yield label, bytes(content), segments


def _whole(held: object, segments: Mapping[int, bytes]) -> object:
    """The content of a window or a cell; a long list as a plain one."""
    if not isinstance(held, LongList):
        return None if held is NOTHING else held
    kept = Segments(lambda numbers: [segments.get(number) for number in numbers], PageNotes(), 1)
    return [*kept.keep(held)]


def _rows_of_columns(
    label: str,
    level: int,
    page: bytes,
    fires_empty_at_end: bool,
    segments: Mapping[int, bytes],
    unknown: Callable[..., StateRow],
) -> Iterator[StateRow]:
    """The rows of windows that are kept in columns; rows without new elements may have no value."""
    try:
        stored_windows = page_of(page)
    except (ImportError, AttributeError) as error:
        yield unknown(error)
        return
    for window, stored in stored_windows.items():
        try:
            cells, pickled_keys, ended = stored.opened()
        except (ImportError, AttributeError) as error:
            yield unknown(error, window)
            continue
        for name, (held, fresh, due_micros, panes, _) in cells.items():
            waits = not (stored.has_ended(window) or name in ended)
            yield StateRow(
                level=level,
                grouping=label,
                key=pickled_keys[name] if name in pickled_keys else decode_key(name),
                window=window,
                value=_whole(held, segments),
                new_elements=fresh,
                panes=panes,
                hold=window.max_timestamp() if waits and (fresh or fires_empty_at_end) else None,
                next_alarm=_moment(stored.alarm_micros),
                next_clock_alarm=_moment(due_micros),
            )


def _unknown_class(label: str, error: Exception) -> ValueError:
    what = f"the state of '{label}' holds objects of a class that this program cannot import: {error}"
    hint = "run this program where the pipeline's modules can be imported"
    return refusal(ValueError, what, hint=hint)


def _rows_of_cells(
    label: str,
    level: int,
    key: object,
    state: StatefulKey,
    readers: Readers,
    segments: Mapping[int, bytes],
) -> Iterator[StateRow]:
    """The rows of a DoFn with state: the value is what its cells contain, in stored form if nothing decodes it."""
    timers: dict[object, list[SetTimer]] = {}
    for (plain, name, tag), (is_event_time, micros, _) in state.timers.settings.items():
        if name != END_OF_WINDOW:
            timer = SetTimer(
                name.removeprefix(TimerSpec.prefix), tag, is_event_time, Timestamp.from_micros(micros)
            )
            timers.setdefault(plain, []).append(timer)
    for plain, cells in state.windows.items():
        stored = {name: _whole(content, segments) for name, content in cells.items()}
        yield StateRow(
            level=level,
            grouping=label,
            key=key,
            window=window_of(plain),
            value={
                name: readers[name](content) if name in readers else content
                for name, content in stored.items()
            },
            hold=_moment(state.timers.hold_micros()),
            next_alarm=_moment(state.timers.earliest(is_event_time=True)),
            next_clock_alarm=_moment(state.timers.earliest(is_event_time=False)),
            timers=tuple(timers.get(plain, ())),
        )


def _rows_of_restriction(label: str, level: int, key: object, state: SplittableKey) -> Iterator[StateRow]:
    """The rows of a splittable DoFn: the value is the rest of a restriction, in its stored form."""
    for plain in state.windows:
        yield StateRow(
            level=level,
            grouping=label,
            key=key,
            window=window_of(plain),
            value=state.restriction,
            hold=_moment(state.reported_micros),
            next_clock_alarm=_moment(state.next_micros),
        )


def _row_of_waiting_page(label: str, level: int, kept: WaitingPage) -> StateRow:
    """A row of a step that waits for side inputs: waiting elements have no key, a view the side input's number."""
    return StateRow(
        level=level,
        grouping=label,
        key=None if kept.place is None else f"side input {kept.place}",
        window=kept.window,
        value=kept.values,
        new_elements=0 if kept.earliest_micros is None else len(kept.values),
        hold=_moment(kept.earliest_micros),
    )


def _hold_micros(window: WindowState, fires_empty_at_end: bool, owed_micros: int | None) -> int | None:
    """The window's watermark hold, for its pane (as in `penstock.machines.visiting.hold_of`) or for an owed one."""
    hold_micros = window.output_micros
    waits = not (window.is_closed or window.is_past_end) and (window.fresh or fires_empty_at_end)
    if hold_micros is None and waits:
        hold_micros = window.window.end_micros - 1
    return min((micros for micros in (hold_micros, owed_micros) if micros is not None), default=None)


def _next_alarm_micros(window: WindowState) -> int | None:
    return min((micros for domain, micros in window.alarms.items() if domain != CLOCK), default=None)


def _moment(micros: int | None) -> Timestamp | None:
    return None if micros is None else Timestamp.from_micros(micros)


def _groupings(plan: Signature) -> dict[str, _Known]:
    found: dict[str, _Known] = {}
    for number, level in enumerate(plan["levels"], 1):
        for label, grouping in level.items():
            cells = grouping.get("cells", {})
            found[label] = _Known(number, grouping["on_time"] == ALWAYS, grouping["combine"] == WAITS, cells)
            # A DoFn with state may also have elements that wait.
            found[waiting_label(label)] = _Known(number, False, True, {})
    return found


def _pages(spark: SparkSession, checkpoint: Checkpoint) -> DataFrame | None:
    """All pages of all groupings; None without a finished micro-batch, or without state.

    The segments of long lists have numbers below zero, so they come before the pages of their shard and grouping.
    """
    plan = checkpoint.plan
    for label in plan.get("native", {}):
        what = f"the state of '{label}' belongs to Spark's own aggregate, in Spark's own format"
        hint = f'read it with spark.read.format("statestore").load("{checkpoint.spark_location}")'
        raise refusal(ValueError, what, hint=hint)
    if not plan["levels"] or checkpoint.last_commit() < 0:
        return None
    check_readable(spark, checkpoint.spark_location)
    frames = [
        pages_of_operator(spark, checkpoint.spark_location, operator)
        for operator in range(len(levels_of_operators(plan)))
    ]
    pages = reduce(DataFrame.unionAll, frames)
    # State that is not in the plan was given up.
    known = pages.where(pages["grouping"].isin(list(_groupings(plan))))
    # All rows of a shard are in one partition.
    return known.select(*_PAGE).sortWithinPartitions(*_PAGE[:3])


def _table_function(
    groupings: dict[str, _Known], sys_path: tuple[str, ...]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(records: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        import_like_driver(sys_path)
        rows: Iterator[Any] = (
            tuple(value.as_py() for value in row)
            for record in acknowledge_each(records)
            for row in zip(*(record.column(name) for name in _PAGE), strict=True)
        )
        for label, page, segments in _with_segments(rows):
            yield _record(rows_of_page(label, page, *groupings[label], segments=segments))

    return run


def _record(rows: Iterable[StateRow]) -> pa.RecordBatch:
    columns = list(zip(*map(_cells, rows), strict=True)) or [()] * len(_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _cells(row: StateRow) -> tuple[Any, ...]:
    bounds: tuple[int | None, int | None] = (None, None)
    if not isinstance(row.window, GlobalWindow):
        bounds = (getattr(row.window, "start_micros", None), row.window.end_micros)
    times = [
        None if time is None else time.micros for time in (row.hold, row.next_alarm, row.next_clock_alarm)
    ]
    start, end, hold, next_alarm, next_clock_alarm = map(_on_calendar, (*bounds, *times))
    value = None if row.value is None else repr(row.value)
    return (
        *(row.level, row.grouping, repr(row.key), start, end, value),
        *(row.new_elements, row.panes, hold, next_alarm, next_clock_alarm),
        "; ".join(map(str, row.timers)) or None,
    )


def _on_calendar(micros: int | None) -> int | None:
    return None if micros is None or not _FIRST_MICROS <= micros <= _LAST_MICROS else micros
