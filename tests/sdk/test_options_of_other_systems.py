"""Options of other clouds and runners mean what they mean in Beam, as far as a program can see."""

import pytest

from penstock.options.pipeline_options import (
    CrossLanguageOptions,
    DebugOptions,
    GoogleCloudOptions,
    PipelineOptions,
    ProfilingOptions,
    WorkerOptions,
)
from penstock.options.pipeline_options_validator import PipelineOptionsValidator
from penstock_spark.runner import SparkRunner


def test_services_come_from_the_environment_and_the_flag_wins(monkeypatch):
    def services(*flags):
        return PipelineOptions(list(flags)).view_as(CrossLanguageOptions).beam_services

    monkeypatch.delenv("BEAM_SERVICE_OVERRIDES", raising=False)
    services()["changed"] = "by the program"
    assert services() == {}
    monkeypatch.setenv("BEAM_SERVICE_OVERRIDES", '{"a": "here", "b": "there"}')
    assert services() == {"a": "here", "b": "there"}
    assert services('--beam_services={"a": "other"}') == {"a": "other", "b": "there"}


def test_levels_of_loggers_that_are_given_twice_are_merged():
    flags = ['--sdk_harness_log_level_overrides={"a": "INFO", "b": "INFO"}']
    flags += ['--sdk_harness_log_level_overrides={"a": "DEBUG"}']
    levels = PipelineOptions(flags).view_as(WorkerOptions).sdk_harness_log_level_overrides
    assert levels == {"a": "DEBUG", "b": "INFO"}


def entries(*flags):
    return PipelineOptions(list(flags)).view_as(GoogleCloudOptions).gcs_custom_audit_entries


def test_entries_of_audits_are_pairs_or_json_and_have_one_prefix():
    assert entries() is None
    assert entries(
        "--gcs_custom_audit_entry=a=b=c",
        "--gcs_custom_audit_entry=x-goog-custom-audit-d=1",
        '--gcs_custom_audit_entries={"job": "nightly", "id": 7}',
    ) == {
        "x-goog-custom-audit-a": "b=c",
        "x-goog-custom-audit-d": "1",
        "x-goog-custom-audit-job": "nightly",
        "x-goog-custom-audit-id": "7",
    }


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([f"--gcs_custom_audit_entry={'k' * 65}=1"], "exceeds the 64-character limit"),
        ([f"--gcs_custom_audit_entry=k={'v' * 1201}"], "exceeds the 1200-character limit"),
        ([f"--gcs_custom_audit_entry={key}=1" for key in "abcd"], "maximum allowed number"),
        ([f"--gcs_custom_audit_entry={key}=1" for key in ["job", *"abcd"]], "maximum allowed number"),
        (["--gcs_custom_audit_entries=a=b"], "it is not a JSON object"),
        (["--gcs_custom_audit_entries=[1]"], "it is not a JSON object"),
    ],
)
def test_wrong_entries_of_audits_end_the_program_with_what_is_wrong(flags, said, capsys):
    with pytest.raises(SystemExit):
        entries(*flags)
    assert said in capsys.readouterr().err


def errors_of(*flags):
    options = PipelineOptions(list(flags))
    return options, PipelineOptionsValidator(options).validate()


@pytest.mark.parametrize(
    ("flags", "first"),
    [
        (["--profiler_agent=memray", "--profile_cpu"], "--profiler_agent is mutually exclusive"),
        (["--profiler_agent=memray", "--profile_memory"], "--profiler_agent is mutually exclusive"),
        (["--dataflow_job_file=a", "--template_location=b"], "--dataflow_job_file and --template_location"),
        (["--azure_connection_string=a", "--blob_service_endpoint=b"], "--azure_connection_string and"),
    ],
)
def test_options_that_exclude_each_other_are_refused(flags, first):
    for flag in flags:
        assert errors_of(flag)[1] == []
    options, [error] = errors_of(*flags)
    assert error.startswith(first)
    with pytest.raises(ValueError, match=first):
        SparkRunner()._settings(options)


def test_a_list_of_the_service_that_is_a_string_is_refused():
    options = PipelineOptions([], dataflow_service_options="a")
    [error] = PipelineOptionsValidator(options).validate()
    assert "dataflow_service_options is a string" in error


@pytest.mark.parametrize(
    ("flags", "place"),
    [
        (["--profiler_agent=memray", "--temp_location=gs://b/temp/"], "gs://b/temp/profiles"),
        (["--profiler_agent=a", "--temp_location=gs://b", "--profile_location=gs://c"], "gs://c"),
        (["--profiler_agent=memray"], None),
        (["--temp_location=gs://b"], None),
    ],
)
def test_profiles_are_kept_below_the_temporary_place_if_there_is_an_agent_and_no_place(flags, place):
    options, errors = errors_of(*flags)
    assert errors == []
    assert options.view_as(ProfilingOptions).profile_location == place


def test_the_agent_of_core_dumps_brings_its_experiment():
    options, _ = errors_of("--profiler_agent=coredump", "--experiments=a")
    experiments = options.view_as(DebugOptions)
    assert experiments.lookup_experiment("core_pattern") == "/tmp/beam_coredump.%e.%p"
    assert experiments.lookup_experiment("a") is True


def test_options_of_beams_way_to_spark_are_taken_and_encryption_that_is_asked_for_is_refused():
    SparkRunner()._settings(PipelineOptions(["--spark_version=3", "--spark_rest_url=http://here"]))
    with pytest.raises(ValueError, match=r"(?s)the option gbek is refused.*spark.io.encryption.enabled"):
        SparkRunner()._settings(PipelineOptions(["--gbek=type:GcpSecret;version_name:a"]))
