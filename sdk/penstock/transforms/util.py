"""Beam's path for the small composites: ``penstock.transforms.util``."""

from penstock.construction.applicable import K, T, V
from penstock.transforms.batching import BatchElements, SortAndBatchElements
from penstock.transforms.group_into_batches import GroupIntoBatches
from penstock.transforms.joins import CoGroupByKey
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
from penstock.transforms.regex import Regex
from penstock.transforms.reify import Reify, ToString
from penstock.transforms.reshuffling import Reshuffle, ReshufflePerKey

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
