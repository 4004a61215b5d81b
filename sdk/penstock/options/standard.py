"""The options that Beam defines and that mean something to a pipeline on Spark."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from penstock.error import three_parts
from penstock.options.base import OptionsParser, PipelineOptions

_ADDITIONAL_CHECKS = ("all", "ptransform_fn")


class CommaSeparatedList(argparse.Action):
    """Repeated flags and commas both make one list; a value with several ``=`` stays whole.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--x", action=CommaSeparatedList)
    >>> parser.parse_args(["--x=a,b=1", "--x=c=d=1,e=2"]).x
    ['a', 'b=1', 'c=d=1,e=2']
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Adds the items to the list so far."""
        so_far = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*so_far, *_split(str(values))])


def _split(text: str) -> Iterator[str]:
    start = 0
    for position, character in enumerate(text):
        if character == "," and text.count("=", start, position) <= 1:
            yield from filter(None, [text[start:position].strip()])
            start = position + 1
    yield from filter(None, [text[start:].strip()])


class StandardOptions(PipelineOptions):
    """Options of every pipeline (Beam's ``StandardOptions``).

    Attributes:
        runner: ``SparkRunner`` (the default), or a name that `penstock.runners.create_runner` takes for it.
        streaming: Whether the pipeline is meant to run without end.
        resource_hints: Beam's hints, as ``name=value`` strings.
        auto_unique_labels: Numbers a label that is used twice instead of refusing it.
        no_wait_until_finish: Leaving the pipeline's ``with`` block does not wait for its end.

    >>> PipelineOptions(["--streaming"]).view_as(StandardOptions).streaming
    True
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


class StreamingOptions(PipelineOptions):
    """Options of pipelines that go on for long (Beam's ``StreamingOptions``).

    Attributes:
        update_compatibility_version: A version of Beam's whose older behaviour is asked for; None for
            today's.

    >>> PipelineOptions(["--update_compatibility_version=2.60.0"]).is_compat_version_prior_to("2.72.0")
    True
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument(
            "--update_compatibility_version",
            default=None,
            nargs="?",
            help="An earlier version, such as 2.60.0.",
        )


class TypeOptions(PipelineOptions):
    """What is checked of types, and which unsafe things are allowed (Beam's ``TypeOptions``).

    Attributes:
        type_check_strictness: ``ALL_REQUIRED`` refuses steps without type hints; ``DEFAULT_TO_ANY`` takes
            them as Any.
        type_check_additional: ``all`` or ``ptransform_fn``, separated by commas.
        pipeline_type_check: Checks hints while the pipeline is built; on unless ``--no_pipeline_type_check``.
        runtime_type_check: Checks every element against its hint while the pipeline runs.
        performance_runtime_type_check: Checks a sample of them: the first hundred of a bundle, then each hundredth.
        allow_non_deterministic_key_coders: Refused when the pipeline runs; register a coder for the key's class.
        allow_unsafe_triggers: Accepts triggers that may lose data.

    >>> PipelineOptions(["--no_pipeline_type_check"]).view_as(TypeOptions).pipeline_type_check
    False
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
            ("allow_non_deterministic_key_coders", "Refused: register a coder for the class of the key."),
            ("allow_unsafe_triggers", "Accepts triggers that may lose data."),
        ):
            parser.add_argument(f"--{name}", default=False, action="store_true", help=text)

    def validate(self, validator: Any = None) -> list[str]:
        """What is wrong with these options, a text each."""
        errors = [
            three_parts(f"--type_check_additional has no feature {name!r}", hint="use all or ptransform_fn")
            for name in self.type_check_additional.split(",")
            if name and name not in _ADDITIONAL_CHECKS
        ]
        if self.allow_non_deterministic_key_coders:
            what = "allow_non_deterministic_key_coders is refused: only keys with equal bytes meet"
            hint = "register a deterministic coder for the class of the key: coders.registry.register_coder"
            errors.append(three_parts(what, hint=hint))
        return errors


class DirectOptions(PipelineOptions):
    """Options of Beam's in-process runner, accepted so that programs move over (Beam's ``DirectOptions``).

    Attributes:
        direct_num_workers: The number of workers; 1 by default.
        direct_running_mode: ``in_memory``, ``multi_threading`` or ``multi_processing``.
        direct_runner_use_stacked_bundle: Of no effect.
        direct_runner_bundle_repeat: Of no effect.
        direct_embed_docker_python: Of no effect.
        direct_test_splits: Of no effect.

    >>> PipelineOptions(["--direct_num_workers=4"]).view_as(DirectOptions).direct_num_workers
    4
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument("--direct_num_workers", type=int, default=1, help="The number of workers.")
        parser.add_argument(
            "--direct_running_mode",
            default="in_memory",
            choices=["in_memory", "multi_threading", "multi_processing"],
            help="Where workers run.",
        )
        parser.add_argument(
            "--no_direct_runner_use_stacked_bundle",
            dest="direct_runner_use_stacked_bundle",
            action="store_false",
            help="Of no effect.",
        )
        parser.add_argument("--direct_runner_bundle_repeat", type=int, default=0, help="Of no effect.")
        parser.add_argument(
            "--direct_embed_docker_python", action="store_true", default=False, help="Of no effect."
        )
        parser.add_argument("--direct_test_splits", type=json.loads, default={}, help="Of no effect.")


class DebugOptions(PipelineOptions):
    """Experiments (Beam's ``DebugOptions``).

    Attributes:
        experiments: Names, or ``name=value``; None if there are none.
        number_of_worker_harness_threads: Beam's; of no effect.

    >>> options = PipelineOptions(["--experiments=fast,level=3"]).view_as(DebugOptions)
    >>> options.lookup_experiment("fast"), options.lookup_experiment("level")
    (True, '3')
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument(
            "--experiment",
            "--experiments",
            dest="experiments",
            action=CommaSeparatedList,
            default=None,
            help="A name or name=value; repeatable.",
        )
        parser.add_argument(
            "--number_of_worker_harness_threads", type=int, default=None, help="Of no effect."
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
        """What is wrong with these options, a text each."""
        if isinstance(self.experiments, str):
            hint = f"write experiments=[{self.experiments!r}]"
            return [three_parts("experiments is a string, not a list", hint=hint)]
        return []


class SetupOptions(PipelineOptions):
    """What workers need besides the pipeline itself (Beam's ``SetupOptions``).

    Attributes:
        requirements_file: A pip requirements file.
        requirements_cache: A folder of downloaded packages.
        setup_file: A ``setup.py`` whose folder is packed and sent along.
        extra_packages: Package files to send along.
        files_to_stage: Other files to send along.
        beam_plugins: Modules that workers import first.
        pickle_library: ``default`` and ``cloudpickle`` are the same here.
        save_main_session: Accepted; functions of the main program are always sent by value.
        sdk_location: Beam's; of no effect.
        user_agent: A text that names the pipeline to external services.

    >>> options = PipelineOptions(["--extra_package=a.whl", "--extra_package=b.whl"])
    >>> options.view_as(SetupOptions).extra_packages
    ['a.whl', 'b.whl']
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument("--requirements_file", default=None, help="A pip requirements file.")
        parser.add_argument("--requirements_cache", default=None, help="A folder of downloaded packages.")
        parser.add_argument("--setup_file", default=None, help="A setup.py to pack and send along.")
        for names, text in (
            (("--extra_package", "--extra_packages"), "A package file to send along; repeatable."),
            (("--file_to_stage", "--files_to_stage"), "A file to send along; repeatable."),
            (("--beam_plugin", "--beam_plugins"), "A module that workers import first; repeatable."),
        ):
            parser.add_argument(*names, dest=names[1][2:], action="append", default=None, help=text)
        parser.add_argument(
            "--pickle_library",
            default="default",
            choices=["cloudpickle", "default", "dill", "dill_unsafe"],
            help="default or cloudpickle.",
        )
        parser.add_argument("--save_main_session", action="store_true", default=None, help="Always done.")
        parser.add_argument(
            "--no_save_main_session",
            dest="save_main_session",
            action="store_false",
            default=None,
            help="Of no effect.",
        )
        parser.add_argument("--sdk_location", default="default", help="Of no effect.")
        parser.add_argument("--user_agent", default=None, help="Names the pipeline to external services.")

    def validate(self, validator: Any = None) -> list[str]:
        """What is wrong with these options, a text each."""
        if self.pickle_library.startswith("dill"):
            what = f"--pickle_library={self.pickle_library} is not available"
            return [three_parts(what, hint="leave the option out: functions are sent with cloudpickle")]
        return []


class TestOptions(PipelineOptions):
    """Options of test pipelines (Beam's ``TestOptions``).

    Attributes:
        on_success_matcher: Beam's; of no effect.
        dry_run: Beam's; of no effect.
        wait_until_finish_duration: How long a test waits for its pipeline, in milliseconds; None for ever.

    >>> PipelineOptions(["--wait_until_finish_duration=500"]).view_as(TestOptions).wait_until_finish_duration
    500
    """

    __test__ = False  # The name begins with Test, and pytest would take the class for tests.

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument("--on_success_matcher", default=None, help="Of no effect.")
        parser.add_argument("--dry_run", default=False, help="Of no effect.")
        parser.add_argument("--wait_until_finish_duration", type=int, default=None, help="In milliseconds.")
