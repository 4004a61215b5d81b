"""The live view of a run: a snapshot as a value, and its views in a terminal and on a page."""

from penstock_spark.live.elements import StepElements
from penstock_spark.live.snapshot import (
    GroupingNow,
    MicroBatch,
    RunSnapshot,
    SourceNow,
    Stages,
    StepError,
)

__all__ = ["GroupingNow", "MicroBatch", "RunSnapshot", "SourceNow", "Stages", "StepElements", "StepError"]
