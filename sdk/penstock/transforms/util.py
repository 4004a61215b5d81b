"""Beam's path for the small composites: ``penstock.transforms.util``."""

from penstock.absent import hint_at_absent_names
from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform as PTransform
from penstock.construction.ptransform import ptransform_fn as ptransform_fn
from penstock.construction.pvalue import AsSideInput as AsSideInput
from penstock.construction.pvalue import PCollection as PCollection
from penstock.elements.bounded_window import TimestampedValue as TimestampedValue
from penstock.functions.dofn import DoFn as DoFn
from penstock.functions.userstate import BagStateSpec as BagStateSpec
from penstock.functions.userstate import CombiningValueStateSpec as CombiningValueStateSpec
from penstock.functions.userstate import ReadModifyWriteStateSpec as ReadModifyWriteStateSpec
from penstock.functions.userstate import TimerSpec as TimerSpec
from penstock.functions.userstate import on_timer as on_timer
from penstock.metrics.metric import Metrics as Metrics
from penstock.transforms.combining.combine import CombinePerKey as CombinePerKey
from penstock.transforms.combining.ready_combiners import CountCombineFn as CountCombineFn
from penstock.transforms.elements.create import Create as Create
from penstock.transforms.elements.pardo import FlatMap as FlatMap
from penstock.transforms.elements.pardo import Map as Map
from penstock.transforms.elements.pardo import MapTuple as MapTuple
from penstock.transforms.elements.pardo import ParDo as ParDo
from penstock.transforms.elements.regex import Regex
from penstock.transforms.elements.reify import Reify, ToString
from penstock.transforms.grouping.batching import BatchElements, SortAndBatchElements
from penstock.transforms.grouping.co_group_by_key import CoGroupByKey
from penstock.transforms.grouping.group_by_key import Flatten as Flatten
from penstock.transforms.grouping.group_by_key import GroupByKey as GroupByKey
from penstock.transforms.grouping.group_into_batches import GroupIntoBatches
from penstock.transforms.grouping.reshuffling import Reshuffle, ReshufflePerKey
from penstock.transforms.keyed import (
    Distinct,
    Keys,
    KvSwap,
    RemoveDuplicates,
    Values,
    WithKeys,
    fn_takes_side_inputs,
)
from penstock.transforms.observing import LogElements, Tee, WaitOn
from penstock.typehints.native_type_compatibility import TypedWindowedValue as TypedWindowedValue
from penstock.typehints.sharded_key_type import ShardedKeyType as ShardedKeyType
from penstock.typehints.signatures import get_signature as get_signature
from penstock.utils.sharded_key import ShardedKey as ShardedKey
from penstock.utils.timestamp import Timestamp as Timestamp
from penstock.windows.output_times import TimestampCombiner as TimestampCombiner
from penstock.windows.time_domain import TimeDomain as TimeDomain
from penstock.windows.triggers import AccumulationMode as AccumulationMode
from penstock.windows.triggers import Always as Always
from penstock.windows.window_fn import NonMergingWindowFn as NonMergingWindowFn
from penstock.windows.windowing import Windowing as Windowing

__all__ = [
    "BatchElements",
    "CoGroupByKey",
    "Distinct",
    "GroupIntoBatches",
    "K",
    "Keys",
    "KvSwap",
    "LogElements",
    "Regex",
    "Reify",
    "RemoveDuplicates",
    "Reshuffle",
    "ReshufflePerKey",
    "SortAndBatchElements",
    "T",
    "Tee",
    "ToString",
    "V",
    "Values",
    "WaitOn",
    "WithKeys",
    "fn_takes_side_inputs",
]

hint_at_absent_names(globals())
