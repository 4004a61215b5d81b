"""Resource hints, under Beam's path (`apache_beam.transforms.resources`)."""

from __future__ import annotations

from penstock.functions.resources import (
    AcceleratorHint,
    CpuCountHint,
    MaxActiveBundlesPerWorkerHint,
    MinRamHint,
    ResourceHint,
    merge_resource_hints,
    parse_resource_hints,
    resource_hints_from_options,
)

__all__ = [
    "AcceleratorHint",
    "CpuCountHint",
    "MaxActiveBundlesPerWorkerHint",
    "MinRamHint",
    "ResourceHint",
    "merge_resource_hints",
    "parse_resource_hints",
    "resource_hints_from_options",
]
