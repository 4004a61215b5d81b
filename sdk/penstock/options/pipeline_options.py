"""Beam's module of options: re-exports of its parts."""

from penstock.absent import hint_at_absent_names
from penstock.options.base import OptionsContext as OptionsContext
from penstock.options.base import PipelineOptions as PipelineOptions
from penstock.options.base import StreamingOptions as StreamingOptions
from penstock.options.ignored import AzureOptions as AzureOptions
from penstock.options.ignored import CrossLanguageOptions as CrossLanguageOptions
from penstock.options.ignored import FlinkRunnerOptions as FlinkRunnerOptions
from penstock.options.ignored import GoogleCloudOptions as GoogleCloudOptions
from penstock.options.ignored import HadoopFileSystemOptions as HadoopFileSystemOptions
from penstock.options.ignored import JobServerOptions as JobServerOptions
from penstock.options.ignored import KafkaStreamsRunnerOptions as KafkaStreamsRunnerOptions
from penstock.options.ignored import PortableOptions as PortableOptions
from penstock.options.ignored import PrismRunnerOptions as PrismRunnerOptions
from penstock.options.ignored import ProfilingOptions as ProfilingOptions
from penstock.options.ignored import S3Options as S3Options
from penstock.options.ignored import TestDataflowOptions as TestDataflowOptions
from penstock.options.ignored import WorkerOptions as WorkerOptions
from penstock.options.parsing import OptionsParser as OptionsParser
from penstock.options.spark import SparkOptions as SparkOptions
from penstock.options.spark import SparkRunnerOptions as SparkRunnerOptions
from penstock.options.standard import DebugOptions as DebugOptions
from penstock.options.standard import DirectOptions as DirectOptions
from penstock.options.standard import SetupOptions as SetupOptions
from penstock.options.standard import StandardOptions as StandardOptions
from penstock.options.standard import TestOptions as TestOptions
from penstock.options.standard import TypeOptions as TypeOptions

hint_at_absent_names(globals())
