"""The headers of a level's shards for another number of shards: what all shards know, and what waits for each.

All shards of a level see the same sources, clocks and commands, so they agree on these. They differ only in what they
have told later levels: until all have told a watermark, it is unknown, and then the least counts. So each new shard
has told that; but nothing, if the watermark waits for a source that is added.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.error import refusal
from penstock.machines.records import MIN_MICROS
from penstock_spark.stream.header import Header
from penstock_spark.stream.page_index import PageNotes
from penstock_spark.stream.spreading import address
from penstock_spark.stream.writer import shard_of
from penstock_spark.worker.messages import Message, Part, WatermarkUpdate


@dataclass(frozen=True)
class Division:
    """Another division of the keys of a query into shards."""

    before: int  # The number of shards until now.
    after: int
    groupings: frozenset[str]  # The labels of all steps with state.
    waiting: frozenset[str]  # Of these, the steps whose elements have no keys, but wait for side inputs.
    # The labels of state that is kept in parcels: of all elements that wait, with or without keys.
    parcels: frozenset[str]
    kept: frozenset[str]  # The labels of all state that is not given up.
    removed: frozenset[str]  # The sources that are no longer read.
    # The steps with state whose watermarks wait for a source that is added, also behind other groupings.
    waiting_anew: frozenset[str]


def merged_headers(headers: Sequence[Header], division: Division) -> list[Header]:
    """The headers of the new shards of a level; ValueError if the shards disagree.

    Their notes tell nothing of pages, but from where on numbers of segments are new in every shard.
    """
    first = headers[0]
    for name in ("clock_micros", "last", "estimators", "is_draining"):
        if any(getattr(header, name) != getattr(first, name) for header in headers):
            raise disagreement(f"about their {name}")
    known = _watermark_updates(headers, division)
    sent = _sent(headers, division)
    return [
        replace(
            first,
            watermark_updates={
                origin: {percentile: dict(own) for percentile, own in updates.items()}
                for origin, updates in known.items()
            },
            estimators={
                origin: state
                for origin, state in first.estimators.items()
                if not _begins_anew(origin, division)
            },
            sent=dict(sent),
            notes={
                label: PageNotes(next_segment=max(own.next_segment for own in noted))
                for label, noted in _notes(headers, division).items()
            },
            pending=pending,
        )
        for pending in _pending(headers, division)
    ]


def _notes(headers: Sequence[Header], division: Division) -> dict[str, list[PageNotes]]:
    found: dict[str, list[PageNotes]] = {}
    for header in headers:
        for label in header.notes.keys() & division.kept:
            found.setdefault(label, []).append(header.notes[label])
    return found


def _begins_anew(origin: str, division: Division) -> bool:
    """Whether a watermark waits for an added source, or belongs to a source that is not read now and may come back."""
    return origin in division.waiting_anew or any(
        origin == label or origin.startswith(f"{label}.") for label in division.removed
    )


def disagreement(about: str) -> ValueError:
    what = f"the state cannot be divided anew: the shards of a level disagree {about}"
    return refusal(ValueError, what, hint="go on with the number of shards that the checkpoint has")


def _watermark_updates(
    headers: Sequence[Header], division: Division
) -> dict[str, dict[float, dict[int, int]]]:
    found: dict[str, dict[float, dict[int, int]]] = {}
    if any(header.watermark_updates != headers[0].watermark_updates for header in headers):
        raise disagreement("about the watermarks of their inputs")
    for origin, updates in headers[0].watermark_updates.items():
        if _begins_anew(origin, division):
            continue
        if origin not in division.groupings:
            # A source, of which every shard computes the watermark.
            found[origin] = updates
            continue
        for percentile, own in updates.items():
            if (micros := _least(own, division.before)) is not None:
                found.setdefault(origin, {})[percentile] = dict.fromkeys(range(division.after), micros)
    return found


def _least(of_producers: Mapping[int, int], producers: int) -> int | None:
    """The watermark of a grouping; None until all of its shards have told one."""
    return min(of_producers.values()) if len(of_producers) >= producers else None


def _sent(headers: Sequence[Header], division: Division) -> dict[tuple[str, int], int]:
    """What each new shard has told: what all old shards have told, unless it begins anew."""
    everywhere = set.intersection(*(set(header.sent) for header in headers))
    return {
        key: min(header.sent[key] for header in headers)
        for key in everywhere
        if not _begins_anew(key[0], division)
    }


def _pending(headers: Sequence[Header], division: Division) -> list[list[Message]]:
    """What waits for each new shard: every shard has the same messages, with elements of its own."""
    messages = [{(each.producer, each.number): each for each in header.pending} for header in headers]
    if any(own.keys() != messages[0].keys() for own in messages):
        raise disagreement("about the messages that wait")
    pending: list[list[Message]] = [[] for _ in range(division.after)]
    for key, first in messages[0].items():
        shards = [own[key] for own in messages]
        if any(_told(message) != _told(first) for message in shards):
            raise disagreement("about the times of messages that wait")
        kept = [update for update in first.watermark_updates if update.origin not in division.groupings]
        for shard, own in enumerate(_divided(shards, division)):
            pending[shard].append(replace(first, watermark_updates=kept, parts=own[0], carried=own[1]))
    updates = _pending_updates(headers[0], division)
    if updates:
        # Behind all others of this producer; its place among messages means nothing to watermarks.
        producer = max(producer for producer, _ in messages[0])
        number = 1 + max(number for own, number in messages[0] if own == producer)
        for own_messages in pending:
            own_messages.append(Message(producer, number, watermark_updates=list(updates)))
    return pending


def _told(message: Message) -> tuple[Any, ...]:
    return message.timeline, message.ends, message.watermark_updates, message.summaries, message.signals


def _pending_updates(header: Header, division: Division) -> list[WatermarkUpdate]:
    """The watermarks of groupings that wait, as if all new shards had told them."""
    waiting = [update for message in header.pending for update in message.watermark_updates]
    known: dict[tuple[str, float], dict[int, int]] = {
        (origin, percentile): dict(own)
        for origin, updates in header.watermark_updates.items()
        for percentile, own in updates.items()
    }
    found = []
    for update in sorted(waiting, key=lambda update: update.logical_time):
        if update.origin not in division.groupings or _begins_anew(update.origin, division):
            continue
        of_producers = known.setdefault((update.origin, update.percentile), {})
        before = _least(of_producers, division.before)
        of_producers[update.producer] = max(update.micros, of_producers.get(update.producer, MIN_MICROS))
        micros = _least(of_producers, division.before)
        if micros is not None and (before is None or micros > before):
            found += [update._replace(producer=producer, micros=micros) for producer in range(division.after)]
    return found


_Content = tuple[dict[str, list[Part]], dict[bytes, Any]]
"""The elements of a message, and the keys that it carries."""


def _divided(messages: Sequence[Message], division: Division) -> list[_Content]:
    """The elements of one producer's messages to the old shards, for the new ones."""
    found: list[_Content] = [({}, {}) for _ in range(division.after)]
    sides = _sides(messages[0].parts, division.groupings)
    for old, message in enumerate(messages):
        for label, parts in message.parts.items():
            for part in parts:
                for shard, own in _shares(part, label in sides, old, division):
                    into, carried = found[shard]
                    into.setdefault(label, []).append(own)
                    carried.update(
                        {name: message.carried[name] for name in own.names if name in message.carried}
                    )
    return found


def _sides(labels: Collection[str], groupings: Collection[str]) -> set[str]:
    """The addresses of side inputs among those of parts."""
    found = set()
    for label in labels:
        step, _, number = label.rpartition("<")
        if step in groupings and number.isdecimal() and label == address(step, int(number)):
            found.add(label)
    return found


def _shares(part: Part, is_side: bool, old: int, division: Division) -> list[tuple[int, Part]]:
    if is_side:
        # Every shard has them all.
        return [(shard, part) for shard in range(division.after)] if old == 0 else []
    if not part.names:
        return [(old % division.after, part)]
    places: dict[int, list[int]] = {}
    for place, name in enumerate(part.names):
        places.setdefault(shard_of(name, division.after), []).append(place)
    return [(shard, _taken(part, own)) for shard, own in places.items()]


def _taken(part: Part, places: list[int]) -> Part:
    return part._replace(
        names=[part.names[place] for place in places],
        batch=part.batch.taken(places),
        counts=None if part.counts is None else [part.counts[place] for place in places],
        timestamps=None if part.timestamps is None else [part.timestamps[place] for place in places],
    )
