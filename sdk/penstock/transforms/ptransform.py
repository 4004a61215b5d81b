"""Beam's ``transforms.ptransform``: the PTransform and its relatives, under Beam's module path."""

from penstock.base.labels import label_from_callable as label_from_callable
from penstock.construction.ptransform import InputT as InputT
from penstock.construction.ptransform import OutputT as OutputT
from penstock.construction.ptransform import PTransform as PTransform
from penstock.construction.ptransform import PTransformWithSideInputs as PTransformWithSideInputs
from penstock.construction.ptransform import T as T
from penstock.construction.ptransform import annotate_yaml as annotate_yaml
from penstock.construction.ptransform import get_named_nested_pvalues as get_named_nested_pvalues
from penstock.construction.ptransform import ptransform_fn as ptransform_fn
from penstock.windows.side_input_windows import SIDE_INPUT_PREFIX as SIDE_INPUT_PREFIX
