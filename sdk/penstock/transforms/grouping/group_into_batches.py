"""Groups the values of one key into lists of at most a given length: `GroupIntoBatches`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.base.chunks import split_into_chunks
from penstock.checks.whole_numbers import check_whole_number
from penstock.coders import FastPrimitivesCoder, VarIntCoder
from penstock.construction.applicable import K, V
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import UnsupportedByRunner, refusal
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BagRuntimeState,
    BagStateSpec,
    BaseTimer,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.transforms.elements.pardo import FlatMapTuple, ParDo
from penstock.transforms.grouping.group_by_key import GroupByKey
from penstock.typehints import KV, Tuple, with_input_types
from penstock.typehints import Iterable as IterableHint
from penstock.typehints.sharded_key_type import ShardedKeyTypeConstraint
from penstock.typehints.trivial_inference import key_value_types
from penstock.utils import clock
from penstock.utils.sharded_key import ShardedKey
from penstock.windows.time_domain import TimeDomain

_MOST_KEYS_COUNTED = 100_000


class _Batches(PTransform[Any, Any]):
    def __init__(
        self,
        batch_size: int,
        max_buffering_duration_secs: float | None = None,
        clock: Callable[[], float] = clock.seconds,
    ) -> None:
        super().__init__()
        check_whole_number("batch_size", batch_size)
        if batch_size <= 0:
            what = f"batch_size must be a positive value, got {batch_size}"
            raise refusal(ValueError, what, hint="pass 1 or more")
        if max_buffering_duration_secs is not None and max_buffering_duration_secs < 0:
            what = f"max_buffering_duration must be a non-negative value, got {max_buffering_duration_secs}"
            raise refusal(ValueError, what, hint="pass seconds; 0 or None for no limit")
        self.batch_size = batch_size
        self.max_buffering_duration_secs = max_buffering_duration_secs or 0
        self.clock = clock

    def grouped(self, pcoll: PCollection[Any], output_type: object) -> PCollection[Any]:
        """The values of each key in batches; UnsupportedByRunner if batches may wait only so long and windows merge."""
        if not pcoll.is_bounded:
            if not pcoll.windowing.windowfn.is_merging():
                gather = GatheringDoFn(self.batch_size, self.max_buffering_duration_secs)
                return pcoll | "Gather" >> ParDo(gather).with_output_types(output_type)
            if self.max_buffering_duration_secs:
                what = "max_buffering_duration_secs needs state, and the windows of the input merge"
                hint = "leave it out; batches then come with the panes of the input's windows"
                raise UnsupportedByRunner(what, where=f"at step {self.label!r}", hint=hint)
        return pcoll | GroupByKey() | FlatMapTuple(batches_of(self.batch_size)).with_output_types(output_type)


def batches_of(batch_size: int) -> Callable[[Any, Iterable[Any]], Iterator[tuple[Any, list[Any]]]]:
    """Returns the function from a key and its values to KVs of the key and a list; it holds one list at a time."""

    def batches(key: object, values: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
        return ((key, batch) for batch in split_into_chunks(iter(values), batch_size))

    return batches


@with_input_types(Tuple[K, V])
class GroupIntoBatches(_Batches):
    """Emits lists of up to `batch_size` values of one key and window (Beam's ``GroupIntoBatches``).

    Every batch except the last of a key and window is full, unless it has waited too long. Batches of unbounded input
    are emitted as soon as they are full; where windows merge, they are made from the panes of the input's trigger.

    Args:
        batch_size: The number of values in a batch, at least 1.
        max_buffering_duration_secs: How many seconds a batch may wait until it is full; None or 0 for no limit. Bounded
            input never waits.
        clock: Has no effect: waiting uses the engine's time.

    Raises:
        ValueError: If a number is out of range.
        UnsupportedByRunner: If the waiting time is limited, and the windows of unbounded input merge.

    Example: ``rows_by_table | GroupIntoBatches(500) | MapTuple(insert_all)``.
    """

    def infer_output_type(self, input_type: object) -> object:
        key_type, value_type = key_value_types(input_type)
        return KV[key_type, IterableHint[value_type]]

    def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[K, Iterable[V]]]:
        return self.grouped(pcoll, self.infer_output_type(pcoll.element_type))

    @with_input_types(Tuple[K, V])
    class WithShardedKey(_Batches):
        """`GroupIntoBatches` under a `ShardedKey` of each key, so that a busy key's values are batched in parallel.

        The values of a key within a bundle go to its shards by the batch, so that most batches are full.
        """

        def infer_output_type(self, input_type: object) -> object:
            key_type, value_type = key_value_types(input_type)
            return KV[ShardedKeyTypeConstraint(key_type), IterableHint[value_type]]

        def expand(self, pcoll: PCollection[tuple[Any, V]]) -> PCollection[tuple[Any, Iterable[V]]]:
            key_type, value_type = key_value_types(pcoll.element_type)
            sharded_type = KV[ShardedKeyTypeConstraint(key_type), value_type]
            sharded = ParDo(ShardingDoFn(self.batch_size)).with_output_types(sharded_type)
            return self.grouped(pcoll | "Shard" >> sharded, self.infer_output_type(pcoll.element_type))


class GatheringDoFn(DoFn):
    """Keeps the values of each key and window until there are enough for a batch, or one has waited long enough."""

    VALUES = BagStateSpec("values", FastPrimitivesCoder())
    COUNT = ReadModifyWriteStateSpec("count", VarIntCoder())
    WAITED = TimerSpec("waited", TimeDomain.REAL_TIME)

    def __init__(self, batch_size: int, max_buffering_duration_secs: float) -> None:
        super().__init__()
        self._batch_size = batch_size
        self._max_buffering_duration_secs = max_buffering_duration_secs

    def process(
        self,
        element: tuple[Any, Any],
        values: BagRuntimeState = DoFn.StateParam(VALUES),
        count: ReadModifyWriteRuntimeState = DoFn.StateParam(COUNT),
        waited: BaseTimer = DoFn.TimerParam(WAITED),
    ) -> Iterator[tuple[Any, list[Any]]]:
        """Yields a batch, if this value makes it full."""
        key, value = element
        values.add(value)
        number = (count.read() or 0) + 1
        if number >= self._batch_size:
            waited.clear()
            yield from self.flush(key, values, count)
            return
        count.write(number)
        if number == 1 and self._max_buffering_duration_secs:
            waited.set_relative(self._max_buffering_duration_secs)

    @on_window_expiration
    @on_timer(WAITED)
    def flush(
        self,
        key: object = DoFn.KeyParam,
        values: BagRuntimeState = DoFn.StateParam(VALUES),
        count: ReadModifyWriteRuntimeState = DoFn.StateParam(COUNT),
    ) -> Iterator[tuple[Any, list[Any]]]:
        """Yields the waiting values, as a batch."""
        batch = list(values.read())
        values.clear()
        count.clear()
        if batch:
            yield key, batch


class ShardingDoFn(DoFn):
    """Gives every run of `run_length` values of a key, within a bundle, the next shard of that key.

    The shard depends only on the bundle's elements, so that a task that runs again makes the same shards.
    """

    def __init__(self, run_length: int) -> None:
        super().__init__()
        self._run_length = run_length

    def start_bundle(self) -> None:
        self._counts: dict[Any, int] = {}

    def process(self, element: tuple[Any, Any]) -> Iterator[tuple[ShardedKey, Any]]:
        key, value = element
        try:
            count = self._counts.get(key, 0)
        except TypeError:
            # A key that Python cannot hash can still be grouped; it has one shard.
            yield ShardedKey(key, b"0"), value
            return
        if len(self._counts) > _MOST_KEYS_COUNTED:
            self._counts.clear()
        self._counts[key] = count + 1
        yield ShardedKey(key, b"%d" % (count // self._run_length)), value
