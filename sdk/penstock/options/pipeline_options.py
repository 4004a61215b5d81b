"""Beam's module of options: re-exports of its parts."""

from __future__ import annotations

from penstock.options.base import OptionsContext, OptionsParser, PipelineOptions
from penstock.options.other_systems import (
    AzureOptions,
    CrossLanguageOptions,
    FlinkRunnerOptions,
    GoogleCloudOptions,
    HadoopFileSystemOptions,
    JobServerOptions,
    KafkaStreamsRunnerOptions,
    PortableOptions,
    PrismRunnerOptions,
    ProfilingOptions,
    S3Options,
    TestDataflowOptions,
    WorkerOptions,
)
from penstock.options.spark import SparkOptions, SparkRunnerOptions
from penstock.options.standard import (
    DebugOptions,
    DirectOptions,
    SetupOptions,
    StandardOptions,
    StreamingOptions,
    TestOptions,
    TypeOptions,
)

__all__ = [
    "AzureOptions",
    "CrossLanguageOptions",
    "DebugOptions",
    "DirectOptions",
    "FlinkRunnerOptions",
    "GoogleCloudOptions",
    "HadoopFileSystemOptions",
    "JobServerOptions",
    "KafkaStreamsRunnerOptions",
    "OptionsContext",
    "OptionsParser",
    "PipelineOptions",
    "PortableOptions",
    "PrismRunnerOptions",
    "ProfilingOptions",
    "S3Options",
    "SetupOptions",
    "SparkOptions",
    "SparkRunnerOptions",
    "StandardOptions",
    "StreamingOptions",
    "TestDataflowOptions",
    "TestOptions",
    "TypeOptions",
    "WorkerOptions",
]
