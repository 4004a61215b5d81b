"""The check of all options before a pipeline is built (Beam's ``PipelineOptionsValidator``)."""

from __future__ import annotations

from penstock.options import pipeline_options


class PipelineOptionsValidator:
    """Asks each class of options with an effect for errors; `runner` is Beam's argument and has no effect.

    >>> options = pipeline_options.PipelineOptions([], mode="turbo")
    >>> print(*PipelineOptionsValidator(options, None).validate())
    mode is 'turbo'
      hint: use one of batch, micro_batch, streaming
    """

    OPTIONS = (
        pipeline_options.DebugOptions,
        pipeline_options.SetupOptions,
        pipeline_options.SparkOptions,
        pipeline_options.StandardOptions,
        pipeline_options.StreamingOptions,
        pipeline_options.TestOptions,
        pipeline_options.TypeOptions,
    )

    def __init__(self, options: pipeline_options.PipelineOptions, runner: object = None) -> None:
        self.options = options
        self.runner = runner

    def validate(self) -> list[str]:
        """Returns the errors, as strings; an empty list if there are none."""
        return [error for cls in self.OPTIONS for error in self.options.view_as(cls).validate(self)]
