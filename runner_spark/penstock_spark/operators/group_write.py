"""The map side of a grouping: values by key and window, chunk by chunk, as exchange rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.coders.deterministic import encode_keys
from penstock.error import three_parts
from penstock.metrics.execution import MetricsContainer, set_current
from penstock_spark.operators.batch import Batch, by_windows, dumps
from penstock_spark.operators.failure import step_failed
from penstock_spark.operators.keys import key_is_self_contained, keys_to_carry, rank_of, window_encoder
from penstock_spark.operators.program import GroupWriterSpec
from penstock_spark.operators.pushing import Quiet, Records
from penstock_spark.rows import exchange_records

FLUSH_BYTES = 8 << 20
_FIRST_FLUSH_ELEMENTS = 128
_MOST_FLUSH_ELEMENTS = 100_000
_NEVER_PAIRS = (str, bytes, dict, set, frozenset)


class FlushLimit:
    """How many elements to hold before writing rows: learned from the bytes that the last ones took.

    >>> limit = FlushLimit()
    >>> limit.learn(elements=1000, size_bytes=800_000_000)
    >>> limit.elements
    10
    """

    def __init__(self, most_elements: int = _MOST_FLUSH_ELEMENTS) -> None:
        self.most_elements = most_elements
        self.elements = _FIRST_FLUSH_ELEMENTS

    def learn(self, elements: int, size_bytes: int) -> None:
        """Sets the limit so that the next flush takes about `FLUSH_BYTES`, growing at most fourfold at a time."""
        fitting = FLUSH_BYTES * max(elements, 1) // max(size_bytes, 1)
        self.elements = max(1, min(fitting, self.elements * 4, self.most_elements))


def split_pairs(batch: Batch, where: str) -> tuple[list[Any], list[Any]]:
    """The keys and the values of a batch of pairs; texts, dicts and sets of two are no pairs."""
    kinds = set(map(type, batch.values))
    if kinds != {tuple} and any(issubclass(kind, _NEVER_PAIRS) for kind in kinds):
        step_failed(_not_a_pair(batch.values), where)
    try:
        return [key for key, _ in batch.values], [value for _, value in batch.values]
    except (TypeError, ValueError):
        step_failed(_not_a_pair(batch.values), where)


def _not_a_pair(values: list[Any]) -> TypeError:
    kinds = {type(value).__name__ for value in values if not (isinstance(value, tuple) and len(value) == 2)}
    return TypeError(
        three_parts(
            f"a grouping reads elements that are not (key, value) pairs: {', '.join(sorted(kinds)) or 'unknown'}",
            hint="map the elements to 2-tuples first, for example with beam.WithKeys",
        )
    )


class GroupWriter(Quiet):
    """Collects values by window and key, and writes each list as one row."""

    def __init__(self, spec: GroupWriterSpec, partition: int, metrics: MetricsContainer) -> None:
        self.spec = spec
        self.metrics = metrics
        self._encode_window = window_encoder(spec.windowing)
        self._rank = rank_of(spec.windowing)
        self._sequence = partition << 40
        self._limit = FlushLimit()
        self._clear()

    def _clear(self) -> None:
        self._lists: dict[Any, dict[bytes, list[Any]]] = {}
        self._keys: dict[bytes, Any] = {}
        self._ranks: dict[tuple[Any, bytes], int] = {}
        self._held = 0

    def _guard(self, call: Callable[..., Any], *args: Any) -> Any:
        """A call that may reach coders and window functions of the user's."""
        set_current(self.metrics)
        try:
            return call(*args)
        except Exception as error:
            step_failed(error, self.spec.where)

    def push(self, batch: Batch) -> Records:
        """Takes a batch of pairs."""
        originals, values = split_pairs(batch, self.spec.where)
        keys = self._guard(encode_keys, originals)
        self._keys.update(keys_to_carry(keys, originals))
        for windows, some_keys, some_values in by_windows(batch.windows, keys, values):
            for window in windows:
                lists = self._lists.setdefault(window, {})
                for key, value in zip(some_keys, some_values, strict=True):
                    if key in lists:
                        lists[key].append(value)
                    else:
                        lists[key] = [value]
        if self._rank is not None:
            self._guard(self._note_ranks, batch, keys)
        self._held += len(values)
        if self._held >= self._limit.elements:
            yield self._guard(self._flush)

    def _note_ranks(self, batch: Batch, keys: list[bytes]) -> None:
        assert self._rank is not None
        for key, (_, timestamp, windows, _) in zip(keys, batch.rows(), strict=True):
            for window in windows:
                rank = self._rank(timestamp, window)
                self._ranks[window, key] = min(rank, self._ranks.get((window, key), rank))

    def finish(self) -> Records:
        """Writes what is left."""
        if self._held:
            yield self._guard(self._flush)

    def _flush(self) -> Any:
        columns: list[list[Any]] = [[], [], [], [], [], [], []]
        keys, firsts, seconds, others, ranks, sequences, chunks = columns
        for window, lists in self._lists.items():
            first, second, other = self._encode_window(window)
            keys.extend(lists)
            firsts.extend([first] * len(lists))
            seconds.extend([second] * len(lists))
            others.extend([other] * len(lists))
            ranks.extend(
                [self._ranks.get((window, key), 0) for key in lists] if self._ranks else [0] * len(lists)
            )
            chunks.extend(self._chunks(lists))
        sequences.extend(range(self._sequence, self._sequence + len(keys)))
        self._sequence += len(keys)
        self._limit.learn(self._held, sum(map(len, chunks)))
        self._clear()
        return exchange_records(self.spec.port, self.spec.tag, *columns)

    def _chunks(self, lists: dict[bytes, list[Any]]) -> list[bytes]:
        if not self._keys:
            return list(map(dumps, lists.values()))
        return [
            dumps(values if key_is_self_contained(key) else (self._keys[key], values))
            for key, values in lists.items()
        ]
