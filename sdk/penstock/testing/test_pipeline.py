"""A Pipeline for tests (Beam's ``apache_beam.testing.test_pipeline``)."""

from __future__ import annotations

import argparse
import base64
import pickle
import shlex
import sys
from collections.abc import Sequence
from typing import Any, ClassVar
from unittest import SkipTest

from penstock.construction.pipeline import Pipeline
from penstock.error import refusal
from penstock.options.pipeline_options import PipelineOptions, TestOptions
from penstock.runners.runner import PipelineState

__all__ = ["TestPipeline"]


class TestPipeline(Pipeline):
    """A pipeline whose `run` waits and checks that the run succeeded (Beam's ``TestPipeline``).

    The command-line argument ``--test-pipeline-options="--runner=... --mode=..."`` sets options for all tests.

    Args:
        runner: See `Pipeline`, also for the arguments without an explanation here.
        options: By default the options of the command-line argument.
        argv: The arguments that may contain ``--test-pipeline-options``; by default the program's.
        is_integration_test: Whether to skip the test if the command line lacks this argument.
        blocking: Whether `run` waits.
        additional_pipeline_args: More options, as flags.
        timeout: How long to wait, in milliseconds; by default the option ``wait_until_finish_duration``.
    """

    __test__ = False  # Otherwise pytest would collect the class because of its name.
    pytest_test_pipeline_options: ClassVar[str | None] = None

    def __init__(
        self,
        runner: object = None,
        options: PipelineOptions | None = None,
        argv: Sequence[str] | None = None,
        is_integration_test: bool = False,
        blocking: bool = True,
        additional_pipeline_args: Sequence[str] | None = None,
        display_data: dict[str, Any] | None = None,
        timeout: int | None = None,
        **runner_arguments: Any,
    ) -> None:
        given = self.get_options_list(argv)
        if is_integration_test and not given:
            raise SkipTest("an integration test needs --test-pipeline-options")
        self.is_integration_test = is_integration_test
        self.options_list = [*given, *(additional_pipeline_args or ())]
        self.blocking = blocking
        if options is None:
            options = PipelineOptions(self.options_list)
        waiting = options.view_as(TestOptions).wait_until_finish_duration
        self.timeout = waiting if timeout is None else timeout
        super().__init__(runner, options, display_data=display_data, **runner_arguments)

    def run(self, test_runner_api: object = True) -> Any:
        """Runs the pipeline and waits, unless `blocking` is off.

        If the run fails or takes longer than the timeout, it raises an AssertionError.
        """
        result = super().run()
        if self.blocking:
            state = result.wait_until_finish(duration=self.timeout)
            if state not in (PipelineState.DONE, PipelineState.CANCELLED):
                what = "the timeout has passed" if state is None else f"the run ended as {state}"
                raise refusal(AssertionError, f"Pipeline execution failed: {what}")
        return result

    def get_pipeline_options(self) -> PipelineOptions:
        """Returns the pipeline's options."""
        return self.options

    @classmethod
    def get_options_list(cls, argv: Sequence[str] | None = None) -> list[str]:
        """Returns the flags in ``--test-pipeline-options``, by default of the program's arguments; a list.

        >>> TestPipeline.get_options_list(["--test-pipeline-options=--mode=batch --streaming"])
        ['--mode=batch', '--streaming']
        """
        parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
        parser.add_argument("--test-pipeline-options")
        known, _ = parser.parse_known_args(sys.argv if argv is None else argv)
        return shlex.split(known.test_pipeline_options or cls.pytest_test_pipeline_options or "")

    def get_full_options_as_args(self, **extra_opts: object) -> list[str]:
        """Returns the test's flags, with more options as flags.

        Empty and false options are left out; an option whose name contains ``matcher`` is pickled.
        """
        flags = list(self.options_list)
        for name, value in extra_opts.items():
            if value is True:
                flags.append(f"--{name}")
            elif "matcher" in name and value:
                flags.append(f"--{name}={base64.b64encode(pickle.dumps(value)).decode()}")
            elif value:
                flags.append(f"--{name}={value}")
        return flags

    def get_option(self, opt_name: str, bool_option: bool = False) -> Any:
        """Returns one option of the test's flags as a string, or None; with `bool_option`, whether the flag is set."""
        parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
        action = "store_true" if bool_option else "store"
        parser.add_argument(f"--{opt_name.removeprefix('--')}", dest="wanted", action=action)
        return parser.parse_known_args(self.options_list)[0].wanted
