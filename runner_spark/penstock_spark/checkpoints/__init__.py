"""The checkpoint of a streaming query: the plan, what fits it, and its state as a table."""

from __future__ import annotations

from penstock_spark.checkpoints.compare import Comparison, compare
from penstock_spark.checkpoints.folder import Checkpoint, find_checkpoint, open_checkpoint
from penstock_spark.checkpoints.lease import CheckpointTaken
from penstock_spark.checkpoints.signature import signature_of
from penstock_spark.checkpoints.state_table import StateRow, read_state, state_rows

__all__ = [
    "Checkpoint",
    "CheckpointTaken",
    "Comparison",
    "StateRow",
    "compare",
    "find_checkpoint",
    "open_checkpoint",
    "read_state",
    "signature_of",
    "state_rows",
]
