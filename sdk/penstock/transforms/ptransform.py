"""Beam's ``transforms.ptransform``: the PTransform and its relatives, under Beam's module path."""

from __future__ import annotations

from penstock.transforms.function_transform import annotate_yaml, ptransform_fn
from penstock.transforms.ptransform_base import (
    InputT,
    OutputT,
    PTransform,
    T,
    get_named_nested_pvalues,
    label_from_callable,
)
from penstock.transforms.side_input_transform import PTransformWithSideInputs
from penstock.transforms.sideinputs import SIDE_INPUT_PREFIX

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
