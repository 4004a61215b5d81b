"""Beam's ``transforms.ptransform``: the PTransform and its relatives, under Beam's module path."""

from penstock.base.display import DisplayDataItem as DisplayDataItem
from penstock.base.display import HasDisplayData as HasDisplayData
from penstock.base.labels import label_from_callable as label_from_callable
from penstock.construction.ptransform import InputT as InputT
from penstock.construction.ptransform import OutputT as OutputT
from penstock.construction.ptransform import PTransform as PTransform
from penstock.construction.ptransform import PTransformWithSideInputs as PTransformWithSideInputs
from penstock.construction.ptransform import T as T
from penstock.construction.ptransform import annotate_yaml as annotate_yaml
from penstock.construction.ptransform import get_named_nested_pvalues as get_named_nested_pvalues
from penstock.construction.ptransform import ptransform_fn as ptransform_fn
from penstock.construction.pvalue import DoOutputsTuple as DoOutputsTuple
from penstock.typehints.constraints import validate_composite_type_param as validate_composite_type_param
from penstock.typehints.decorators import WithTypeHints as WithTypeHints
from penstock.typehints.decorators import get_type_hints as get_type_hints
from penstock.typehints.io_hints import IOTypeHints as IOTypeHints
from penstock.typehints.known_values import instance_to_type as instance_to_type
from penstock.typehints.signatures import TypeCheckError as TypeCheckError
from penstock.typehints.signatures import get_signature as get_signature
from penstock.typehints.signatures import getcallargs_forhints as getcallargs_forhints
from penstock.windows.side_input_windows import SIDE_INPUT_PREFIX as SIDE_INPUT_PREFIX
