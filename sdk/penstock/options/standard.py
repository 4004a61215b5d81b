"""Those of Beam's options that have a meaning for a pipeline on Spark."""

from __future__ import annotations

import json
from typing import Any

from penstock.error import three_parts
from penstock.options.base import CommaSeparatedList, OptionsParser, PipelineOptions
from penstock.options.base import StreamingOptions as StreamingOptions

_BEAMS_RUNNER = "it belongs to Beam's in-process runner"
_ADDITIONAL_CHECKS = ("all", "ptransform_fn")
_CONTAINERS = (
    "prebuild_sdk_container_engine",
    "prebuild_sdk_container_base_image",
    "cloud_build_machine_type",
    "docker_registry_push_url",
)


class StandardOptions(PipelineOptions):
    """Options of every pipeline (Beam's ``StandardOptions``).

    Attributes:
        runner: ``SparkRunner`` (the default), or a name that `penstock.runners.create_runner` takes for it.
        streaming: Whether the pipeline is meant to run without end.
        resource_hints: Beam's hints, as ``name=value`` strings.
        auto_unique_labels: Numbers a label that is used twice instead of refusing it.
        no_wait_until_finish: Leaving the pipeline's ``with`` block does not wait for its end.
    """

    DEFAULT_RUNNER = "SparkRunner"

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument("--runner", help="SparkRunner, or a name of Beam's local runners.")
        parser.add_argument("--streaming", action="store_true", default=False, help="Runs without end.")
        parser.add_argument(
            "--resource_hint",
            "--resource_hints",
            dest="resource_hints",
            action="append",
            default=[],
            help="A hint as name=value; repeatable.",
        )
        parser.add_argument(
            "--auto_unique_labels",
            action="store_true",
            default=False,
            help="Numbers labels that are used twice.",
        )
        parser.add_argument(
            "--no_wait_until_finish",
            action="store_true",
            default=False,
            help="Leaving the with block does not wait for the pipeline.",
        )


class TypeOptions(PipelineOptions):
    """The checks of types, and permissions for unsafe things (Beam's ``TypeOptions``).

    Attributes:
        type_check_strictness: ``ALL_REQUIRED`` refuses steps without type hints; ``DEFAULT_TO_ANY`` takes
            them as Any.
        type_check_additional: ``all`` or ``ptransform_fn``, separated by commas.
        pipeline_type_check: Checks hints while the pipeline is built; on unless ``--no_pipeline_type_check``.
        runtime_type_check: Checks the inputs and outputs of DoFns and CombineFns against the type hints
            while the pipeline runs.
        performance_runtime_type_check: Checks the first of every hundred elements in each task.
        allow_non_deterministic_key_coders: Pickles keys of classes without a deterministic encoding, which are refused
            otherwise. Equal keys whose pickled bytes differ are different keys then, and the workers warn of it.
        allow_unsafe_triggers: Accepts triggers that may lose data.
        disable_beartype: Beam's, as the last two; without effect.
        exclude_infer_dataclass_field_type: Without effect.
        force_cloudpickle_deterministic_coders: Without effect.
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument(
            "--type_check_strictness",
            default="DEFAULT_TO_ANY",
            choices=["ALL_REQUIRED", "DEFAULT_TO_ANY"],
            help="Whether steps need type hints.",
        )
        parser.add_argument("--type_check_additional", default="", help="all or ptransform_fn.")
        parser.add_argument(
            "--no_pipeline_type_check",
            dest="pipeline_type_check",
            action="store_false",
            help="Does not check type hints while the pipeline is built.",
        )
        for name, text in (
            ("runtime_type_check", "Checks every element against its type hint."),
            ("performance_runtime_type_check", "Checks a sample of the elements against their type hints."),
            ("allow_non_deterministic_key_coders", "Pickles keys of any class; equal ones may not meet."),
            ("allow_unsafe_triggers", "Accepts triggers that may lose data."),
        ):
            parser.add_argument(f"--{name}", default=False, action="store_true", help=text)
        for name, instead in (
            ("disable_beartype", "types are checked without beartype"),
            ("exclude_infer_dataclass_field_type", "declare the type with with_output_types"),
            ("force_cloudpickle_deterministic_coders", "keys are never encoded with dill"),
        ):
            parser.add_without_effect(instead, f"--{name}", default=False, action="store_true")

    def validate(self, validator: Any = None) -> list[str]:
        return [
            three_parts(f"--type_check_additional has no feature {name!r}", hint="use all or ptransform_fn")
            for name in self.type_check_additional.split(",")
            if name and name not in _ADDITIONAL_CHECKS
        ]


class DirectOptions(PipelineOptions):
    """Options of Beam's in-process runner, which can be given and read (Beam's ``DirectOptions``).

    None has an effect; a run says so.
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        cores = "--master='local[4]' runs on four cores"
        parser.add_without_effect(cores, "--direct_num_workers", type=int, default=1)
        parser.add_without_effect(
            cores,
            "--direct_running_mode",
            default="in_memory",
            choices=["in_memory", "multi_threading", "multi_processing"],
        )
        parser.add_without_effect(
            _BEAMS_RUNNER,
            "--no_direct_runner_use_stacked_bundle",
            dest="direct_runner_use_stacked_bundle",
            action="store_false",
        )
        parser.add_without_effect(_BEAMS_RUNNER, "--direct_runner_bundle_repeat", type=int, default=0)
        parser.add_without_effect(
            _BEAMS_RUNNER, "--direct_embed_docker_python", action="store_true", default=False
        )
        parser.add_without_effect(_BEAMS_RUNNER, "--direct_test_splits", type=json.loads, default={})


class DebugOptions(PipelineOptions):
    """Experiments (Beam's ``DebugOptions``).

    Attributes:
        experiments: Names, or ``name=value``, for the program to look up; None if there are none.
        number_of_worker_harness_threads: Without effect.
        dataflow_job_file: A file for the request to the Dataflow service; without effect.

    >>> options = PipelineOptions(["--experiments=fast,level=3"]).view_as(DebugOptions)
    >>> options.lookup_experiment("fast"), options.lookup_experiment("level")
    (True, '3')
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_without_effect(
            "only what your own program asks with lookup_experiment",
            "--experiment",
            "--experiments",
            dest="experiments",
            action=CommaSeparatedList,
            default=None,
        )
        parser.add_without_effect("Pipeline.explain() shows the plan", "--dataflow_job_file", default=None)
        parser.add_without_effect(
            "--spark_conf=spark.executor.cores=4 says how many tasks an executor runs",
            "--number_of_worker_harness_threads",
            type=int,
            default=None,
        )

    def add_experiment(self, experiment: str) -> None:
        """Adds an experiment unless it is there."""
        so_far: list[str] = self._all_options["experiments"] or []
        if experiment not in so_far:
            self._all_options["experiments"] = [*so_far, experiment]

    def lookup_experiment(self, key: str, default: Any = None) -> Any:
        """True for an experiment without a value, the text of its value if it has one, else `default`."""
        for experiment in self.experiments or []:
            name, equals, value = experiment.partition("=")
            if experiment == key or name == key:
                return value if equals and experiment != key else True
        return default

    def validate(self, validator: Any = None) -> list[str]:
        if isinstance(self.experiments, str):
            hint = f"write experiments=[{self.experiments!r}]"
            return [three_parts("experiments is a string, not a list", hint=hint)]
        return []


class SetupOptions(PipelineOptions):
    """What workers need besides the pipeline itself (Beam's ``SetupOptions``).

    Spark provides most of it, so that the other options have no effect; a run says so.

    Attributes:
        pickle_library: ``default`` and ``cloudpickle`` are the same here.
        save_main_session: Always done: functions of the main program are sent by value.
        gbek: A secret to encrypt shuffled data with; refused, Spark encrypts with a key of its own.
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        image = "install packages on the workers, or send an environment with Spark's --archives"
        files = "--spark_conf=spark.submit.pyFiles=... sends packages, and spark.files=... other files"
        parser.add_without_effect(image, "--requirements_file", default=None)
        parser.add_without_effect(image, "--requirements_cache", default=None)
        parser.add_without_effect(
            image, "--requirements_cache_only_sources", default=False, action="store_true"
        )
        parser.add_without_effect("your own modules are sent anyway", "--setup_file", default=None)
        for names, instead in (
            (("--extra_package", "--extra_packages"), files),
            (("--file_to_stage", "--files_to_stage"), files),
            (("--beam_plugin", "--beam_plugins"), "import the module in the one that needs it"),
        ):
            parser.add_without_effect(instead, *names, dest=names[1][2:], action="append", default=None)
        parser.add_argument(
            "--pickle_library",
            default="default",
            choices=["cloudpickle", "default", "dill", "dill_unsafe"],
            help="default or cloudpickle, which are the same here.",
        )
        parser.add_argument("--save_main_session", action="store_true", default=None, help="Always done.")
        parser.add_without_effect(
            "functions of the main program are always sent by value",
            "--no_save_main_session",
            dest="save_main_session",
            action="store_false",
            default=None,
        )
        parser.add_without_effect("penstock sends itself", "--sdk_location", default="default")
        parser.add_without_effect("no service asks for it", "--user_agent", default=None)
        for name in _CONTAINERS:
            parser.add_without_effect("Spark says what workers are", f"--{name}", default=None)
        parser.add_without_effect(
            "--spark_conf=spark.jars.repositories=... says where Spark finds packages of Java",
            "--maven_repository_url",
            default=None,
        )
        parser.add_without_effect("--spark_conf=spark.io.encryption.enabled=true", "--gbek", default=None)

    def validate(self, validator: Any = None) -> list[str]:
        if self.pickle_library.startswith("dill"):
            what = f"--pickle_library={self.pickle_library} is not available"
            return [three_parts(what, hint="leave the option out: functions are sent with cloudpickle")]
        return []


class TestOptions(PipelineOptions):
    """Options of test pipelines (Beam's ``TestOptions``).

    Attributes:
        on_success_matcher: Beam's; without effect.
        dry_run: Beam's; without effect.
        wait_until_finish_duration: How long a test waits for its pipeline, in milliseconds; None for ever.
    """

    __test__ = False  # The name begins with Test, and pytest would take the class for tests.

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_without_effect("assert_that checks", "--on_success_matcher", default=None)
        parser.add_without_effect("Pipeline.explain() runs nothing", "--dry_run", default=False)
        parser.add_argument("--wait_until_finish_duration", type=int, default=None, help="In milliseconds.")
