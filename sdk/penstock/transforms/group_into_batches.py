"""Values of one key in lists of at most a given length: `GroupIntoBatches`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from penstock.error import UnsupportedByRunner, three_parts
from penstock.transforms.chunks import in_chunks
from penstock.transforms.core import DoFn, FlatMapTuple, GroupByKey, ParDo
from penstock.transforms.ptransform import PTransform
from penstock.typehints import KV, Tuple, with_input_types
from penstock.typehints import Iterable as IterableHint
from penstock.typehints.sharded_key_type import ShardedKeyTypeConstraint
from penstock.typehints.trivial_inference import key_value_types
from penstock.utils.sharded_key import ShardedKey

K = TypeVar("K")
V = TypeVar("V")

_MOST_KEYS_COUNTED = 100_000


class _Batches(PTransform[Any, Any]):
    """What the two transforms share: the arguments and their checks."""

    def __init__(
        self,
        batch_size: int,
        max_buffering_duration_secs: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        where = "at GroupIntoBatches"
        if batch_size is None or batch_size <= 0:
            what = f"batch_size must be a positive value, got {batch_size}"
            raise ValueError(three_parts(what, where=where, hint="pass 1 or more"))
        if max_buffering_duration_secs is not None and max_buffering_duration_secs < 0:
            what = f"max_buffering_duration must be a non-negative value, got {max_buffering_duration_secs}"
            raise ValueError(three_parts(what, where=where, hint="pass seconds; 0 or None for no limit"))
        self.batch_size = batch_size
        self.max_buffering_duration_secs = max_buffering_duration_secs or 0
        self.clock = clock

    def grouped(self, pcoll: Any, output_type: Any) -> Any:
        """The values of each key, in batches.

        Raises:
            UnsupportedByRunner: If a batch may wait only so long, and the input is unbounded.
        """
        if self.max_buffering_duration_secs and not pcoll.is_bounded:
            raise UnsupportedByRunner(
                "max_buffering_duration_secs over unbounded input needs state and timers",
                where=f"at step {self.label!r}",
                hint="leave it out; batches then come with the panes of the input's windows",
            )
        return pcoll | GroupByKey() | FlatMapTuple(batches_of(self.batch_size)).with_output_types(output_type)


def batches_of(batch_size: int) -> Callable[[Any, Iterable[Any]], Iterator[tuple[Any, list[Any]]]]:
    """The function from a key and its values to KVs of the key and a list; it holds one list at a time.

    >>> list(batches_of(2)("k", iter("abc")))
    [('k', ['a', 'b']), ('k', ['c'])]
    """

    def batches(key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
        return ((key, batch) for batch in in_chunks(iter(values), batch_size))

    return batches


@with_input_types(Tuple[K, V])
class GroupIntoBatches(_Batches):
    """Lists of up to `batch_size` values of one key and window (Beam's ``GroupIntoBatches``).

    Batches are cut from the panes of a `GroupByKey`: over bounded input every batch but the last of a key and
    window is full; over unbounded input batches come when the input's trigger fires, not as soon as they are
    full.

    Args:
        batch_size: How many values a batch has, at least 1.
        max_buffering_duration_secs: How many seconds a batch may wait until it is full; None or 0 for any
            time. Bounded input never waits; of unbounded input it needs state and timers.
        clock: Gives the time in seconds.

    Raises:
        ValueError: If a number is out of range.
        UnsupportedByRunner: If a batch may wait only so long, and the input is unbounded.

    Example: ``rows_by_table | GroupIntoBatches(500) | MapTuple(insert_all)``.

    >>> GroupIntoBatches(3).batch_size
    3
    """

    def expand(self, pcoll: Any) -> Any:
        """Groups, then cuts."""
        key_type, value_type = key_value_types(pcoll.element_type)
        return self.grouped(pcoll, KV[key_type, IterableHint[value_type]])

    @with_input_types(Tuple[K, V])
    class WithShardedKey(_Batches):
        """The same under a `ShardedKey` of each key, so that a busy key's values are batched in parallel.

        The values of a key within a bundle go to its shards by the batch, so that most batches are full.
        """

        def expand(self, pcoll: Any) -> Any:
            """Adds shards to keys, groups, then cuts."""
            key_type, value_type = key_value_types(pcoll.element_type)
            sharded_type = ShardedKeyTypeConstraint(key_type)
            sharded = ParDo(ShardingDoFn(self.batch_size)).with_output_types(KV[sharded_type, value_type])
            return self.grouped(pcoll | "Shard" >> sharded, KV[sharded_type, IterableHint[value_type]])


class ShardingDoFn(DoFn):
    """Gives every run of `run_length` values of a key, within a bundle, the next shard of that key.

    The shard depends only on the bundle's elements, so that a task that runs again makes the same ones.

    Args:
        run_length: How many values in a row share a shard.
    """

    def __init__(self, run_length: int) -> None:
        super().__init__()
        self._run_length = run_length

    def start_bundle(self) -> None:
        """Begins to count."""
        self._counts: dict[Any, int] = {}

    def process(self, element: tuple[Any, Any]) -> Iterator[tuple[ShardedKey, Any]]:
        """The KV with its key's current shard."""
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
