"""Replacing applied transforms by others (Beam's ``Pipeline.replace_all``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.construction import pvalue
from penstock.construction.applied import AppliedPTransform, PTransformOverride
from penstock.error import refusal

if TYPE_CHECKING:
    from penstock.construction.pipeline import Pipeline


def replace_all(pipeline: Pipeline, overrides: Sequence[PTransformOverride]) -> None:
    """Replaces every applied transform that an override matches, one override after the other.

    A replacement has outputs with the tags of the replaced transform.
    """
    for override in overrides:
        replaced: dict[int, Any] = {}
        for node in _nodes(pipeline._root_transform()):
            if override.matches(node):
                _replace(pipeline, override, node, replaced)
        for node in _nodes(pipeline._root_transform()):
            _reconnect(node, replaced)
    for override in overrides:
        for node in _nodes(pipeline._root_transform()):
            if not node.is_composite() and override.matches(node):
                what = f"Transform node {node!r} was not replaced as expected"
                hint = "a later override may have brought it back; change their order"
                raise refusal(RuntimeError, what, where=node.where, hint=hint)


def _nodes(root: AppliedPTransform) -> list[AppliedPTransform]:
    """Everything below a node, composites before their parts."""
    return [node for part in root.parts for node in (part, *_nodes(part))]


def _replace(
    pipeline: Pipeline, override: PTransformOverride, old: AppliedPTransform, replaced: dict[int, Any]
) -> None:
    transform = override.get_replacement_transform_for_applied_ptransform(old)
    if transform is old.transform or old.parent is None or old not in old.parent.parts:
        return
    for part in _nodes(old):
        pipeline._labels.pop(part.full_label, None)
    new = AppliedPTransform(
        old.parent, transform, old.full_label, old.main_inputs, None, old.annotations, old.location
    )
    old.parent.parts[old.parent.parts.index(old)] = new
    inputs = override.get_replacement_inputs(old)
    given = inputs if len(inputs) > 1 else next(iter(inputs), pvalue.PBegin(pipeline))
    pipeline._stack.append(new)
    try:
        pipeline._expand(new, given)
    finally:
        pipeline._stack.pop()
    for tag, value in old.outputs.items():
        # An unread output needs no replacement; the graph refuses steps that read a missing one.
        if tag not in new.outputs:
            continue
        replaced[id(value)] = new.outputs[tag]
        if new.outputs[tag].element_type is None:
            new.outputs[tag].element_type = value.element_type


def _reconnect(node: AppliedPTransform, replaced: dict[int, Any]) -> None:
    """Lets a node read and give the replacements of outputs."""
    node.main_inputs = {name: replaced.get(id(value), value) for name, value in node.main_inputs.items()}
    node.outputs = {tag: replaced.get(id(value), value) for tag, value in node.outputs.items()}
    for side in node.side_inputs:
        side.pvalue = replaced.get(id(side.pvalue), side.pvalue)
