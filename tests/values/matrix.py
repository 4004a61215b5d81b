"""The matrix type × border × way: each way of a border returns the same values for all types.

A *border* says how it spells each type of the table (`penstock.values.types`), and has *ways*: functions that take the
values across, together, and return what arrives, by column. `differences` compares that with what the table says. A way
that needs a pipeline is a `Step`: the steps of all borders run in one pipeline for batches, and in one for streams.
``python -m tests.values.borders`` prints the pairs that are covered.

Another border is about fifteen lines: a name for each type that it has, a function that writes records, and its ways.
See `borders.py`, which lists all borders.
"""

from __future__ import annotations

import contextlib
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import penstock as beam
from penstock.elements.row import Row
from penstock.metrics.execution import MetricsContainer
from penstock.values.types import TYPES, ValueType
from penstock_spark.reports.failure import StepFailure, call_guarded, find_failure, to_exception
from penstock_spark.sinks.files import FileSink

NUMBER = "n"
"""The name of the first column, which has the number of each record: many ways keep no order."""

WHERE = "at step 'Cross' (game.py:41)"
"""The step that writes."""


@dataclass(frozen=True)
class Column:
    """The values of a type that cross a border in one column, with None at the end."""

    type: ValueType
    spelling: Any  # What the border calls the type, such as ``pa.int32()``.
    name: str
    values: tuple[Any, ...]
    within: str = (
        ""  # Or "list", or "record": each value is the only one of a list, or the field x of a record.
    )

    @property
    def sent(self) -> list[Any]:
        return [self._within(value) for value in self.values]

    def _within(self, value: Any) -> Any:
        if value is None or not self.within:
            return value
        return [value] if self.within == "list" else {"x": value}

    def is_returned(self, value: Any, got: Any) -> bool:
        """True if the border returned a value as the table says."""
        if value is None:
            return got is None
        if self.within:
            try:
                got = got[0] if self.within == "list" else as_dict(got)["x"]
            except (KeyError, IndexError, TypeError, AttributeError):
                return False
        return self.type.same(self.type.returned(value), got)


Records = Iterable[Any]
"""Dicts, Rows or other records with fields, in the order in which they were sent."""

Element = namedtuple("Element", [NUMBER, "c"])

SHAPES: dict[str, Callable[..., Any]] = {"dicts": dict, "Rows": Row, "tuples": Element}
"""The shapes of elements: each makes one of the fields `NUMBER` and ``c``."""

Write = Callable[[Sequence[Column], Path], None]
Read = Callable[[Sequence[Column], Path], Records]


@dataclass(frozen=True)
class Step:
    """A way that needs a pipeline: the transform that reads what the border has written."""

    make: Callable[[Sequence[Column], Path], Any]
    streams: bool = False


@dataclass(frozen=True)
class Trip:
    """One element that crosses a border: how the values beyond a type are tried."""

    # Takes the column ``c``, an element, and a folder; writes the element, and returns what is read.
    send: Callable[[Column, Any, Path], Records]
    # A deliberate break, with which a value is changed, or refused without a name.
    break_it: Callable[[pytest.MonkeyPatch], None]
    shapes: tuple[str, ...] = tuple(SHAPES)
    names_fields: bool = True  # Whether its elements have fields.


@dataclass(frozen=True)
class Border:
    name: str
    columns: tuple[Column, ...]
    ways: Mapping[str, Read | Step]
    write: Write | None = None  # Writes what all ways read, into a folder; None if each way has its own.
    # A deliberate break, which the ways without a pipeline must find.
    break_it: Callable[[pytest.MonkeyPatch], None] | None = None
    # The types that the border does not carry, by name, and why.
    lacks: Mapping[str, str] = field(default_factory=dict)
    trip: Trip | None = None  # None if another border writes what this one reads.


def spelled(
    spellings: Mapping[str, Iterable[Any]],
    fits: Callable[[Any, Any], bool] = lambda value, spelling: True,
    within: Mapping[str, Callable[[Any], Any]] = {},
) -> tuple[Column, ...]:
    """A column for each spelling of a type, with the edges that fit it.

    Args:
        spellings: What the border calls each type, by the type's name.
        fits: Whether a spelling holds a value, such as 300 in eight bits.
        within: From "list" and "record" to the spelling of a list or a record, for more columns of each type.
    """
    columns = []
    for kind in TYPES:
        for spelling in spellings.get(kind.name, ()):
            held = (*(value for value in kind.edges if fits(value, spelling)), None)
            columns.append(Column(kind, spelling, f"c{len(columns)}", held))
            columns += [
                Column(kind, made(spelling), f"c{len(columns) + place}", held, name)
                for place, (name, made) in enumerate(within.items())
            ]
    return tuple(columns)


def padded(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """The columns as numbered records: shorter columns end with None."""
    sent = {each.name: each.sent for each in columns}
    return [
        {NUMBER: place, **{name: own[place] if place < len(own) else None for name, own in sent.items()}}
        for place in range(max(map(len, sent.values())))
    ]


def differences(columns: Sequence[Column], records: Records) -> list[str]:
    """Returns the values that arrived otherwise than the table says, as text."""
    found = {each.get(NUMBER): each for each in map(as_dict, records)}
    length = max(len(column.values) for column in columns)
    if sorted(found, key=str) != sorted(range(length), key=str):
        return [f"the records {sorted(found, key=str)} instead of 0 to {length - 1}"]
    return [told for column in columns for told in _of_column(column, found)]


def _of_column(column: Column, found: Mapping[Any, dict[str, Any]]) -> Iterator[str]:
    missing = object()
    for place in range(len(found)):
        value = column.values[place] if place < len(column.values) else None
        got = found[place].get(column.name, missing)
        if not column.is_returned(value, got):
            shown = "nothing" if got is missing else f"{got!r} of {type(got).__name__}"
            yield f"{column.type.name} as {column.spelling}: {value!r} became {shown}"


def crossed(border: Border, way: str, place: Path) -> list[str]:
    """The differences on a way without a pipeline."""
    if border.write is not None:
        border.write(border.columns, place)
    read = border.ways[way]
    assert not isinstance(read, Step)
    return differences(border.columns, read(border.columns, place))


def steps_of(borders: Iterable[Border], *, streams: bool) -> list[tuple[Border, str, Step]]:
    return [
        (border, way, step)
        for border in borders
        for way, step in border.ways.items()
        if isinstance(step, Step) and step.streams == streams
    ]


def crossed_in_a_pipeline(
    steps: Sequence[tuple[Border, str, Step]], place: Path, pipeline: beam.Pipeline
) -> dict[tuple[str, str], list[str]]:
    """The differences on each way of a pipeline, which this runs."""
    found: dict[tuple[str, str], list[Any]] = {}
    for border, way, step in steps:
        folder = place / border.name
        if not folder.exists():
            folder.mkdir()
            if border.write is not None:
                border.write(border.columns, folder)
        found[border.name, way] = []
        read = pipeline | f"{border.name} {way}" >> step.make(border.columns, folder)
        _ = read | f"Keep {border.name} {way}" >> beam.io.WriteToMemory(found[border.name, way])
    pipeline.run().wait_until_finish()
    return {
        (border.name, way): differences(border.columns, found[border.name, way]) for border, way, _ in steps
    }


def refusals(border: Border, column: Column, value: Any, place: Path) -> dict[str, str]:
    """The error for a value beyond its type, by the shape of its element; nothing if all is well.

    A value comes back equal, or is refused by the name of its field and step, with a hint, in the same words.
    """
    assert border.trip is not None
    found = {}
    for shape in border.trip.shapes:
        with TemporaryDirectory(dir=place) as folder:
            element = SHAPES[shape](**{NUMBER: 0, "c": value})
            found[shape] = _became(border.trip, column, element, Path(folder))
    words = {told if isinstance(told, str) else "returned" for told in found.values()}
    is_well = all(
        _is_named(told, border.trip) if isinstance(told, str) else column.type.same(value, told[0])
        for told in found.values()
    )
    return {} if is_well and len(words) == 1 else {shape: repr(told) for shape, told in found.items()}


def _became(trip: Trip, column: Column, element: Any, place: Path) -> str | tuple[Any]:
    """The error that the caller of a pipeline gets for an element; or else the arriving value, in a tuple."""
    try:
        [record] = call_guarded(MetricsContainer(""), WHERE, lambda: list(trip.send(column, element, place)))
    except StepFailure as marked:
        failure = find_failure(str(marked))
        assert failure is not None
        error = to_exception(failure)
        return f"{type(error).__name__}: {error}"
    return (as_dict(record)["c"],)


def _is_named(told: str, trip: Trip) -> bool:
    lines = told.splitlines()
    field_named = "the field c" in lines[0] if trip.names_fields else "an element" in lines[0]
    step_named = any("'Cross' (game.py:41)" in line for line in lines)
    return field_named and step_named and lines[-1].startswith("  hint: ")


def write_records(sink: FileSink, records: Sequence[Any], path: Path) -> None:
    with contextlib.closing(sink.open_shard(str(path))) as shard:
        shard.write(records)


def as_dict(record: Any) -> dict[str, Any]:
    if isinstance(record, Mapping):
        return dict(record)
    return dict(vars(record)) if isinstance(record, Row) else dict(record._asdict())


def pairs_covered(borders: Iterable[Border]) -> str:
    """A table in Markdown: the types, the borders, and the number of spellings and values on each way."""
    lines = ["| border | ways | types | spellings | values | lacks |", "|---|---|---|---|---|---|"]
    for border in borders:
        kinds = dict.fromkeys(column.type.name for column in border.columns)
        values = sum(len(column.values) for column in border.columns)
        lacks = "; ".join(f"{name}: {why}" for name, why in border.lacks.items())
        lines.append(
            f"| {border.name} | {', '.join(border.ways)} | {', '.join(kinds)} | {len(border.columns)} "
            f"| {values * len(border.ways)} | {lacks} |"
        )
    return "\n".join(lines)


def unaccounted(border: Border) -> set[str]:
    """The types that a border neither carries nor says that it lacks."""
    return {kind.name for kind in TYPES} - {column.type.name for column in border.columns} - set(border.lacks)
