"""Checks whether the state in a checkpoint fits a pipeline, and says in words what does not.

The label of a step finds its state. So steps without state may change, come and go; a grouping keeps its state as
long as its label, its level and the format of its state stay the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import penstock
from penstock_spark.checkpoints.key_coders import changed_key_coders
from penstock_spark.checkpoints.signature import FORMAT
from penstock_spark.session.spark_versions import version_of

Signature = dict[str, Any]
"""The result of `penstock_spark.checkpoints.signature.signature_of`."""

_PARTS_OF_GROUPING = {
    "windows": "other windows",
    "trigger": "another trigger",
    "accumulation": "another accumulation mode",
    "lateness": "another allowed lateness",
    "timestamp": "another output timestamp",
    "on_time": "another rule for the pane at a window's end",
    "closing": "another rule for a window's last pane",
    "combine": "another CombineFn",
    "held": "windows with other contents",
}
_PARTS_OF_SOURCE = {
    "kind": "has another kind",
    "watermark": "estimates its watermark in another way",
    "partition": "has other partitions",
    "tick": "has another tick",
}
_NOTES_OF_SOURCE = {
    "policy": "has another watermark policy, to which the state fits",
    "description": "has another description; what was read before is not read again",
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
    if newer := newer_format(old):
        return Comparison([newer], [])
    kept = _with_state(old)
    if kept and not kept & _with_state(new):
        what = (
            "it belongs to another pipeline: this pipeline has none of the checkpoint's sources and groupings"
        )
        return Comparison([_changed(what, ", ".join(sorted(kept)), ", ".join(sorted(_with_state(new))))], [])
    gone = [label for label in _groupings(old) if label not in _groupings(new)]
    dropped = tuple(label for label in gone if label in drop_state)
    refusals = [
        *_of_all(old, new),
        *_of_sources(old, new),
        *_of_levels(old, new, dropped),
        *_of_groupings(old, new),
        *_of_drop_state(new, drop_state),
    ]
    return Comparison(refusals, [*_notes(old, new, dropped), *_unknown(old, new, drop_state)], dropped)


def newer_format(signature: Signature) -> str | None:
    """Why this version cannot read a signature; None if it can."""
    if signature["format"] <= FORMAT:
        return None
    return (
        f"penstock {signature.get('penstock')} wrote it in the format {signature['format']}; "
        f"penstock {penstock.__version__} reads formats up to {FORMAT}"
    )


_Groupings = dict[str, tuple[int, dict[str, Any]]]


def _groupings(signature: Signature) -> _Groupings:
    return {
        label: (number, grouping)
        for number, level in enumerate(signature["levels"], 1)
        for label, grouping in level.items()
    }


def _sources(signature: Signature) -> dict[str, dict[str, Any]]:
    return {source["label"]: source for source in signature["sources"]}


def _with_state(signature: Signature) -> set[str]:
    return {*_sources(signature), *_groupings(signature)}


def _changed(sentence: str, old: Any, new: Any) -> str:
    return f"{sentence}\n  - {old}\n  + {new}"


def _sparks(old: Signature, new: Signature) -> tuple[str, str] | None:
    """The Spark that wrote the checkpoint and the Spark that should continue, if their minor versions differ."""
    before, after = old.get("spark"), new.get("spark")
    if before is None or after is None or version_of(before) == version_of(after):
        return None
    return before, after


def _of_all(old: Signature, new: Signature) -> Iterator[str]:
    sparks = _sparks(old, new)
    if sparks and version_of(sparks[0]) > version_of(sparks[1]):
        # Spark reads the checkpoints of older versions, and promises nothing for newer ones.
        yield _changed("a newer Spark wrote it: use that version, or a later one", *sparks)
    elif sparks and version_of(sparks[0]) == (4, 0) and old["levels"]:
        # In Spark 4.0, another operator holds the state of groupings, and Spark does not exchange operators.
        yield _changed("Spark 4.0 wrote it, and later versions cannot read its state: use Spark 4.0", *sparks)
    sentences = {
        "mode": "the pipeline has another mode",
        "clock": "the pipeline uses another clock",
        "heartbeat": "another rule starts micro-batches",
        "shards": f"the number of shards has changed: pass shuffle_partitions={old['shards']}",
    }
    for part, sentence in sentences.items():
        if old[part] != new[part]:
            yield _changed(sentence, old[part], new[part])
    if len(old["levels"]) != len(new["levels"]):
        sentence = (
            "the longest chain of groupings has another length: each level is one of Spark's stateful operators, "
            "and their number cannot change"
        )
        yield _changed(sentence, len(old["levels"]), len(new["levels"]))


def _of_sources(old: Signature, new: Signature) -> Iterator[str]:
    """Spark stores how far it has read a source under the source's position among all sources."""
    before, after = _sources(old), _sources(new)
    for label in before:
        if label not in after:
            yield f"the source '{label}' is missing: without it, Spark does not know how far it has read the others"
    for label in after:
        if label not in before:
            yield f"the source '{label}' is new: with it, Spark does not know how far it has read the others"
    if set(before) == set(after) and list(before) != list(after):
        yield _changed("the sources are in another order", ", ".join(before), ", ".join(after))
    for label in before:
        for part, sentence in _PARTS_OF_SOURCE.items():
            if label in after and before[label][part] != after[label][part]:
                yield _changed(f"the source '{label}' {sentence}", before[label][part], after[label][part])


def _of_levels(old: Signature, new: Signature, dropped: Collection[str]) -> Iterator[str]:
    """State cannot move to another operator, and must not be lost without a word."""
    before, after = _groupings(old), _groupings(new)
    for label, (number, grouping) in before.items():
        if label not in after and label not in dropped:
            may_go = number <= len(new["levels"])
            yield _missing(label, _like(number, grouping, before, after), may_go)
        elif label in after and after[label][0] != number:
            sentence = (
                f"'{label}' has another level, and state cannot move between levels: "
                "give it another label to start without state"
            )
            yield _changed(sentence, f"level {number}", f"level {after[label][0]}")
    for label in after:
        if label not in before and label in old.get("dropped", ()):
            yield f"the state of an earlier '{label}' was given up: give the new step another label"


def _missing(label: str, renamed: str | None, may_go: bool) -> str:
    what = f"'{label}' is missing, but the checkpoint has its state"
    if renamed is not None:
        return f"{what}: if its label is '{renamed}' now, give it the old label again"
    return f"{what}: to give up the state, pass drop_state=['{label}']" if may_go else what


def _like(number: int, grouping: dict[str, Any], before: _Groupings, after: _Groupings) -> str | None:
    """A new grouping that may be an old one under another label."""
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
                yield _changed(f"'{label}' has {sentence}", grouping[part], after[label][1][part])
        if label in after:
            coders = (each.get("key_coders", {}) for each in (grouping, after[label][1]))
            for kind, was, now in changed_key_coders(*coders):
                yield _changed(f"the keys of '{label}' have another coder for {kind}", was, now)


def _of_drop_state(new: Signature, drop_state: Collection[str]) -> Iterator[str]:
    for label in drop_state:
        if label in _groupings(new):
            yield f"drop_state names '{label}', which is in the pipeline: give it another label to start without state"


def _unknown(old: Signature, new: Signature, drop_state: Collection[str]) -> Iterator[str]:
    known = {*_groupings(old), *_groupings(new), *old.get("dropped", ())}
    for label in drop_state:
        if label not in known:
            yield f"drop_state names '{label}', which has no state in the checkpoint"


def _notes(old: Signature, new: Signature, dropped: Collection[str]) -> Iterator[str]:
    if old["penstock"] != new["penstock"]:
        yield _changed("another version of penstock last used it", old["penstock"], new["penstock"])
    if (sparks := _sparks(old, new)) and version_of(sparks[0]) < version_of(sparks[1]):
        yield _changed("an older Spark wrote it, and cannot continue with it any more", *sparks)
    yield from (f"the state of '{label}' is given up" for label in dropped)
    yield from (
        f"the pipeline no longer writes to '{label}'" for label in old["sinks"] if label not in new["sinks"]
    )
    yield from (
        f"'{label}' gets only elements from now on" for label in new["sinks"] if label not in old["sinks"]
    )
    sources = _sources(new)
    for label, source in _sources(old).items():
        for part, sentence in _NOTES_OF_SOURCE.items():
            if label in sources and source[part] != sources[label][part]:
                yield _changed(f"the source '{label}' {sentence}", source[part], sources[label][part])
    before = _groupings(old)
    for label, (_, grouping) in _groupings(new).items():
        if label not in before:
            yield f"'{label}' starts without state"
        elif before[label][1]["feeds"] != grouping["feeds"]:
            sentence = f"the watermark of '{label}' depends on something else"
            yield _changed(sentence, ", ".join(before[label][1]["feeds"]), ", ".join(grouping["feeds"]))
