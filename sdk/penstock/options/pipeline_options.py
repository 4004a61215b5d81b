"""Beam's module of options: re-exports of its parts."""

from __future__ import annotations

from typing import Any

from penstock.left_out import left_out
from penstock.options.base import OptionsContext, OptionsParser, PipelineOptions
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
    "DebugOptions",
    "DirectOptions",
    "OptionsContext",
    "OptionsParser",
    "PipelineOptions",
    "SetupOptions",
    "SparkOptions",
    "SparkRunnerOptions",
    "StandardOptions",
    "StreamingOptions",
    "TestOptions",
    "TypeOptions",
]

_SPARK_HAS_IT = "set the matching Spark property with --spark_conf=key=value"
_LEFT_OUT = {
    "AzureOptions": _SPARK_HAS_IT,
    "CrossLanguageOptions": "there are no cross-language transforms here",
    "FlinkRunnerOptions": "use SparkOptions",
    "GoogleCloudOptions": "its flags are accepted and ignored",
    "HadoopFileSystemOptions": _SPARK_HAS_IT,
    "JobServerOptions": "use SparkOptions",
    "KafkaStreamsRunnerOptions": "use SparkOptions",
    "PortableOptions": "use SparkOptions",
    "PrismRunnerOptions": "use SparkOptions",
    "ProfilingOptions": "use Spark's own profiler, --spark_conf=spark.python.profile=true",
    "S3Options": _SPARK_HAS_IT,
    "TestDataflowOptions": "its flags are accepted and ignored",
    "WorkerOptions": "the Spark configuration says how many workers there are",
}


def __getattr__(name: str) -> Any:
    if name in _LEFT_OUT:
        raise left_out(__name__, name, _LEFT_OUT[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
