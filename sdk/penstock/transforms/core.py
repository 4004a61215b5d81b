"""Beam's ``transforms.core``: the transforms that all others are made of, under Beam's module path."""

from __future__ import annotations

from typing import TypeVar

from penstock.construction.ptransform import PTransform as PTransform
from penstock.functions.combinefn import (
    CallableWrapperCombineFn,
    CombineFn,
    NoSideInputsCallableWrapperCombineFn,
)
from penstock.functions.dofn import (
    CallableWrapperDoFn,
    DoFn,
    FilterDoFn,
    FlatMapDoFn,
    FlatMapTupleDoFn,
    MapDoFn,
    MapTupleDoFn,
    get_function_args_defaults,
    get_function_arguments,
    identity,
)
from penstock.functions.params import (
    DoFnContext,
    DoFnProcessContext,
    ProcessContinuation,
    RestrictionProvider,
    WatermarkEstimatorProvider,
)
from penstock.functions.signature import DoFnSignature, signature_of
from penstock.transforms.combine import CombineGlobally, CombinePerKey, CombineValues, CombineValuesDoFn
from penstock.transforms.create import Create, Impulse
from penstock.transforms.dead_letters import DeadLetter, ExceptionInfo
from penstock.transforms.fields import CallableWrapperPartitionFn, GroupBy, Partition, PartitionFn, Select
from penstock.transforms.grouping import Flatten, FlattenWith, GroupByKey
from penstock.transforms.pardo import Filter, FlatMap, FlatMapTuple, Map, MapTuple, ParDo
from penstock.transforms.windowing import SetTrigger, WindowInto, WindowIntoFn
from penstock.windows.windowing import Windowing

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")

__all__ = [
    "CallableWrapperCombineFn",
    "CallableWrapperDoFn",
    "CallableWrapperPartitionFn",
    "CombineFn",
    "CombineGlobally",
    "CombinePerKey",
    "CombineValues",
    "CombineValuesDoFn",
    "Create",
    "DeadLetter",
    "DoFn",
    "DoFnContext",
    "DoFnProcessContext",
    "DoFnSignature",
    "ExceptionInfo",
    "Filter",
    "FilterDoFn",
    "FlatMap",
    "FlatMapDoFn",
    "FlatMapTuple",
    "FlatMapTupleDoFn",
    "Flatten",
    "FlattenWith",
    "GroupBy",
    "GroupByKey",
    "Impulse",
    "K",
    "Map",
    "MapDoFn",
    "MapTuple",
    "MapTupleDoFn",
    "NoSideInputsCallableWrapperCombineFn",
    "ParDo",
    "Partition",
    "PartitionFn",
    "ProcessContinuation",
    "RestrictionProvider",
    "Select",
    "SetTrigger",
    "T",
    "V",
    "WatermarkEstimatorProvider",
    "WindowInto",
    "WindowIntoFn",
    "Windowing",
    "get_function_args_defaults",
    "get_function_arguments",
    "identity",
    "signature_of",
]
