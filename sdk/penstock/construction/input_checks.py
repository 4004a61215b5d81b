"""What a transform may be applied to."""

from __future__ import annotations

from typing import Any

from penstock.construction import pvalue
from penstock.construction.applied import AppliedPTransform
from penstock.error import three_parts
from penstock.typehints.decorators import TypeCheckError


def check_inputs(pipeline: Any, node: AppliedPTransform) -> None:
    """Refuses inputs that are no pipeline values, of another pipeline, or that no ParDo can take."""
    sides = tuple(side.pvalue for side in node.side_inputs)
    for value in (*node.inputs, *sides):
        if not isinstance(value, pvalue.PValue):
            raise TypeError(
                three_parts(
                    f"{node.transform} is applied to a {type(value).__name__}, which is no PCollection",
                    where=node.where,
                    hint="make a PCollection of it with Create",
                )
            )
        if value.pipeline is not pipeline:
            raise ValueError(
                three_parts(
                    "Mixing values in different pipelines is not allowed",
                    where=node.where,
                    hint="make all inputs in one pipeline",
                )
            )
        needs = node.transform is not None and node.transform.needs_pcollection
        if needs and not isinstance(value, pvalue.PCollection):
            given = "PBegin/Pipeline" if isinstance(value, pvalue.PBegin) else type(value).__name__
            raise TypeCheckError(
                f"Transform {node.full_label!r} expects a PCollection as input. Got a {given} instead.",
                where=node.where,
                hint="apply it to the output of a transform such as Create or a read",
            )
