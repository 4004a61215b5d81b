"""Applying a transform to something that is not one PCollection: a pipeline, several PCollections, values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock import pvalue
from penstock.error import three_parts

__all__ = ["apply_to"]


def apply_to(transform: Any, left: Any, label: str | None = None) -> Any:
    """What ``left | transform`` does when `left` has no ``|`` of its own.

    Args:
        transform: A PTransform.
        left: A pipeline, or PCollections or plain iterables in tuples and dicts.
        label: The step's label.

    Returns:
        The transform's result. For plain values a pipeline of its own runs at once, and the result holds
        lists of elements in place of PCollections.

    Raises:
        ValueError: If PCollections of several pipelines are mixed, or no pipeline can be found.
    """
    pvalueish, found = transform._extract_input_pvalues(left)
    values = tuple(found.values()) if isinstance(found, Mapping) else tuple(found)
    pipelines = [value.pipeline for value in values if isinstance(value, pvalue.PValue)]
    if values and not pipelines:
        return _run_at_once(transform, pvalueish, values, label)
    pipeline = transform.pipeline or next(iter(pipelines), None)
    if pipeline is None:
        raise ValueError(
            three_parts(
                f"{transform.label!r} requires a pipeline to be specified as there are no deferred inputs",
                where=transform._where(),
                hint="pass pipeline=... to the transform",
            )
        )
    for other in pipelines:
        if other is not pipeline:
            raise ValueError(
                three_parts(
                    "Mixing values in different pipelines is not allowed",
                    where=transform._where(),
                    hint="make all inputs in one pipeline",
                )
            )
    return pipeline.apply(transform, _with_plain_values(pipeline, pvalueish, values), label)


def _with_plain_values(pipeline: Any, pvalueish: Any, values: tuple[Any, ...]) -> Any:
    """The nested input, with a ``Create`` in the place of each plain value."""
    from penstock.transforms.create import Create

    replacements = {
        id(value): pipeline | f"CreatePInput{index}" >> Create(value, reshuffle=False)
        for index, value in enumerate(values)
        if not isinstance(value, pvalue.PValue) and value is not None
    }
    return _mapped(pvalueish, lambda value: replacements.get(id(value), value)) if replacements else pvalueish


def _run_at_once(transform: Any, pvalueish: Any, values: tuple[Any, ...], label: str | None) -> Any:
    from penstock.pipeline import Pipeline
    from penstock.transforms.materialize import Materialize

    pipeline = Pipeline()
    result = pipeline.apply(transform, _with_plain_values(pipeline, pvalueish, values), label)
    collected: list[list[Any]] = []

    def collect(value: Any) -> Any:
        if isinstance(value, pvalue.DoOutputsTuple):
            tags = ((value._main_tag,) if value._main_tag is not None else (None,)) + value._tags
            return {tag: collect(value[tag]) for tag in tags}
        if not isinstance(value, pvalue.PCollection):
            return value
        collected.append([])
        _ = value | f"Materialize{len(collected)}" >> Materialize(collected[-1])
        return collected[-1]

    lists = _mapped(result, collect)
    pipeline.run().wait_until_finish()
    return lists


def _mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """A nested value with `change` applied to whatever is not a tuple or dict, and to lists as they are."""
    changed = change(node)
    if changed is not node:
        return changed
    if isinstance(node, tuple) and hasattr(node, "_make"):
        return type(node)(*(_mapped(part, change) for part in node))
    if isinstance(node, (tuple, list)):
        return type(node)(_mapped(part, change) for part in node)
    if isinstance(node, dict):
        return {key: _mapped(part, change) for key, part in node.items()}
    return node
