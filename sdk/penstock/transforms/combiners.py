"""Beam's path for the ready-made combiners: ``penstock.transforms.combiners``."""

from __future__ import annotations

from penstock.functions.combinefn import curry_combine_fn
from penstock.transforms import core as core
from penstock.transforms.collecting import (
    ConcatListCombineFn,
    Latest,
    LatestCombineFn,
    ToDict,
    ToDictCombineFn,
    ToList,
    ToListCombineFn,
    ToSet,
    ToSetCombineFn,
)
from penstock.transforms.counting import (
    CombinerWithoutDefaults,
    Count,
    CountCombineFn,
    K,
    Mean,
    MeanCombineFn,
    T,
    V,
)
from penstock.transforms.sampling import Sample, SampleCombineFn
from penstock.transforms.top import Largest, Smallest, Top, TopCombineFn
from penstock.transforms.tuple_combinefns import (
    LiftedCombinePerKey,
    PhasedCombineFnExecutor,
    SingleInputTupleCombineFn,
    TupleCombineFn,
)

__all__ = [
    "CombinerWithoutDefaults",
    "ConcatListCombineFn",
    "Count",
    "CountCombineFn",
    "K",
    "Largest",
    "Latest",
    "LatestCombineFn",
    "LiftedCombinePerKey",
    "Mean",
    "MeanCombineFn",
    "PhasedCombineFnExecutor",
    "Sample",
    "SampleCombineFn",
    "SingleInputTupleCombineFn",
    "Smallest",
    "T",
    "ToDict",
    "ToDictCombineFn",
    "ToList",
    "ToListCombineFn",
    "ToSet",
    "ToSetCombineFn",
    "Top",
    "TopCombineFn",
    "TupleCombineFn",
    "V",
    "curry_combine_fn",
]
