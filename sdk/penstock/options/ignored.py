"""Beam's options for other clouds and runners, by view: they can be set and read, but have no effect on Spark."""

from __future__ import annotations

from penstock.options.base import PipelineOptions
from penstock.options.option import CommaSeparatedList, Ignored, Option
from penstock.options.table import make_ignored_options

_PROPERTIES = "set Spark's property with --spark_conf=key=value"
_JOB_SERVER = "no job server runs here"
_ENGINE = "the one engine is Spark: --master, --spark_conf"
_WORKERS = "set Spark's properties, such as --spark_conf=spark.executor.instances=4"
_SCOPES = (
    "bigquery cloud-platform devstorage.full_control userinfo.email datastore spanner.admin spanner.data"
)


class GoogleCloudOptions(PipelineOptions):
    """Options of the Dataflow service (Beam's ``GoogleCloudOptions``)."""

    _records = make_ignored_options(
        "--app_name names a run; " + _PROPERTIES,
        {
            "dataflow_endpoint": "https://dataflow.googleapis.com",
            **dict.fromkeys(["project", "job_name", "staging_location", "temp_location", "region"], str),
            **dict.fromkeys(["service_account_email", "template_location", "dataflow_kms_key"], str),
            **dict.fromkeys(["create_from_snapshot", "impersonate_service_account", "flexrs_goal"], str),
            **dict.fromkeys(
                ["no_auth", "update", "enable_hot_key_logging", "enable_artifact_caching"], False
            ),
            "enable_bucket_read_metric_counter": False,
            "enable_bucket_write_metric_counter": False,
            "no_gcsio_throttling_counter": False,
            "enable_gcsio_blob_generation": False,
            "enable_streaming_engine": True,
            "label labels": list,
            "transform_name_mapping": dict,
            "dataflow_service_option dataflow_service_options": CommaSeparatedList,
            "gcp_oauth_scope gcp_oauth_scopes": [
                f"https://www.googleapis.com/auth/{scope}" for scope in _SCOPES.split()
            ],
            "gcs_custom_audit_entry gcs_custom_audit_entries": list,
        },
    )


class TestDataflowOptions(PipelineOptions):
    """Options of tests of the Dataflow service (Beam's ``TestDataflowOptions``)."""

    __test__ = False  # The name begins with Test, and pytest would take the class for tests.
    _records = (
        Option("pubsubRootUrl", flags="pubsub_root_url", effect=Ignored("that service does not exist here")),
    )


class AzureOptions(PipelineOptions):
    """Options of files in Azure (Beam's ``AzureOptions``)."""

    _records = make_ignored_options(
        "set Spark's properties, --spark_conf=spark.hadoop.fs.azure...=value",
        {
            "azure_connection_string": str,
            "blob_service_endpoint": str,
            "azure_managed_identity_client_id": str,
        },
    )


class S3Options(PipelineOptions):
    """Options of files in S3 (Beam's ``S3Options``)."""

    _records = make_ignored_options(
        "set Spark's properties, --spark_conf=spark.hadoop.fs.s3a...=value",
        {
            **dict.fromkeys(["s3_access_key_id", "s3_secret_access_key", "s3_session_token"], str),
            **dict.fromkeys(["s3_endpoint_url", "s3_region_name", "s3_api_version", "s3_verify"], str),
            "s3_disable_ssl": False,
        },
    )


class HadoopFileSystemOptions(PipelineOptions):
    """Options of files in HDFS (Beam's ``HadoopFileSystemOptions``)."""

    _records = make_ignored_options(
        "Spark finds Hadoop's configuration in $HADOOP_CONF_DIR",
        {"hdfs_host": str, "hdfs_port": str, "hdfs_user": str, "hdfs_full_urls": False},
    )


class WorkerOptions(PipelineOptions):
    """Options of the Dataflow service's workers (Beam's ``WorkerOptions``)."""

    _records = (
        *make_ignored_options(
            _WORKERS,
            {
                **dict.fromkeys(
                    ["num_workers", "max_num_workers", "disk_size_gb", "disk_provisioned_iops"], int
                ),
                "disk_provisioned_throughput_mibps": int,
                "element_processing_timeout_minutes": int,
                "max_cache_memory_usage_mb": 0,
                "worker_machine_type machine_type": str,
                "worker_disk_type disk_type": str,
                **dict.fromkeys(["autoscaling_algorithm", "worker_region", "worker_zone", "zone"], str),
                **dict.fromkeys(["network", "subnetwork", "min_cpu_platform", "sdk_container_image"], str),
                "worker_harness_container_image": str,
                "default_sdk_harness_log_level": str,
                "sdk_harness_container_image_overrides": list,
                "sdk_harness_log_level_overrides": dict,
            },
        ),
        Option("use_public_ips", bool, effect=Ignored(_WORKERS)),
        Option("use_public_ips", bool, flags="no_use_public_ips", sets=False, effect=Ignored(_WORKERS)),
    )


class ProfilingOptions(PipelineOptions):
    """Options of the profilers in Beam's workers (Beam's ``ProfilingOptions``)."""

    _records = make_ignored_options(
        "Spark has a profiler, --spark_conf=spark.python.profile=true",
        {
            **dict.fromkeys(["profile_cpu", "profile_memory", "profiler_stop_after_crash"], False),
            **dict.fromkeys(["profile_location", "profiler_agent", "profile_temp_location"], str),
            "profile_sample_rate": 1.0,
            "profiler_extra_arg profiler_extra_args": CommaSeparatedList,
            "profiler_extra_env_var profiler_extra_env_vars": CommaSeparatedList,
            "profile_upload_interval_sec": 300,
            "profiler_stop_after_sec": 0,
            "profile_postprocess_interval_sec": 600,
        },
    )


class PortableOptions(PipelineOptions):
    """Options for portable runners of Beam (Beam's ``PortableOptions``)."""

    _records = make_ignored_options(
        "no job server runs here; Spark defines the workers",
        {
            **dict.fromkeys(["job_endpoint", "artifact_endpoint", "environment_type"], str),
            **dict.fromkeys(["environment_config", "output_executable_path"], str),
            "job_server_timeout job-server-timeout": 300,
            "environment_option environment_options": list,
            "sdk_worker_parallelism": 1,
            "environment_cache_millis": 0,
        },
    )


class JobServerOptions(PipelineOptions):
    """Options for job servers of Beam (Beam's ``JobServerOptions``)."""

    _records = (
        *make_ignored_options(
            _JOB_SERVER,
            {
                "artifacts_dir": str,
                "jar_cache_dir": str,
                **dict.fromkeys(["job_port", "artifact_port", "expansion_port"], 0),
                "job_server_java_launcher": "java",
            },
        ),
        Option(
            "job_server_jvm_properties",
            list,
            [],
            flags="job_server_jvm_properties job_server_jvm_property",
            effect=Ignored(_JOB_SERVER),
        ),
    )


class FlinkRunnerOptions(PipelineOptions):
    """Options for Beam's runner on Flink (Beam's ``FlinkRunnerOptions``)."""

    _records = make_ignored_options(
        _ENGINE,
        {
            "flink_master": "[auto]",
            "flink_version": "2.2",
            "flink_job_server_jar": str,
            "flink_submit_uber_jar": False,
            "parallelism": -1,
            "max_parallelism": -1,
        },
    )


class KafkaStreamsRunnerOptions(PipelineOptions):
    """Options for Beam's runner on Kafka Streams (Beam's ``KafkaStreamsRunnerOptions``)."""

    _records = make_ignored_options(
        _ENGINE,
        {
            "bootstrap_servers": "localhost:9092",
            "application_id": str,
            "kafka_streams_job_server_jar": str,
        },
    )


class PrismRunnerOptions(PipelineOptions):
    """Options for Beam's local runner in Go (Beam's ``PrismRunnerOptions``)."""

    _records = make_ignored_options(
        _ENGINE,
        {
            "prism_location": str,
            "prism_beam_version_override": str,
            "prism_log_level": "info",
            "prism_log_kind": "console",
        },
    )


class CrossLanguageOptions(PipelineOptions):
    """Options of transforms in other languages (Beam's ``CrossLanguageOptions``)."""

    _records = make_ignored_options(
        "all transforms here are written in Python", {"beam_services": {}, "use_transform_service": False}
    )
