"""Passes what arrives at a grouping at one logical time to the machines, one by one or combined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from operator import itemgetter
from typing import Any

from penstock.coders.deterministic import decode_key
from penstock.machines.arrivals import united
from penstock.machines.records import Arrival, Element, Times
from penstock_spark.stream.shards.keys import Fired, KeyTable
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Message, Part


def by_grouping(parts: Iterable[tuple[str, Part, Message]]) -> dict[str, list[tuple[Part, Message]]]:
    groups: dict[str, list[tuple[Part, Message]]] = {}
    for label, part, message in parts:
        groups.setdefault(label, []).append((part, message))
    return groups


def arrive(keys: KeyTable, parts: Iterable[tuple[Part, Message]], times: Times) -> Iterator[Fired]:
    """The results of all that arrives at one logical time; the parts are in the order of their producers.

    What several tasks have combined is one arrival for each key and window.
    """
    parts = list(parts)
    keys.read(name for part, _ in parts for name in part.names)
    combined: list[tuple[Part, Message]] = []
    for part, message in parts:
        if part.counts is None:
            yield from keys.elements(part.names, _elements(part.batch), message.carried, times)
        else:
            combined.append((part, message))
    carried = {name: key for _, message in combined for name, key in message.carried.items()}
    late: list[tuple[int, bytes, Fired]] = []
    for name, arrival in _united(keys, [part for part, _ in combined]):
        fired = keys.arrival(name, carried.get(name), arrival, times)
        if fired[1]:
            late.append((arrival.window.end_micros, name, fired))
    # Which key comes first depends on which tasks have read what.
    yield from (fired for *_, fired in sorted(late, key=itemgetter(0, 1)))


def elements_of(parts: Iterable[tuple[Part, Message]]) -> Iterator[tuple[Any, Element]]:
    """All elements that arrive one by one, each with its key."""
    for part, message in parts:
        for name, element in zip(part.names, _elements(part.batch), strict=True):
            yield message.carried[name] if name in message.carried else decode_key(name), element


def _elements(batch: Batch) -> Iterator[Element]:
    full, panes = batch.expanded(), batch.panes
    kinds = [pane.kind for pane in panes] if isinstance(panes, list) else repeat(panes.kind, len(full.values))
    rows = zip(full.values, full.timestamps, full.windows, kinds, strict=True)  # type: ignore[arg-type]
    # To make a named tuple by its own constructor takes three times as long.
    return map(tuple.__new__, repeat(Element), rows)


def _united(keys: KeyTable, parts: list[Part]) -> Iterator[tuple[bytes, Arrival]]:
    if len(parts) == 1:
        # A producer gives each key and window once in a part.
        yield from _arrivals_of(parts[0])
        return
    of_keys: dict[bytes, list[Arrival]] = {}
    for part in parts:
        for name, arrival in _arrivals_of(part):
            of_keys.setdefault(name, []).append(arrival)
    for name, arrivals in of_keys.items():
        for arrival in united(keys.machine.program, arrivals):
            yield name, arrival


def _arrivals_of(part: Part) -> Iterator[tuple[bytes, Arrival]]:
    batch, counts = part.batch.expanded(), part.counts or ()
    timestamps = part.timestamps or [()] * len(counts)
    columns = zip(part.names, batch.windows, batch.values, counts, timestamps, strict=True)
    for name, (window,), held, count, own_timestamps in columns:
        yield name, Arrival(window, held, count, own_timestamps)
