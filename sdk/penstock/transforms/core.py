"""Beam's ``transforms.core``: the transforms that all others are made of, under Beam's module path."""

from penstock.absent import hint_at_absent_names
from penstock.base.display import DisplayDataItem as DisplayDataItem
from penstock.base.display import HasDisplayData as HasDisplayData
from penstock.construction.applicable import K as K
from penstock.construction.applicable import T as T
from penstock.construction.applicable import V as V
from penstock.construction.ptransform import PTransform as PTransform
from penstock.construction.ptransform import PTransformWithSideInputs as PTransformWithSideInputs
from penstock.elements.bounded_window import TimestampedValue as TimestampedValue
from penstock.functions.batches import BatchConverter as BatchConverter
from penstock.functions.combinefn import CallableWrapperCombineFn as CallableWrapperCombineFn
from penstock.functions.combinefn import CombineFn as CombineFn
from penstock.functions.combinefn import (
    NoSideInputsCallableWrapperCombineFn as NoSideInputsCallableWrapperCombineFn,
)
from penstock.functions.dofn import CallableWrapperDoFn as CallableWrapperDoFn
from penstock.functions.dofn import DoFn as DoFn
from penstock.functions.dofn import FilterDoFn as FilterDoFn
from penstock.functions.dofn import FlatMapDoFn as FlatMapDoFn
from penstock.functions.dofn import FlatMapTupleDoFn as FlatMapTupleDoFn
from penstock.functions.dofn import MapDoFn as MapDoFn
from penstock.functions.dofn import MapTupleDoFn as MapTupleDoFn
from penstock.functions.dofn import get_function_args_defaults as get_function_args_defaults
from penstock.functions.dofn import get_function_arguments as get_function_arguments
from penstock.functions.dofn import identity as identity
from penstock.functions.dofn_parameters import DoFnContext as DoFnContext
from penstock.functions.dofn_parameters import DoFnProcessContext as DoFnProcessContext
from penstock.functions.dofn_parameters import ProcessContinuation as ProcessContinuation
from penstock.functions.dofn_parameters import RestrictionProvider as RestrictionProvider
from penstock.functions.dofn_parameters import WatermarkEstimatorProvider as WatermarkEstimatorProvider
from penstock.functions.signature import DoFnSignature as DoFnSignature
from penstock.functions.signature import signature_of as signature_of
from penstock.functions.userstate import StateSpec as StateSpec
from penstock.functions.userstate import TimerSpec as TimerSpec
from penstock.options.standard import SetupOptions as SetupOptions
from penstock.options.standard import TypeOptions as TypeOptions
from penstock.transforms.combining.combine import CombineGlobally as CombineGlobally
from penstock.transforms.combining.combine import CombinePerKey as CombinePerKey
from penstock.transforms.combining.combine import CombineValues as CombineValues
from penstock.transforms.combining.combine import CombineValuesDoFn as CombineValuesDoFn
from penstock.transforms.dead_letters import DeadLetter as DeadLetter
from penstock.transforms.dead_letters import ExceptionInfo as ExceptionInfo
from penstock.transforms.elements.create import Create as Create
from penstock.transforms.elements.create import Impulse as Impulse
from penstock.transforms.elements.pardo import Filter as Filter
from penstock.transforms.elements.pardo import FlatMap as FlatMap
from penstock.transforms.elements.pardo import FlatMapTuple as FlatMapTuple
from penstock.transforms.elements.pardo import Map as Map
from penstock.transforms.elements.pardo import MapTuple as MapTuple
from penstock.transforms.elements.pardo import ParDo as ParDo
from penstock.transforms.fields import CallableWrapperPartitionFn as CallableWrapperPartitionFn
from penstock.transforms.fields import GroupBy as GroupBy
from penstock.transforms.fields import Partition as Partition
from penstock.transforms.fields import PartitionFn as PartitionFn
from penstock.transforms.fields import Select as Select
from penstock.transforms.grouping.group_by_key import Flatten as Flatten
from penstock.transforms.grouping.group_by_key import FlattenWith as FlattenWith
from penstock.transforms.grouping.group_by_key import GroupByKey as GroupByKey
from penstock.transforms.grouping.windowing import SetTrigger as SetTrigger
from penstock.transforms.grouping.windowing import WindowInto as WindowInto
from penstock.transforms.grouping.windowing import WindowIntoFn as WindowIntoFn
from penstock.typehints.constraints import TypeConstraint as TypeConstraint
from penstock.typehints.constraints import is_consistent_with as is_consistent_with
from penstock.typehints.constraints import visit_inner_types as visit_inner_types
from penstock.typehints.decorators import WithTypeHints as WithTypeHints
from penstock.typehints.decorators import get_type_hints as get_type_hints
from penstock.typehints.decorators import with_input_types as with_input_types
from penstock.typehints.decorators import with_output_types as with_output_types
from penstock.typehints.known_values import element_type as element_type
from penstock.typehints.signatures import TypeCheckError as TypeCheckError
from penstock.typehints.signatures import get_signature as get_signature
from penstock.utils.timestamp import Duration as Duration
from penstock.utils.windowed_value import WindowedValue as WindowedValue
from penstock.windows.output_times import TimestampCombiner as TimestampCombiner
from penstock.windows.side_input_windows import get_sideinput_index as get_sideinput_index
from penstock.windows.triggers import AccumulationMode as AccumulationMode
from penstock.windows.triggers import DefaultTrigger as DefaultTrigger
from penstock.windows.window_fn import GlobalWindows as GlobalWindows
from penstock.windows.window_fn import SlidingWindows as SlidingWindows
from penstock.windows.window_fn import WindowFn as WindowFn
from penstock.windows.windowing import Windowing as Windowing

hint_at_absent_names(globals())
