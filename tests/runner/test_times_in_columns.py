"""The times of a stream's elements: what is read from a column is what the elements say, for each type of column."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.io.formats.text_source import TextSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.watermarks import BoundedDisorder
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock_spark.columns.values import micros_of, to_dicts, to_rows
from penstock_spark.sources.scan import Part
from penstock_spark.stream.sources.reading import StreamReader

_ENDS_SECONDS = (MIN_TIMESTAMP.micros // 10**6, MAX_TIMESTAMP.micros // 10**6)
_WHOLE = (
    0,
    1,
    -1,
    127,
    1_700_000_000,
    *(end + by for end in _ENDS_SECONDS for by in (-1, 0, 1)),
    2**63 - 1,
    -(2**63),
)
_UNSIGNED = (0, 1, 1_700_000_000, *(_ENDS_SECONDS[1] + by for by in (-1, 0, 1)), 2**63, 2**64 - 1)
_FLOATS = (
    *(0.0, -0.0, 0.1, 1.5, -1.5, 1e-7, -1e-7, 1_700_000_000.123456, 1_700_000_000.9999999, -1.0000005),
    *(float(end) for end in _ENDS_SECONDS),
    *(9223372036854.77, 9.3e12, -9.3e12, 1e300, float("nan"), float("inf"), float("-inf")),
)
_NUMBERS_OF_TIMES = (0, 1, -1, -999, 999, 1001, -1001, 1_700_000_000, -62_135_596_800)
_UNITS = ("s", "ms", "us", "ns")

KINDS: dict[pa.DataType, tuple[Any, ...]] = {
    **{
        pa.timestamp(unit, zone): _NUMBERS_OF_TIMES
        for unit in _UNITS
        for zone in (None, "UTC", "Europe/Berlin")
    },
    pa.int8(): _WHOLE,
    pa.int16(): _WHOLE,
    pa.int32(): _WHOLE,
    pa.int64(): _WHOLE,
    pa.uint8(): _UNSIGNED,
    pa.uint32(): _UNSIGNED,
    pa.uint64(): _UNSIGNED,
    pa.float16(): _FLOATS,
    pa.float32(): _FLOATS,
    pa.float64(): _FLOATS,
    pa.duration("us"): _NUMBERS_OF_TIMES,
    pa.date32(): (0, 1, -1),
    pa.date64(): (0, 86_400_000),
    pa.decimal128(20, 6): (decimal.Decimal("1.5"), decimal.Decimal(0)),
    pa.bool_(): (True, False),
    pa.string(): ("1", "2026-01-01"),
    pa.binary(): (b"1",),
    pa.time64("us"): (0, 5),
    pa.null(): (None,),
    pa.list_(pa.int64()): ([1], []),
    pa.struct([("seconds", pa.int64())]): ({"seconds": 1},),
    pa.dictionary(pa.int32(), pa.int64()): (1, 2),
    pa.dictionary(pa.int32(), pa.timestamp("us", "UTC")): (1, 2),
}
_OF_NUMBERS = (pa.types.is_temporal, pa.types.is_duration)


def column_of(kind: pa.DataType, values: list[Any]) -> pa.Array | None:
    """The values as a column; None if the type has not all of them."""
    if pa.types.is_dictionary(kind):
        column = column_of(kind.value_type, values)
        return None if column is None else column.dictionary_encode()
    try:
        if any(test(kind) for test in _OF_NUMBERS):
            own = pa.int32() if kind == pa.date32() else pa.int64()
            return pa.array(values, own).cast(kind)
        return (
            pa.array(values, pa.float64()).cast(kind)
            if pa.types.is_floating(kind)
            else pa.array(values, kind)
        )
    except (pa.ArrowInvalid, OverflowError):
        return None


def columns_of(kind: pa.DataType, seed: int) -> Iterator[pa.Array]:
    """Columns with each value alone and beside others, and with nulls; then some in a random order."""
    chance = random.Random(seed)
    own = [value for value in KINDS[kind] if column_of(kind, [value]) is not None]
    lists = [
        [],
        own,
        *([value] for value in own),
        *([own[0], value, own[-1]] for value in own),
        [own[0], None],
    ]
    lists += [chance.choices([*own, None], k=5) for _ in range(5)] + [
        chance.choices(own, k=5) for _ in range(6)
    ]
    for values in lists:
        column = column_of(kind, values)
        assert column is not None
        # A column that begins inside of another one.
        yield column
        yield pa.concat_arrays([column, column]).slice(len(column))


def outcome(
    columns: pa.RecordBatch, times: dict[str, str], form: Any, *, by_column: bool, rejects: bool
) -> Any:
    """The times of elements, what is rejected and what is found too far ahead; or the error."""
    source = StreamSource(
        TextSource("x"), BoundedDisorder(1), has_rejects=rejects, max_ahead_micros=10**15, **times
    )

    def decode(batch: pa.RecordBatch) -> list[Part]:
        return [Part((), form(batch), columns=batch if by_column else None)]

    read = StreamReader(source, lambda: decode, "at step 'Read'")
    try:
        return [
            (
                *(arrival.tick_micros, arrival.ahead, repr(arrival.batch.values), arrival.batch.timestamps),
                *(
                    arrival.summary,
                    list(arrival.rejected),
                ),
            )
            for arrival in read(columns, 1_700_000_000_000_000)
        ]
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("form", [to_dicts, to_rows])
@pytest.mark.parametrize("kind", list(KINDS), ids=str)
def test_a_column_says_what_its_elements_say(kind: pa.DataType, form: Any) -> None:
    event_time, both = {"event_time": "at"}, {"event_time": "at", "arrival_time": "arrived"}
    # Each two of: a part of a column, a time of arrival, rejects.
    ways = ((event_time, False), (both, True)), ((event_time, True), (both, False))
    for number, column in enumerate(columns_of(kind, seed=1)):
        columns = pa.RecordBatch.from_arrays([column, column], names=["at", "arrived"])
        for times, rejects in ways[number % 2]:
            by_column = outcome(columns, times, form, by_column=True, rejects=rejects)
            assert by_column == outcome(columns, times, form, by_column=False, rejects=rejects), column


def _has_its_times(kind: pa.DataType) -> bool:
    column = column_of(kind, [KINDS[kind][0]])
    return column is not None and micros_of(pa.record_batch([column], names=["at"]), "at") is not None


def test_numbers_and_timestamps_are_read_without_their_elements() -> None:
    """Otherwise, the law above would compare the way of the elements with itself."""
    whole = {"int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float", "double"}
    timestamps = {str(kind) for kind in KINDS if pa.types.is_timestamp(kind)}
    assert {str(kind) for kind in KINDS if _has_its_times(kind)} == whole | timestamps


@pytest.mark.parametrize("name", ["at", "__dict__", "gone"])
def test_only_a_column_has_times_of_columns(name: str) -> None:
    columns = pa.record_batch({"__dict__": [1], "at": [2]})
    assert micros_of(columns, name) == ([2_000_000] if name == "at" else None)


def test_the_least_datetime_is_a_time() -> None:
    column = pa.array([datetime.datetime.min, datetime.datetime.max], pa.timestamp("us"))
    columns = pa.record_batch([column], names=["at"])
    assert micros_of(columns, "at") == [-62_135_596_800_000_000, 253_402_300_799_999_999]
