"""The Pipeline and what is applied to it, under Beam's path (`apache_beam.pipeline`)."""

from penstock.absent import hint_at_absent_names
from penstock.base.display import DisplayData as DisplayData
from penstock.base.display import HasDisplayData as HasDisplayData
from penstock.base.engine import create_runner as create_runner
from penstock.construction.applied import AppliedPTransform as AppliedPTransform
from penstock.construction.applied import PipelineVisitor as PipelineVisitor
from penstock.construction.applied import encode_annotations as encode_annotations
from penstock.construction.applied import transform_annotations as transform_annotations
from penstock.construction.pipeline import Pipeline as Pipeline
from penstock.functions.resources import merge_resource_hints as merge_resource_hints
from penstock.functions.resources import resource_hints_from_options as resource_hints_from_options
from penstock.io.filesystems import FileSystems as FileSystems
from penstock.options.base import StreamingOptions as StreamingOptions
from penstock.options.ignored import CrossLanguageOptions as CrossLanguageOptions
from penstock.options.pipeline_options import PipelineOptions as PipelineOptions
from penstock.options.pipeline_options import StandardOptions as StandardOptions
from penstock.options.pipeline_options import TypeOptions as TypeOptions
from penstock.options.pipeline_options_validator import PipelineOptionsValidator as PipelineOptionsValidator
from penstock.options.standard import DebugOptions as DebugOptions
from penstock.options.standard import SetupOptions as SetupOptions
from penstock.runners.runner import PipelineRunner as PipelineRunner
from penstock.transforms.elements.pardo import ParDo as ParDo
from penstock.typehints.signatures import TypeCheckError as TypeCheckError
from penstock.windows.side_input_windows import get_sideinput_index as get_sideinput_index

hint_at_absent_names(globals())
