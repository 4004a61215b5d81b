"""The headers of a level's shards for another number of shards: what all shards know, and what waits for each.

All shards of a level see the same sources, clocks and commands, so they agree on these. They differ only in how far
they hold watermarks back. The new shards begin with watermarks that are as far as the old ones let them be, and hold
nothing back that they have said; but nothing was said, if the watermark waits for a source that is added.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from penstock.error import refusal
from penstock.machines.records import MAX_MICROS
from penstock.machines.trigger_machine import WATERMARK
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.transport.spreading import address
from penstock_spark.worker.keys import shard_of
from penstock_spark.worker.messages import Message, Part, WatermarkUpdate


@dataclass(frozen=True)
class Resharding:
    """Another division of the keys of a query into shards."""

    before: int  # The number of shards until now.
    after: int
    groupings: frozenset[str]  # The labels of all steps with state.
    waiting: frozenset[str]  # The steps among them whose elements wait for side inputs and lack keys.
    # The labels of state that is kept in pages of waiting elements: of all elements that wait, with or without keys.
    waiting_pages: frozenset[str]
    kept: frozenset[str]  # The labels of all state that is not given up.
    removed: frozenset[str]  # The sources that are no longer read.
    # The steps with state whose watermarks wait for a source that is added, also behind other groupings.
    waiting_anew: frozenset[str]


def merged_headers(headers: Sequence[Header], division: Resharding) -> list[Header]:
    """Returns the headers of the new shards of a level; ValueError if the shards disagree.

    Their notes have no pages, but the numbers from which on segments are new in every shard.
    """
    first = headers[0]
    for name in ("clock_micros", "last", "estimators", "is_draining"):
        if any(getattr(header, name) != getattr(first, name) for header in headers):
            raise make_disagreement_error(f"about their {name}")
    known = _watermark_updates(headers, division)
    sent = _merge_sent(headers, division)
    return [
        replace(
            first,
            watermark_updates={origin: dict(own) for origin, own in known.items()},
            holds={},
            estimators={
                origin: state
                for origin, state in first.estimators.items()
                if not _begins_anew(origin, division)
            },
            sent=dict(sent),
            held={},
            notes={
                label: PageNotes(next_segment=max(own.next_segment for own in noted))
                for label, noted in _notes(headers, division).items()
            },
            pending=pending,
        )
        for pending in _divide_pending(headers, division)
    ]


def _notes(headers: Sequence[Header], division: Resharding) -> dict[str, list[PageNotes]]:
    found: dict[str, list[PageNotes]] = {}
    for header in headers:
        for label in header.notes.keys() & division.kept:
            found.setdefault(label, []).append(header.notes[label])
    return found


def _begins_anew(origin: str, division: Resharding) -> bool:
    """True if a watermark waits for an added source, or belongs to a source that is not read now and may come back."""
    return origin in division.waiting_anew or any(
        origin == label or origin.startswith(f"{label}.") for label in division.removed
    )


def make_disagreement_error(about: str) -> ValueError:
    what = f"the state cannot be divided again: the shards of a level disagree {about}"
    return refusal(ValueError, what, hint="continue with the number of shards that the checkpoint has")


def _watermark_updates(headers: Sequence[Header], division: Resharding) -> dict[str, dict[float, int]]:
    first = headers[0]
    for name in ("watermark_updates", "holds"):
        if any(getattr(header, name) != getattr(first, name) for header in headers):
            raise make_disagreement_error("about the watermarks of their inputs")
    return {
        origin: {**own, WATERMARK: first.watermark_of(origin)}
        for origin, own in first.watermark_updates.items()
        if not _begins_anew(origin, division)
    }


def _merge_sent(headers: Sequence[Header], division: Resharding) -> dict[tuple[str, int], int]:
    """Returns the watermarks that each new shard has sent: all old shards allow them, unless they start over."""
    if any(header.sent != headers[0].sent for header in headers):
        raise make_disagreement_error("about the watermarks that they have sent")
    return {
        key: min(micros, *(header.held.get(key, MAX_MICROS) for header in headers))
        for key, micros in headers[0].sent.items()
        if not _begins_anew(key[0], division)
    }


def _divide_pending(headers: Sequence[Header], division: Resharding) -> list[list[Message]]:
    """Returns the messages that wait for each new shard: all shards have the same ones, with their own elements."""
    told = [
        [_without_elements(message) for message in header.pending if not _without_elements(message).is_empty]
        for header in headers
    ]
    if any(own != told[0] for own in told):
        raise make_disagreement_error("about the times of messages that wait")
    kept = [
        replace(
            message,
            watermark_updates=[
                update for update in message.watermark_updates if update.origin not in division.groupings
            ],
        )
        for message in told[0]
    ]
    if updates := _pending_updates(headers[0], division):
        # Watermarks do not depend on the order of these messages.
        kept.append(Message(told[0][-1].producer, told[0][-1].number, watermark_updates=updates))
    pending = [list(kept) for _ in range(division.after)]
    for old, header in enumerate(headers):
        for message in header.pending:
            for shard, (parts, pickled_keys) in enumerate(_divide_message(old, message, division)):
                if parts:
                    own = Message(message.producer, message.number, parts=parts, pickled_keys=pickled_keys)
                    pending[shard].append(own)
    return pending


def _without_elements(message: Message) -> Message:
    """Removes the elements of a message: the rest is the same for all shards."""
    return replace(message, parts={}, pickled_keys={})


def _pending_updates(header: Header, division: Resharding) -> list[WatermarkUpdate]:
    """Returns the watermarks of groupings that wait, as far as all old shards let them be."""
    waiting = [update for message in header.pending for update in message.watermark_updates]
    known = Header(
        watermark_updates={origin: dict(own) for origin, own in header.watermark_updates.items()},
        holds={origin: dict(own) for origin, own in header.holds.items()},
    )
    found = []
    updates = sorted(waiting, key=lambda update: update.logical_time)
    for logical_time, at_once in groupby(updates, key=lambda update: update.logical_time):
        before: dict[str, int] = {}
        for update in at_once:
            if update.origin in division.groupings and not _begins_anew(update.origin, division):
                before.setdefault(update.origin, known.watermark_of(update.origin))
                known.take(update)
        found += [
            WatermarkUpdate(logical_time, origin, known.watermark_of(origin))
            for origin, micros in before.items()
            if known.watermark_of(origin) > micros
        ]
    return found


_Content = tuple[dict[str, list[Part]], dict[bytes, Any]]
"""The elements of a message, and the keys that it carries."""


def _divide_message(old: int, message: Message, division: Resharding) -> list[_Content]:
    """Divides the elements of a message to an old shard among the new ones."""
    found: list[_Content] = [({}, {}) for _ in range(division.after)]
    sides = _sides(message.parts, division.groupings)
    for label, parts in message.parts.items():
        for part in parts:
            for shard, own in _shares(part, label in sides, old, division):
                into, pickled_keys = found[shard]
                into.setdefault(label, []).append(own)
                pickled_keys.update(
                    {name: message.pickled_keys[name] for name in own.names if name in message.pickled_keys}
                )
    return found


def _sides(labels: Collection[str], groupings: Collection[str]) -> set[str]:
    """Returns the addresses of side inputs among those of parts."""
    found = set()
    for label in labels:
        step, _, number = label.rpartition("<")
        if step in groupings and number.isdecimal() and label == address(step, int(number)):
            found.add(label)
    return found


def _shares(part: Part, is_side: bool, old: int, division: Resharding) -> list[tuple[int, Part]]:
    if is_side:
        # Every shard has them all.
        return [(shard, part) for shard in range(division.after)] if old == 0 else []
    if not part.names:
        return [(old % division.after, part)]
    places: dict[int, list[int]] = {}
    for place, name in enumerate(part.names):
        places.setdefault(shard_of(name, division.after), []).append(place)
    return [(shard, _take_elements(part, own)) for shard, own in places.items()]


def _take_elements(part: Part, places: list[int]) -> Part:
    return part._replace(
        names=[part.names[place] for place in places],
        batch=part.batch.taken(places),
        counts=None if part.counts is None else [part.counts[place] for place in places],
        timestamps=None if part.timestamps is None else [part.timestamps[place] for place in places],
    )
