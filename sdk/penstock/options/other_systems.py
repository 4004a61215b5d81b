"""Beam's options for other clouds and runners: they can be given and read, and a run says that they have no effect."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.error import three_parts
from penstock.options.base import (
    AuditEntries,
    CommaSeparatedList,
    MergedObjects,
    OptionsParser,
    PipelineOptions,
)
from penstock.options.standard import DebugOptions

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Flag:
    """One of Beam's options: its flags, without the dashes, and the arguments of ``add_argument``."""

    names: str
    default: Any = None
    """The default; text is parsed whenever options are."""
    dest: str | None = None
    """The name of its value; by default the name of its last flag."""
    type: Callable[[str], Any] | None = None
    action: Any = "store"
    choices: tuple[str, ...] | None = None


def _texts(names: str) -> tuple[Flag, ...]:
    return tuple(Flag(name) for name in names.split())


def _switches(names: str) -> tuple[Flag, ...]:
    return tuple(Flag(name, default=False, action="store_true") for name in names.split())


def _numbers(names: str, default: int | None = None) -> tuple[Flag, ...]:
    return tuple(Flag(name, default=default, type=int) for name in names.split())


def _lists(*names: str) -> tuple[Flag, ...]:
    return tuple(Flag(each, action="append") for each in names)


class OptionsOfOtherSystems(PipelineOptions):
    """The base of the classes here; `flags` are the options, and `instead` says what has the effect on Spark."""

    flags: ClassVar[tuple[Flag, ...]] = ()
    instead: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        # Each class needs the method itself: a view parses the arguments of its base classes one by one.
        cls._add_argparse_args = classmethod(_add_flags)  # type: ignore[method-assign, assignment]


def _add_flags(cls: type[OptionsOfOtherSystems], parser: OptionsParser) -> None:
    for flag in cls.flags:
        names = [f"--{name}" for name in flag.names.split()]
        further: dict[str, Any] = {"type": flag.type} if flag.type else {}
        if flag.choices:
            further["choices"] = flag.choices
        parser.add_without_effect(
            cls.instead,
            *names,
            dest=flag.dest or names[-1].lstrip("-").replace("-", "_"),
            action=flag.action,
            default=flag.default,
            **further,
        )


_PROPERTIES = "set Spark's property with --spark_conf=key=value"
_SCOPES = (
    "bigquery cloud-platform devstorage.full_control userinfo.email datastore spanner.admin spanner.data"
)


class GoogleCloudOptions(OptionsOfOtherSystems):
    """Options of the Dataflow service (Beam's ``GoogleCloudOptions``)."""

    instead = "--app_name names a run, and " + _PROPERTIES
    flags = (
        Flag("dataflow_endpoint", "https://dataflow.googleapis.com"),
        *_texts("project job_name staging_location temp_location region service_account_email"),
        *_texts("template_location dataflow_kms_key create_from_snapshot impersonate_service_account"),
        *_switches("no_auth update enable_hot_key_logging enable_artifact_caching"),
        *_switches("enable_bucket_read_metric_counter enable_bucket_write_metric_counter"),
        *_switches("no_gcsio_throttling_counter enable_gcsio_blob_generation"),
        *_lists("label labels"),
        Flag("transform_name_mapping", type=json.loads),
        Flag("enable_streaming_engine", default=True, action="store_true"),
        Flag("flexrs_goal", choices=("COST_OPTIMIZED", "SPEED_OPTIMIZED")),
        Flag("dataflow_service_option dataflow_service_options", action=CommaSeparatedList),
        Flag(
            "gcp_oauth_scope gcp_oauth_scopes",
            default=[f"https://www.googleapis.com/auth/{scope}" for scope in _SCOPES.split()],
            action="append",
        ),
        Flag("gcs_custom_audit_entry gcs_custom_audit_entries", action=AuditEntries),
    )

    def validate(self, validator: Any = None) -> list[str]:
        """The errors in these options, as texts; the service's file paths are not checked."""
        if self.view_as(DebugOptions).dataflow_job_file and self.template_location:
            return [_exclude_each_other("--dataflow_job_file and --template_location are")]
        return _not_a_list("dataflow_service_options", self.dataflow_service_options)


class TestDataflowOptions(OptionsOfOtherSystems):
    """Options of tests of the Dataflow service (Beam's ``TestDataflowOptions``)."""

    __test__ = False  # The name begins with Test, and pytest would take the class for tests.
    instead = "there is no such service"
    flags = (Flag("pubsub_root_url", dest="pubsubRootUrl"),)


class AzureOptions(OptionsOfOtherSystems):
    """Options of files in Azure (Beam's ``AzureOptions``)."""

    instead = "set Spark's properties, --spark_conf=spark.hadoop.fs.azure...=value"
    flags = _texts("azure_connection_string blob_service_endpoint azure_managed_identity_client_id")

    def validate(self, validator: Any = None) -> list[str]:
        if self.azure_connection_string and self.blob_service_endpoint:
            return [_exclude_each_other("--azure_connection_string and --blob_service_endpoint are")]
        return []


class S3Options(OptionsOfOtherSystems):
    """Options of files in S3 (Beam's ``S3Options``)."""

    instead = "set Spark's properties, --spark_conf=spark.hadoop.fs.s3a...=value"
    flags = (
        *_texts("s3_access_key_id s3_secret_access_key s3_session_token s3_endpoint_url s3_region_name"),
        *_texts("s3_api_version s3_verify"),
        *_switches("s3_disable_ssl"),
    )


class HadoopFileSystemOptions(OptionsOfOtherSystems):
    """Options of files in HDFS (Beam's ``HadoopFileSystemOptions``)."""

    instead = "Spark finds Hadoop's configuration in $HADOOP_CONF_DIR"
    flags = (*_texts("hdfs_host hdfs_port hdfs_user"), *_switches("hdfs_full_urls"))


class WorkerOptions(OptionsOfOtherSystems):
    """Options of the Dataflow service's workers (Beam's ``WorkerOptions``)."""

    instead = "set Spark's properties, such as --spark_conf=spark.executor.instances=4"
    flags = (
        *_numbers("num_workers max_num_workers disk_size_gb disk_provisioned_iops"),
        *_numbers("disk_provisioned_throughput_mibps element_processing_timeout_minutes"),
        *_numbers("max_cache_memory_usage_mb", default=0),
        Flag("autoscaling_algorithm", choices=("NONE", "THROUGHPUT_BASED")),
        Flag("worker_machine_type machine_type"),
        Flag("worker_disk_type disk_type"),
        *_texts("worker_region worker_zone zone network subnetwork min_cpu_platform"),
        *_texts("worker_harness_container_image sdk_container_image default_sdk_harness_log_level"),
        *_lists("sdk_harness_container_image_overrides"),
        Flag("sdk_harness_log_level_overrides", type=json.loads, action=MergedObjects),
        Flag("use_public_ips", action="store_true"),
        Flag("no_use_public_ips", dest="use_public_ips", action="store_false"),
    )


class ProfilingOptions(OptionsOfOtherSystems):
    """Options of the profilers of Beam's workers (Beam's ``ProfilingOptions``).

    The check of options, at the latest at the start of a run, sets `profile_location` below ``temp_location`` if there
    is an agent and no location, and gives the agent ``coredump`` its experiment.

    >>> from penstock.options.pipeline_options_validator import PipelineOptionsValidator
    >>> options = PipelineOptions(["--profiler_agent=memray", "--temp_location=/tmp/games/"])
    >>> PipelineOptionsValidator(options, None).validate(), options.view_as(ProfilingOptions).profile_location
    ([], '/tmp/games/profiles')
    """

    instead = "Spark has a profiler, --spark_conf=spark.python.profile=true"
    flags = (
        *_switches("profile_cpu profile_memory profiler_stop_after_crash"),
        *_texts("profile_location profiler_agent profile_temp_location"),
        Flag("profile_sample_rate", default=1.0, type=float),
        Flag("profiler_extra_arg profiler_extra_args", action=CommaSeparatedList),
        Flag("profiler_extra_env_var profiler_extra_env_vars", action=CommaSeparatedList),
        *_numbers("profile_upload_interval_sec", default=300),
        *_numbers("profiler_stop_after_sec", default=0),
        *_numbers("profile_postprocess_interval_sec", default=600),
    )

    def validate(self, validator: Any = None) -> list[str]:
        """The errors in these options, as texts; it also sets the options that follow from an agent."""
        if not self.profiler_agent:
            return []
        temp_location = self.view_as(GoogleCloudOptions).temp_location
        if temp_location and not self.profile_location:
            self._all_options["profile_location"] = temp_location.rstrip("/") + "/profiles"
            _LOGGER.info("--profile_location is %s, since there is a profiler_agent", self.profile_location)
        if self.profiler_agent == "coredump":
            self.view_as(DebugOptions).add_experiment("core_pattern=/tmp/beam_coredump.%e.%p")
        if self.profile_cpu or self.profile_memory:
            return [_exclude_each_other("--profiler_agent is", "with --profile_cpu and --profile_memory")]
        return []


class PortableOptions(OptionsOfOtherSystems):
    """Options of Beam's portable runners (Beam's ``PortableOptions``)."""

    instead = "there is no job server here; Spark says what workers are"
    flags = (
        *_texts("job_endpoint artifact_endpoint environment_type environment_config output_executable_path"),
        Flag("job_server_timeout job-server-timeout", default=300, type=int),
        *_lists("environment_option environment_options"),
        Flag("sdk_worker_parallelism", default=1),
        Flag("environment_cache_millis", default=0),
    )


class JobServerOptions(OptionsOfOtherSystems):
    """Options of Beam's job servers (Beam's ``JobServerOptions``)."""

    instead = "there is no job server here"
    flags = (
        *_texts("artifacts_dir jar_cache_dir"),
        *_numbers("job_port artifact_port expansion_port", default=0),
        Flag("job_server_java_launcher", default="java"),
        Flag(
            "job_server_jvm_properties job_server_jvm_property",
            dest="job_server_jvm_properties",
            default=[],
            action="append",
        ),
    )


class FlinkRunnerOptions(OptionsOfOtherSystems):
    """Options of Beam's runner on Flink (Beam's ``FlinkRunnerOptions``)."""

    instead = "the one engine is Spark: --master, --spark_conf"
    flags = (
        Flag("flink_master", default="[auto]"),
        Flag("flink_version", default="2.2", choices=("1.19", "1.20", "2.0", "2.1", "2.2")),
        *_texts("flink_job_server_jar"),
        *_switches("flink_submit_uber_jar"),
        *_numbers("parallelism max_parallelism", default=-1),
    )


class KafkaStreamsRunnerOptions(OptionsOfOtherSystems):
    """Options of Beam's runner on Kafka Streams (Beam's ``KafkaStreamsRunnerOptions``)."""

    instead = "the one engine is Spark: --master, --spark_conf"
    flags = (
        Flag("bootstrap_servers", default="localhost:9092"),
        *_texts("application_id kafka_streams_job_server_jar"),
    )


class PrismRunnerOptions(OptionsOfOtherSystems):
    """Options of Beam's local runner in Go (Beam's ``PrismRunnerOptions``)."""

    instead = "the one engine is Spark: --master, --spark_conf"
    flags = (
        *_texts("prism_location prism_beam_version_override"),
        Flag("prism_log_level", default="info", choices=("debug", "info", "warn", "error")),
        Flag("prism_log_kind", default="console", choices=("dev", "json", "text", "console")),
    )


def _services_of_environment() -> dict[str, Any]:
    services: dict[str, Any] = json.loads(os.environ.get("BEAM_SERVICE_OVERRIDES") or "{}")
    return services


class CrossLanguageOptions(OptionsOfOtherSystems):
    """Options of transforms in other languages (Beam's ``CrossLanguageOptions``).

    ``beam_services`` begins with the services in the environment variable ``BEAM_SERVICE_OVERRIDES``.

    >>> options = PipelineOptions(['--beam_services={"jar": "here"}']).view_as(CrossLanguageOptions)
    >>> options.beam_services
    {'jar': 'here'}
    """

    instead = "there are no cross-language transforms here"
    flags = (
        Flag(
            "beam_services",
            default="{}",
            type=lambda text: {**_services_of_environment(), **json.loads(text)},
        ),
        *_switches("use_transform_service"),
    )


def _exclude_each_other(flags: str, others: str = "") -> str:
    what = f"{flags} mutually exclusive {others}".rstrip()
    return three_parts(what, hint="leave one of them out")


def _not_a_list(name: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return [three_parts(f"{name} is a string, not a list", hint=f"write {name}=[{value!r}]")]
    return []
