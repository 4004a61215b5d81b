"""Beam's path for the ready-made combiners: ``penstock.transforms.combiners``."""

from penstock.absent import hint_at_absent_names
from penstock.base.display import DisplayDataItem as DisplayDataItem
from penstock.construction.applicable import K, T, V
from penstock.functions.combinefn import curry_combine_fn
from penstock.transforms import core as core
from penstock.transforms.combining.ready_combiners import (
    CombinerWithoutDefaults,
    ConcatListCombineFn,
    Count,
    CountCombineFn,
    Largest,
    Latest,
    LatestCombineFn,
    Mean,
    MeanCombineFn,
    Sample,
    SampleCombineFn,
    SingleInputTupleCombineFn,
    Smallest,
    ToDict,
    ToDictCombineFn,
    ToList,
    ToListCombineFn,
    Top,
    TopCombineFn,
    ToSet,
    ToSetCombineFn,
    TupleCombineFn,
)
from penstock.typehints.decorators import with_input_types as with_input_types
from penstock.typehints.decorators import with_output_types as with_output_types
from penstock.utils.timestamp import Duration as Duration
from penstock.utils.timestamp import Timestamp as Timestamp
from penstock.utils.windowed_value import WindowedValue as WindowedValue

__all__ = [
    "CombinerWithoutDefaults",
    "ConcatListCombineFn",
    "Count",
    "CountCombineFn",
    "K",
    "Largest",
    "Latest",
    "LatestCombineFn",
    "Mean",
    "MeanCombineFn",
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

hint_at_absent_names(globals())
