"""Transforms: everything a pipeline author applies to a PCollection (Beam's ``apache_beam.transforms``)."""

from penstock.base.labels import label_from_callable
from penstock.construction.ptransform import PTransform, annotate_yaml, ptransform_fn
from penstock.functions.combinefn import CombineFn
from penstock.functions.dofn import DoFn
from penstock.functions.dofn_parameters import (
    ProcessContinuation,
    RestrictionProvider,
    WatermarkEstimatorProvider,
)
from penstock.relations.changelog import Changelog
from penstock.relations.joins import JoinRows
from penstock.relations.upserts import Upsert, Upserts
from penstock.relations.validity import Valid, ValidFrom, ValidityJoin
from penstock.scalars.expressions import field
from penstock.scalars.field_functions import window_end, window_start

# Imported for their effect: they let transforms be applied to plain values, and catch errors.
from penstock.transforms import applying as applying
from penstock.transforms import combiners, trigger, window
from penstock.transforms import dead_letters as dead_letters
from penstock.transforms.combining.combine import CombineGlobally, CombinePerKey, CombineValues
from penstock.transforms.dead_letters import DeadLetter, ExceptionInfo
from penstock.transforms.elements.create import Create, Impulse
from penstock.transforms.elements.pardo import Filter, FlatMap, FlatMapTuple, Map, MapTuple, ParDo
from penstock.transforms.elements.regex import Regex
from penstock.transforms.elements.reify import Reify, ToString
from penstock.transforms.fields import GroupBy, Partition, PartitionFn, Select
from penstock.transforms.grouping.batching import BatchElements, SortAndBatchElements
from penstock.transforms.grouping.co_group_by_key import CoGroupByKey
from penstock.transforms.grouping.group_by_key import Flatten, FlattenWith, GroupByKey
from penstock.transforms.grouping.group_into_batches import GroupIntoBatches
from penstock.transforms.grouping.reshuffling import Reshuffle, ReshufflePerKey
from penstock.transforms.grouping.windowing import SetTrigger, WindowInto, WithTimestamps
from penstock.transforms.keyed import Distinct, Keys, KvSwap, RemoveDuplicates, Values, WithKeys
from penstock.transforms.observing import LogElements, Tee, WaitOn
from penstock.transforms.stats import ApproximateQuantiles, ApproximateUnique
from penstock.windows.time_domain import TimeDomain
from penstock.windows.windowing import Windowing

__all__ = [
    "ApproximateQuantiles",
    "ApproximateUnique",
    "BatchElements",
    "Changelog",
    "JoinRows",
    "Upsert",
    "Upserts",
    "Valid",
    "ValidFrom",
    "ValidityJoin",
    "CoGroupByKey",
    "CombineFn",
    "CombineGlobally",
    "CombinePerKey",
    "CombineValues",
    "Create",
    "DeadLetter",
    "Distinct",
    "DoFn",
    "ExceptionInfo",
    "Filter",
    "FlatMap",
    "FlatMapTuple",
    "Flatten",
    "FlattenWith",
    "GroupBy",
    "GroupByKey",
    "GroupIntoBatches",
    "Impulse",
    "Keys",
    "KvSwap",
    "LogElements",
    "Map",
    "MapTuple",
    "PTransform",
    "ParDo",
    "Partition",
    "PartitionFn",
    "ProcessContinuation",
    "Regex",
    "Reify",
    "RemoveDuplicates",
    "Reshuffle",
    "ReshufflePerKey",
    "RestrictionProvider",
    "Select",
    "SetTrigger",
    "SortAndBatchElements",
    "Tee",
    "TimeDomain",
    "ToString",
    "Values",
    "WaitOn",
    "WatermarkEstimatorProvider",
    "WindowInto",
    "Windowing",
    "WithKeys",
    "WithTimestamps",
    "annotate_yaml",
    "combiners",
    "field",
    "label_from_callable",
    "ptransform_fn",
    "trigger",
    "window",
    "window_end",
    "window_start",
]
