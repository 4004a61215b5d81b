"""Runners: what takes a pipeline and runs it. There is one, on Spark; it lives in a package of its own."""

from penstock.runners.runner import PipelineResult, PipelineRunner, PipelineState, create_runner

__all__ = ["DirectRunner", "PipelineResult", "PipelineRunner", "PipelineState", "create_runner"]


def DirectRunner() -> PipelineRunner:
    """The Spark runner on this machine, under the name that Beam's programs use for their local runner.

    Raises:
        ImportError: If the runner's package cannot be imported.
    """
    return create_runner("DirectRunner")
