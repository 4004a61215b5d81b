"""The options of the Spark runner."""

from __future__ import annotations

from typing import Any

from penstock.error import three_parts
from penstock.options.base import PipelineOptions
from penstock.options.parser import OptionsParser
from penstock.options.spark_conf import SparkProperties, properties_of_file, spark_properties

MODES = ("batch", "micro_batch", "streaming")
_SWITCHES = {
    "fast_start": "Starts a local Spark in half the time, at the cost of long jobs; for tests.",
    "show_elements_in_errors": "Puts the failing element into the error's text.",
    "drain_on_signal": "Has Ctrl-C and SIGTERM drain a stream, in the place of cancelling it.",
    "take_over": "Ends another run that holds the checkpoint, and goes on from where it was.",
}

OPTIMISATIONS = {
    "early_combining": "elements of a stream are combined by the tasks that read them",
    "one_round": "a fan-out of hot keys is left out in batch, where values are combined before the shuffle anyway",
    "lifted_combiners": "what a GroupByKey's values are only combined from is combined before the shuffle",
    "window_columns": "simple groupings of a stream keep windows in columns, in the place of a machine for each key",
    "inline_sinks": "the last step of a stream makes the rows of its only sink, without a step of Spark's between them",
    "native_sums": "Spark adds up sums and counts of known types",
    "native_columns": "Spark computes with the columns of a source by itself, where it can",
    "column_bounds": "columns whose numbers are small, as footers of files tell, are added up as they are",
    "driver_rows": "the driver makes rows of a few values of the program by itself, without a task of Python",
    "shortcuts": "workers take the elements of a window, or the sums of all windows, together",
    "whole_batches": "batches go as they are from one `process_batch` to the next, also where there is a `process`",
}
"""What the runner does for speed alone, by name: each can be switched off with ``without``, and changes no result."""


class SparkOptions(PipelineOptions):
    """Options of the Spark runner. `SparkRunnerOptions`, Beam's name, is the same class.

    Attributes:
        mode: ``batch``, ``micro_batch`` or ``streaming``; None means batch when every input is bounded.
        master: Spark's master URL, such as ``local[4]``; None leaves it to the Spark configuration.
        spark_master_url: Beam's name for `master`; `master` wins.
        app_name: The application's name in Spark's pages; None lets the runner name it.
        spark_conf: Spark properties; ``--spark_conf=key=value``, repeatable. Everybody on the machine can read a
            command line: secrets belong into `spark_conf_file`.
        spark_conf_file: A file of Spark properties, like ``spark-defaults.conf``; those of `spark_conf` win.
        shuffle_partitions: The number of partitions of a shuffle; None leaves it to Spark.
        checkpoint_location: The folder in which a streaming pipeline keeps its progress and state.
        events_per_batch: How many events of a TestStream make a micro-batch; None makes one of all.
        trigger_interval: The seconds between the beginnings of two micro-batches; None begins one when something
            arrives, and once a second for what waits for the clock.
        without: The names of optimisations to switch off, of `OPTIMISATIONS`, or ``all``.
        record_events: How many elements and panes of each grouping are recorded, for ``result.figure``; None for none.
        drop_state: The labels of groupings whose state in the checkpoint may go, since the pipeline has them no more.
        drain_on_signal: Has Ctrl-C and SIGTERM drain a stream, in the place of cancelling it.
        take_over: Ends another run that holds the checkpoint, and goes on from where that one was.
        spark_job_server_jar: Beam's; of no effect, as are `spark_rest_url`, `spark_submit_uber_jar` and
            `spark_version`.
        fast_start: Starts a local Spark in half the time, at the cost of long jobs; for tests.
        show_elements_in_errors: Puts the failing element into the error's text; off, since elements may be
            private.

    >>> options = PipelineOptions(["--master=local[2]", "--spark_conf=spark.ui.enabled=false"])
    >>> spark = options.view_as(SparkOptions)
    >>> spark.master_url(), spark.properties()
    ('local[2]', {'spark.ui.enabled': 'false'})
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument("--mode", default=None, help=f"One of {', '.join(MODES)}.")
        parser.add_argument("--master", default=None, help="Spark's master URL, such as local[4].")
        parser.add_argument("--spark_master_url", default=None, help="The same, by Beam's name.")
        parser.add_argument("--app_name", default=None, help="The application's name in Spark's pages.")
        parser.add_argument(
            "--spark_conf",
            action=SparkProperties,
            default=None,
            help="A Spark property, key=value; repeatable.",
        )
        parser.add_argument(
            "--spark_conf_file", default=None, help="A file of Spark properties; the place for secrets."
        )
        parser.add_argument("--shuffle_partitions", type=int, default=None, help="Partitions of a shuffle.")
        parser.add_argument(
            "--checkpoint_location", default=None, help="The folder of a streaming pipeline's state."
        )
        parser.add_argument(
            "--events_per_batch", type=int, default=None, help="Events of a TestStream in a micro-batch."
        )
        parser.add_argument(
            "--trigger_interval", type=float, default=None, help="Seconds between two micro-batches."
        )
        parser.add_argument(
            "--without",
            action="append",
            default=None,
            help=f"An optimisation to switch off, repeatable: all, {', '.join(OPTIMISATIONS)}.",
        )
        parser.add_argument(
            "--record_events", type=int, default=None, help="Elements and panes of a grouping to be drawn."
        )
        parser.add_argument(
            "--drop_state",
            action="append",
            default=None,
            help="The label of a grouping whose state in the checkpoint may go; repeatable.",
        )
        for name, meaning in _SWITCHES.items():
            parser.add_argument(f"--{name}", action="store_true", default=False, help=meaning)
        _add_those_of_the_job_server(parser)

    def master_url(self) -> str | None:
        """The master URL under either name; None if neither is set."""
        url: str | None = self.master or self.spark_master_url
        return url

    def properties(self) -> dict[str, str]:
        """The Spark properties.

        Raises:
            ValueError: If `spark_conf` was set to something that `spark_properties` refuses, or its file cannot be
                read.
        """
        in_file = properties_of_file(self.spark_conf_file) if self.spark_conf_file else {}
        return in_file | spark_properties(self.spark_conf)

    def switched_off(self) -> frozenset[str]:
        """The names of the optimisations that are switched off.

        >>> sorted(PipelineOptions(["--without=all"]).view_as(SparkOptions).switched_off()) == sorted(OPTIMISATIONS)
        True
        """
        names = frozenset(self.without or ())
        return frozenset(OPTIMISATIONS) if "all" in names else names

    def validate(self, validator: Any = None) -> list[str]:
        """What is wrong with these options, a text each."""
        errors = []
        if self.mode is not None and self.mode not in MODES:
            errors.append(three_parts(f"mode is {self.mode!r}", hint=f"use one of {', '.join(MODES)}"))
        for name in ("shuffle_partitions", "events_per_batch", "record_events"):
            count = getattr(self, name)
            if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
                errors.append(three_parts(f"{name} is {count!r}", hint="use a whole number above 0"))
        errors += _wrong_names(self.without)
        interval = self.trigger_interval
        if interval is not None and not (isinstance(interval, int | float) and 0 < interval < 86_400):
            errors.append(
                three_parts(f"trigger_interval is {interval!r}", hint="use a number of seconds, such as 0.5")
            )
        if self.take_over and not self.checkpoint_location:
            what = "take_over is set, and there is no checkpoint_location"
            errors.append(
                three_parts(what, hint="name the folder of the checkpoint that is to be taken over")
            )
        try:
            self.properties()
        except ValueError as error:
            errors.append(str(error))
        return errors


def _add_those_of_the_job_server(parser: OptionsParser) -> None:
    """Beam's options for the way to Spark through a job server."""
    instead = "there is no job server here: --master"
    parser.add_without_effect(instead, "--spark_job_server_jar", default=None)
    parser.add_without_effect(instead, "--spark_submit_uber_jar", action="store_true", default=False)
    parser.add_without_effect(instead, "--spark_rest_url", default=None)
    parser.add_without_effect(
        "the version is that of the installed pyspark", "--spark_version", default="3", choices=["3"]
    )


def _wrong_names(without: Any) -> list[str]:
    """What is wrong with the names of optimisations to switch off."""
    hint = f"use a list of: all, {', '.join(OPTIMISATIONS)}"
    if isinstance(without, str):
        return [three_parts("without is a string", hint=hint)]
    unknown = [name for name in without or () if name != "all" and name not in OPTIMISATIONS]
    return [three_parts(f"without names {name!r}, which is no optimisation", hint=hint) for name in unknown]


SparkRunnerOptions = SparkOptions
