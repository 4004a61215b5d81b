"""Beam's ``transforms.core``: the transforms that all others are made of, under Beam's module path."""

from penstock.construction.applicable import K as K
from penstock.construction.applicable import T as T
from penstock.construction.applicable import V as V
from penstock.construction.ptransform import PTransform as PTransform
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
from penstock.functions.params import DoFnContext as DoFnContext
from penstock.functions.params import DoFnProcessContext as DoFnProcessContext
from penstock.functions.params import ProcessContinuation as ProcessContinuation
from penstock.functions.params import RestrictionProvider as RestrictionProvider
from penstock.functions.params import WatermarkEstimatorProvider as WatermarkEstimatorProvider
from penstock.functions.signature import DoFnSignature as DoFnSignature
from penstock.functions.signature import signature_of as signature_of
from penstock.transforms.combine import CombineGlobally as CombineGlobally
from penstock.transforms.combine import CombinePerKey as CombinePerKey
from penstock.transforms.combine import CombineValues as CombineValues
from penstock.transforms.combine import CombineValuesDoFn as CombineValuesDoFn
from penstock.transforms.create import Create as Create
from penstock.transforms.create import Impulse as Impulse
from penstock.transforms.dead_letters import DeadLetter as DeadLetter
from penstock.transforms.dead_letters import ExceptionInfo as ExceptionInfo
from penstock.transforms.fields import CallableWrapperPartitionFn as CallableWrapperPartitionFn
from penstock.transforms.fields import GroupBy as GroupBy
from penstock.transforms.fields import Partition as Partition
from penstock.transforms.fields import PartitionFn as PartitionFn
from penstock.transforms.fields import Select as Select
from penstock.transforms.grouping import Flatten as Flatten
from penstock.transforms.grouping import FlattenWith as FlattenWith
from penstock.transforms.grouping import GroupByKey as GroupByKey
from penstock.transforms.pardo import Filter as Filter
from penstock.transforms.pardo import FlatMap as FlatMap
from penstock.transforms.pardo import FlatMapTuple as FlatMapTuple
from penstock.transforms.pardo import Map as Map
from penstock.transforms.pardo import MapTuple as MapTuple
from penstock.transforms.pardo import ParDo as ParDo
from penstock.transforms.windowing import SetTrigger as SetTrigger
from penstock.transforms.windowing import WindowInto as WindowInto
from penstock.transforms.windowing import WindowIntoFn as WindowIntoFn
from penstock.windows.windowing import Windowing as Windowing
