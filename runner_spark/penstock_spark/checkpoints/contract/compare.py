"""Checks whether the state in a checkpoint fits a pipeline, and says in words what does not.

The label of a step finds its state. So steps without state may change, come and go; a grouping keeps its state as
long as its label, its level and the format of its state stay the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.checks.similar_names import find_nearest
from penstock_spark.checkpoints.contract.field_orders import find_moved_fields
from penstock_spark.checkpoints.contract.key_coders import find_changed_key_coders
from penstock_spark.checkpoints.contract.operators import levels_of_operators
from penstock_spark.session.spark_versions import version_of

Signature = dict[str, Any]
"""The result of `penstock_spark.checkpoints.contract.signature.signature_of`."""

_PARTS_OF_GROUPING = {
    "windows": "other windows",
    "trigger": "another trigger",
    "accumulation": "another accumulation mode",
    "lateness": "another allowed lateness",
    "timestamp": "another output timestamp",
    "on_time": "a different rule for the pane at a window's end",
    "closing": "a different rule for a window's last pane",
    "combine": "another CombineFn",
    "held": "windows with different contents",
}
_PARTS_OF_SOURCE = {
    "kind": "has another kind",
    "watermark": "estimates its watermark in a different way",
    "partition": "has other partitions",
    "tick": "has another tick",
}
_NOTES_OF_SOURCE = {
    "policy": "has a different watermark policy, which fits the state",
    "description": "has a different description; data that was read before is not read again",
}


@dataclass(frozen=True)
class Comparison:
    # Why the state does not fit: a sentence each, then a line with the old and a line with the new value.
    refusals: list[str]
    notes: list[str]  # Changes that the user should know although the state fits, likewise.
    dropped: tuple[str, ...] = ()  # The groupings whose state is given up.


def compare(old: Signature, new: Signature, drop_state: Collection[str] = ()) -> Comparison:
    """Compares the plan of a checkpoint with the plan that should continue from it.

    `drop_state` has the labels of groupings whose state may be given up.
    """
    kept = _with_state(old)
    if kept and not kept & _with_state(new):
        what = (
            "it belongs to a different pipeline: this one has none of the checkpoint's sources and groupings"
        )
        return Comparison(
            [_describe_change(what, ", ".join(sorted(kept)), ", ".join(sorted(_with_state(new))))], []
        )
    gone = [label for label in _groupings(old) if label not in _groupings(new)]
    dropped = tuple(label for label in gone if label in drop_state)
    refusals = [
        *_of_all(old, new),
        *_of_sources(old, new, drop_state),
        *_of_levels(old, new, dropped),
        *_of_groupings(old, new),
        *_of_native(old, new),
        *_of_drop_state(new, drop_state),
    ]
    return Comparison(refusals, [*_notes(old, new, dropped), *_unknown(old, new, drop_state)], dropped)


_Groupings = dict[str, tuple[int, dict[str, Any]]]


def _groupings(signature: Signature) -> _Groupings:
    return {
        label: (number, grouping)
        for number, level in enumerate(signature["levels"], 1)
        for label, grouping in level.items()
    }


def _sources(signature: Signature) -> dict[str, dict[str, Any]]:
    return {source["label"]: source for source in signature["sources"]}


def _natives(signature: Signature) -> dict[str, dict[str, Any]]:
    """Returns the groupings that Spark's aggregates compute, by their labels."""
    return dict(signature.get("native", {}))


def _with_state(signature: Signature) -> set[str]:
    return {*_sources(signature), *_groupings(signature), *_natives(signature)}


def _describe_change(sentence: str, old: object, new: object) -> str:
    return f"{sentence}\n  - {old}\n  + {new}"


def _sparks(old: Signature, new: Signature) -> tuple[str, str] | None:
    """Returns the Spark that wrote the checkpoint and the Spark that is to continue, if their minor versions differ."""
    before, after = old.get("spark"), new.get("spark")
    if before is None or after is None or version_of(before) == version_of(after):
        return None
    return before, after


def _of_all(old: Signature, new: Signature) -> Iterator[str]:
    sparks = _sparks(old, new)
    if sparks and version_of(sparks[0]) > version_of(sparks[1]):
        # Spark reads the checkpoints of older versions, and promises nothing for newer ones.
        yield _describe_change("a newer Spark wrote it: use that version, or a later one", *sparks)
    elif sparks and version_of(sparks[0]) == (4, 0) and old["levels"]:
        # In Spark 4.0, another operator holds the state of groupings, and Spark does not exchange operators.
        yield _describe_change(
            "Spark 4.0 wrote it, and later versions cannot read its state: use Spark 4.0", *sparks
        )
    sentences = {
        "mode": "the pipeline has a different mode",
        "clock": "the pipeline uses a different clock",
        "heartbeat": "a different rule starts micro-batches",
    }
    # A source of heartbeats may come and go with what waits for the clock, as other sources may.
    is_only_in_one = "none" in (old["heartbeat"], new["heartbeat"]) and old["clock"] == new["clock"]
    for part, sentence in sentences.items():
        if old[part] != new[part] and not (part == "heartbeat" and is_only_in_one):
            yield _describe_change(sentence, old[part], new[part])


def _of_sources(old: Signature, new: Signature, drop_state: Collection[str]) -> Iterator[str]:
    """Yields the differences that would silently lose how far a source was read."""
    before, after = _sources(old), _sources(new)
    for label in before:
        for part, sentence in _PARTS_OF_SOURCE.items():
            if label in after and before[label][part] != after[label][part]:
                yield _describe_change(
                    f"the source '{label}' {sentence}", before[label][part], after[label][part]
                )
    if {old["clock"], new["clock"]} == {"recorded"}:
        # In recorded time, the listed values arrive by numbers of micro-batches, which depend on all of these values.
        for label in sorted(before.keys() ^ after.keys()):
            state = "missing" if label in before else "new"
            yield f"the source '{label}' is {state}, and events that a program lists in recorded time cannot change"
        return
    for label, source in before.items():
        if label in after or label in drop_state:
            continue
        what = f"the source '{label}' is missing, but the checkpoint stores how far it was read"
        alike = [other for other in after if other not in before and _is_alike(source, after[other])]
        if alike:
            yield f"{what}: if its label is '{alike[0]}' now, give it the old label again"
        else:
            yield f"{what}: to discard it, pass drop_state=['{label}']"


def _is_alike(source: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(source[part] == other[part] for part in (*_PARTS_OF_SOURCE, "description"))


def _of_levels(old: Signature, new: Signature, dropped: Collection[str]) -> Iterator[str]:
    """Yields the differences that would silently lose state: it cannot move to another operator."""
    before, after = _groupings(old), _groupings(new)
    for label, (number, grouping) in before.items():
        if label in _natives(new):
            # See `_of_native`.
            continue
        if label not in after and label not in dropped:
            yield _missing(label, _like(number, grouping, before, after))
        elif label in after and after[label][0] != number:
            sentence = (
                f"'{label}' is at a different level, and state cannot move between levels: "
                "give it another label to start without state"
            )
            yield _describe_change(sentence, f"level {number}", f"level {after[label][0]}")
    for label in after:
        if label not in before and label in old.get("dropped", ()):
            yield f"the state of an earlier '{label}' was discarded: give the new step another label"


def _missing(label: str, renamed: str | None) -> str:
    what = f"'{label}' is missing, but the checkpoint has its state"
    if renamed is not None:
        return f"{what}: if its label is '{renamed}' now, give it the old label again"
    return f"{what}: to discard the state, pass drop_state=['{label}']"


def _like(number: int, grouping: dict[str, Any], before: _Groupings, after: _Groupings) -> str | None:
    """Returns a new grouping that may be an old one under another label."""
    for label, (other_number, other) in after.items():
        is_alike = all(grouping[part] == other[part] for part in _PARTS_OF_GROUPING)
        if label not in before and number == other_number and is_alike:
            return label
    return None


def _of_groupings(old: Signature, new: Signature) -> Iterator[str]:
    before, after = _groupings(old), _groupings(new)
    for label, (_, grouping) in before.items():
        for part, sentence in _PARTS_OF_GROUPING.items():
            if label in after and grouping[part] != after[label][1][part]:
                yield _describe_change(f"'{label}' has {sentence}", grouping[part], after[label][1][part])
        if label in after:
            coders = (each.get("key_coders", {}) for each in (grouping, after[label][1]))
            for kind, was, now in find_changed_key_coders(*coders):
                yield _describe_change(f"the keys of '{label}' have a different coder for {kind}", was, now)
            orders = (each.get("fields", {}) for each in (grouping, after[label][1]))
            for name, *fields in find_moved_fields(*orders):
                sentence = (
                    f"'{label}' has stored values of {name} by the position of their fields: "
                    "keep the order of the fields, and add new ones at the end"
                )
                yield _describe_change(sentence, *map(", ".join, fields))


def _of_native(old: Signature, new: Signature) -> Iterator[str]:
    """Yields the differences with which the state of a Spark aggregate cannot continue."""
    before, after = _natives(old), _natives(new)
    for label in before:
        if label not in after:
            yield (
                f"Spark's own aggregate has the state of '{label}', and the pipeline cannot continue with it: "
                "undo the change, or start again with another checkpoint_location"
            )
            continue
        for part, sentence in (*_PARTS_OF_GROUPING.items(), ("keys", "keys of different types")):
            if part in before[label] and before[label][part] != after[label][part]:
                yield _describe_change(f"'{label}' has {sentence}", before[label][part], after[label][part])
        coders = (each.get("key_coders", {}) for each in (before[label], after[label]))
        for kind, was, now in find_changed_key_coders(*coders):
            yield _describe_change(f"the keys of '{label}' have a different coder for {kind}", was, now)
    for label in after:
        if label not in before:
            what = f"'{label}' would be grouped by Spark's own aggregate, which cannot join a checkpoint"
            hint = (
                "start again with another checkpoint_location" if before else "pass --without=native_streams"
            )
            yield f"{what}: {hint}"
    sources = list(_sources(old)), list(_sources(new))
    if before and sources[0] != sources[1]:
        yield _describe_change("Spark's own aggregate keeps its source", *map(", ".join, sources))
    heartbeats = old["heartbeat"], new["heartbeat"]
    # Other changes of it are refused in any case.
    if before and heartbeats[0] != heartbeats[1] and "none" in heartbeats:
        what = (
            "Spark's own aggregate keeps what starts its micro-batches: pass a trigger_interval only if there was one "
            "before, and leave the source as it was"
        )
        yield _describe_change(what, *heartbeats)
    if before and old["shards"] != new["shards"]:
        yield _describe_change(
            "Spark's own aggregate keeps the number of its partitions: leave shuffle_partitions as it was",
            old["shards"],
            new["shards"],
        )


def _of_passed(old: Signature, new: Signature) -> Iterator[str]:
    """Yields the changes of steps behind results that may be retracted: old rows may stay in a table."""
    # Earlier versions did not record these steps.
    before, after = (signature.get("passed_by_retractions") for signature in (old, new))
    if before is None or after is None or before == after:
        return
    changed = [label for label in {**before, **after} if before.get(label) != after.get(label)]
    sentence = (
        "steps through which retractions pass have changed: "
        "a row that was written before stays in its table if they now drop its retraction"
    )
    shown = (
        ", ".join(f"{label} {each[label]}".rstrip() for label in changed if label in each) or "none"
        for each in (before, after)
    )
    yield _describe_change(sentence, *shown)


def _of_drop_state(new: Signature, drop_state: Collection[str]) -> Iterator[str]:
    for label in drop_state:
        if label in _with_state(new):
            yield f"drop_state names '{label}', which is in the pipeline: give it another label to start without state"


def _unknown(old: Signature, new: Signature, drop_state: Collection[str]) -> Iterator[str]:
    known = {*_with_state(old), *_with_state(new), *old.get("dropped", ())}
    for label in drop_state:
        if label not in known:
            near = find_nearest(label, known)
            meant = f": did you mean '{near}'?" if near else ""
            yield f"drop_state names '{label}', which has no state in the checkpoint{meant}"


def _notes(old: Signature, new: Signature, dropped: Collection[str]) -> Iterator[str]:
    if old["penstock"] != new["penstock"]:
        yield _describe_change(
            "a different version of penstock last used it", old["penstock"], new["penstock"]
        )
    if (sparks := _sparks(old, new)) and version_of(sparks[0]) < version_of(sparks[1]):
        yield _describe_change("an older Spark wrote it, and can no longer continue with it", *sparks)
    if old["shards"] != new["shards"]:
        sentence = "its state is distributed again, because the number of shards has changed"
        yield _describe_change(sentence, old["shards"], new["shards"])
    if len(old["levels"]) != len(new["levels"]):
        sentence = "its state is rewritten, because the longest chain of groupings has a different length"
        yield _describe_change(sentence, len(old["levels"]), len(new["levels"]))
    elif old["shards"] == new["shards"] and levels_of_operators(old) != levels_of_operators(new):
        yield "its state is rewritten, because the stateful operators are at different levels"
    yield from (f"the state of '{label}' is discarded" for label in dropped)
    before, after = _sources(old), _sources(new)
    yield from (f"the source '{label}' is no longer read" for label in before if label not in after)
    yield from (f"the source '{label}' is read from its beginning" for label in after if label not in before)
    if [label for label in before if label in after] != [label for label in after if label in before]:
        yield _describe_change("the sources are in a different order", ", ".join(before), ", ".join(after))
    yield from (
        f"the pipeline no longer writes to '{label}'" for label in old["sinks"] if label not in new["sinks"]
    )
    yield from (
        f"'{label}' receives only elements that arrive from now on"
        for label in new["sinks"]
        if label not in old["sinks"]
    )
    for label, source in before.items():
        for part, sentence in _NOTES_OF_SOURCE.items():
            if label in after and source[part] != after[label][part]:
                yield _describe_change(f"the source '{label}' {sentence}", source[part], after[label][part])
    yield from _of_passed(old, new)
    groupings = _groupings(old)
    for label, (_, grouping) in _groupings(new).items():
        if label not in groupings:
            yield f"'{label}' starts without state"
        elif groupings[label][1]["feeds"] != grouping["feeds"]:
            sentence = f"the watermark of '{label}' depends on different inputs"
            yield _describe_change(
                sentence, ", ".join(groupings[label][1]["feeds"]), ", ".join(grouping["feeds"])
            )
