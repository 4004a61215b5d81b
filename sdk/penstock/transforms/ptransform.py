"""Beam's ``transforms.ptransform``: the PTransform and its relatives, under Beam's module path."""

from __future__ import annotations

from penstock.base.labels import label_from_callable
from penstock.construction.ptransform import (
    InputT,
    OutputT,
    PTransform,
    PTransformWithSideInputs,
    T,
    annotate_yaml,
    get_named_nested_pvalues,
    ptransform_fn,
)
from penstock.windows.side_input_windows import SIDE_INPUT_PREFIX

__all__ = [
    "SIDE_INPUT_PREFIX",
    "InputT",
    "OutputT",
    "PTransform",
    "PTransformWithSideInputs",
    "T",
    "annotate_yaml",
    "get_named_nested_pvalues",
    "label_from_callable",
    "ptransform_fn",
]
