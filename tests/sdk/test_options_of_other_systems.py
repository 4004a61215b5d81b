"""Options of other clouds and runners are given, set and read as in Beam; nothing checks or derives their values."""

import pytest

from penstock.options.pipeline_options import (
    CrossLanguageOptions,
    GoogleCloudOptions,
    PipelineOptions,
    WorkerOptions,
)
from penstock.options.pipeline_options_validator import PipelineOptionsValidator
from penstock_spark.runner import SparkRunner


def test_objects_that_are_given_twice_are_merged_and_belong_to_one_pipeline():
    flags = ['--sdk_harness_log_level_overrides={"a": "INFO", "b": "INFO"}']
    flags += ['--sdk_harness_log_level_overrides={"a": "DEBUG"}']
    levels = PipelineOptions(flags).view_as(WorkerOptions).sdk_harness_log_level_overrides
    assert levels == {"a": "DEBUG", "b": "INFO"}
    services = PipelineOptions([]).view_as(CrossLanguageOptions).beam_services
    services["changed"] = "by the program"
    assert PipelineOptions([]).view_as(CrossLanguageOptions).beam_services == {}


@pytest.mark.parametrize("text", ["a=b", "[1]", "7"])
def test_an_object_that_is_not_json_ends_the_program_with_what_is_wrong(text, capsys):
    with pytest.raises(SystemExit):
        PipelineOptions([f"--transform_name_mapping={text}"]).view_as(GoogleCloudOptions)
    assert "it is not a JSON object" in capsys.readouterr().err


def test_values_that_their_service_would_refuse_are_read():
    flags = ["--profiler_agent=memray", "--profile_cpu", "--flink_version=0", "--gcs_custom_audit_entry=a=b"]
    options = PipelineOptions([*flags, "--temp_location=gs://b"], dataflow_service_options="a")
    assert PipelineOptionsValidator(options).validate() == []
    given = options.get_all_options()
    assert (given["flink_version"], given["gcs_custom_audit_entries"]) == ("0", ["a=b"])
    assert given["profile_location"] is None


def test_options_of_beams_way_to_spark_are_taken_and_encryption_that_is_asked_for_is_refused():
    SparkRunner()._settings(PipelineOptions(["--spark_version=3", "--spark_rest_url=http://here"]))
    with pytest.raises(ValueError, match=r"(?s)the option gbek is refused.*spark.io.encryption.enabled"):
        SparkRunner()._settings(PipelineOptions(["--gbek=type:GcpSecret;version_name:a"]))
