"""The Pipeline and what is applied to it, under Beam's path (`apache_beam.pipeline`)."""

from penstock.construction.applied import AppliedPTransform as AppliedPTransform
from penstock.construction.applied import PipelineVisitor as PipelineVisitor
from penstock.construction.applied import PTransformOverride as PTransformOverride
from penstock.construction.applied import encode_annotations as encode_annotations
from penstock.construction.applied import transform_annotations as transform_annotations
from penstock.construction.pipeline import Pipeline as Pipeline
from penstock.construction.replacing import replace_all as replace_all
from penstock.options.pipeline_options import PipelineOptions as PipelineOptions
from penstock.options.pipeline_options import StandardOptions as StandardOptions
from penstock.options.pipeline_options import TypeOptions as TypeOptions
