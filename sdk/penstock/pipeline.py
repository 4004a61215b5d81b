"""The Pipeline and what is applied to it, under Beam's path (`apache_beam.pipeline`)."""

from __future__ import annotations

from penstock.construction.applied import (
    AppliedPTransform,
    PipelineVisitor,
    PTransformOverride,
    encode_annotations,
    transform_annotations,
)
from penstock.construction.pipeline import Pipeline
from penstock.construction.replacing import replace_all
from penstock.options.pipeline_options import PipelineOptions, StandardOptions, TypeOptions

__all__ = [
    "AppliedPTransform",
    "PTransformOverride",
    "Pipeline",
    "PipelineOptions",
    "PipelineVisitor",
    "StandardOptions",
    "TypeOptions",
    "encode_annotations",
    "replace_all",
    "transform_annotations",
]
