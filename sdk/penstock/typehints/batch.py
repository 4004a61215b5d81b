"""Batches for ``process_batch``, under Beam's path (`apache_beam.typehints.batch`)."""

from __future__ import annotations

from typing import Any

from penstock.functions import batches
from penstock.functions.batches import BATCH_CONVERTER_REGISTRY, BatchConverter, ListBatchConverter, N

__all__ = ["BATCH_CONVERTER_REGISTRY", "BatchConverter", "ListBatchConverter", "N"]


def __getattr__(name: str) -> Any:
    # The names of NumPy's batches come with the runner, when they are asked for.
    return getattr(batches, name)
