"""Beam's module of options: re-exports of its parts."""

from penstock.absent import hint_at_absent_names
from penstock.options.base import OptionsContext as OptionsContext
from penstock.options.base import OptionsParser as OptionsParser
from penstock.options.base import PipelineOptions as PipelineOptions
from penstock.options.other_systems import AzureOptions as AzureOptions
from penstock.options.other_systems import CrossLanguageOptions as CrossLanguageOptions
from penstock.options.other_systems import FlinkRunnerOptions as FlinkRunnerOptions
from penstock.options.other_systems import GoogleCloudOptions as GoogleCloudOptions
from penstock.options.other_systems import HadoopFileSystemOptions as HadoopFileSystemOptions
from penstock.options.other_systems import JobServerOptions as JobServerOptions
from penstock.options.other_systems import KafkaStreamsRunnerOptions as KafkaStreamsRunnerOptions
from penstock.options.other_systems import PortableOptions as PortableOptions
from penstock.options.other_systems import PrismRunnerOptions as PrismRunnerOptions
from penstock.options.other_systems import ProfilingOptions as ProfilingOptions
from penstock.options.other_systems import S3Options as S3Options
from penstock.options.other_systems import TestDataflowOptions as TestDataflowOptions
from penstock.options.other_systems import WorkerOptions as WorkerOptions
from penstock.options.spark import SparkOptions as SparkOptions
from penstock.options.spark import SparkRunnerOptions as SparkRunnerOptions
from penstock.options.standard import DebugOptions as DebugOptions
from penstock.options.standard import DirectOptions as DirectOptions
from penstock.options.standard import SetupOptions as SetupOptions
from penstock.options.standard import StandardOptions as StandardOptions
from penstock.options.standard import StreamingOptions as StreamingOptions
from penstock.options.standard import TestOptions as TestOptions
from penstock.options.standard import TypeOptions as TypeOptions

hint_at_absent_names(globals())
