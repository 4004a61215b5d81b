"""Applying a transform to something that is not one PCollection: a pipeline, several PCollections, values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock import graph
from penstock.construction import ptransform, pvalue
from penstock.construction.pipeline import Pipeline
from penstock.construction.ptransform import PTransform, inputs_of, where_of
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.transforms.elements.create import Create


class Materialize(PTransform[Any, Any]):
    """Appends every element to a list when the pipeline has run; for what fits into memory."""

    def __init__(self, into: list[Any]) -> None:
        super().__init__()
        self.into = into

    def to_primitive(self) -> graph.Primitive:
        return graph.Write(graph.DriverList(self.into))

    def expand(self, pcoll: PCollection[Any]) -> pvalue.PDone:
        self._check_pcollection(pcoll)
        return pvalue.PDone(pcoll.pipeline)


@ptransform.apply_to.bind
def apply_to(transform: PTransform[Any, Any], left: object, label: str | None = None) -> Any:
    """Does what ``left | transform`` does, for a `left` that has no ``|`` of its own.

    `left` is a pipeline, or PCollections or plain iterables in tuples and dicts. For plain values, a pipeline of its
    own runs at once, and the result holds lists of elements instead of PCollections.

    Raises:
        ValueError: If PCollections of several pipelines are mixed, or no pipeline can be found.
    """
    pvalueish, found = inputs_of(transform, left)
    values = tuple(found.values()) if isinstance(found, Mapping) else tuple(found)
    pipelines = [value.pipeline for value in values if isinstance(value, pvalue.PValue)]
    if values and not pipelines:
        return _run_at_once(transform, pvalueish, values, label)
    pipeline = transform.pipeline or next(iter(pipelines), None)
    if pipeline is None:
        what = f"{transform.label!r} requires a pipeline to be specified as there are no deferred inputs"
        raise refusal(ValueError, what, where=where_of(transform), hint="pass pipeline=... to the transform")
    for other in pipelines:
        if other is not pipeline:
            what = "Mixing values in different pipelines is not allowed"
            raise refusal(ValueError, what, where=where_of(transform), hint="make all inputs in one pipeline")
    return pipeline.apply(transform, _with_plain_values(pipeline, pvalueish, values), label)


def _with_plain_values(pipeline: Any, pvalueish: object, values: tuple[Any, ...]) -> object:
    """The nested input, with a ``Create`` for each plain value."""
    for value in values:
        if not isinstance(value, pvalue.PValue | Iterable | None):
            what = f"an input is of the type {type(value).__name__}, and not a PCollection"
            raise refusal(TypeError, what, hint="pass PCollections, or lists of elements")
    replacements = {
        id(value): pipeline | f"CreatePInput{index}" >> Create(value, reshuffle=False)
        for index, value in enumerate(values)
        if not isinstance(value, pvalue.PValue) and value is not None
    }
    return _mapped(pvalueish, lambda value: replacements.get(id(value), value)) if replacements else pvalueish


def _run_at_once(
    transform: PTransform[Any, Any], pvalueish: object, values: tuple[Any, ...], label: str | None
) -> object:
    pipeline = Pipeline()
    result = pipeline.apply(transform, _with_plain_values(pipeline, pvalueish, values), label)
    collected: list[list[Any]] = []

    def collect(value: object) -> Any:
        if isinstance(value, pvalue.DoOutputsTuple):
            return EagerOutputs(
                {
                    tag: collect(value[tag])
                    for tag in (pvalue.main_tag_of(value), *pvalue.declared_tags(value))
                }
            )
        if not isinstance(value, pvalue.PCollection):
            return value
        collected.append([])
        _ = value | f"Materialize{len(collected)}" >> Materialize(collected[-1])
        return collected[-1]

    lists = _mapped(result, collect)
    pipeline.run().wait_until_finish()
    return lists


class NoSuchTag(KeyError, AttributeError):
    """A transform has no output of that tag: both Beam's type of error and Python's own."""


class EagerOutputs:
    """The lists that a transform with tagged outputs makes of plain values, by tag; the main output comes first.

    >>> outputs = EagerOutputs({None: [1], "odd": [3]})
    >>> outputs.odd, outputs["odd"], outputs[None], list(outputs)
    ([3], [3], [1], [[1], [3]])
    """

    def __init__(self, by_tag: Mapping[str | None, list[Any]]) -> None:
        self._by_tag = dict(by_tag)

    def __getitem__(self, tag: str | None) -> list[Any]:
        if tag not in self._by_tag:
            raise NoSuchTag(
                f"Tag {tag!r} is not a defined output tag; the tags are {', '.join(map(repr, self._by_tag))}"
            )
        return self._by_tag[tag]

    def __getattr__(self, tag: str) -> list[Any]:
        if tag.startswith("_"):
            raise AttributeError(tag)
        return self[tag]

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self._by_tag.values())

    def __len__(self) -> int:
        return len(self._by_tag)

    def __repr__(self) -> str:
        return f"EagerOutputs({self._by_tag!r})"


def _mapped(node: object, change: Callable[[Any], Any]) -> Any:
    """A nested value with `change` applied to every list, and to every part that is not a tuple or dict."""
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
