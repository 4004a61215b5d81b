"""The options of the Spark runner."""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.error import refusal, three_parts
from penstock.options.base import MergingAction, OptionsParser, PipelineOptions

_LOGGER = logging.getLogger(__name__)

_LINE = re.compile(r"((?:[^\\\s=:]|\\.)+)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


class SparkProperties(MergingAction):
    """Collects ``key=value`` texts, and JSON objects, into one dictionary; a later value wins."""

    def merged(self, so_far: Any, value: Any, flag: str) -> dict[str, str]:
        try:
            return {**(so_far or {}), **spark_properties([str(value)])}
        except ValueError as error:
            raise argparse.ArgumentError(self, str(error).partition("\n")[0]) from None


def spark_properties(given: Mapping[str, Any] | Iterable[str] | None) -> dict[str, str]:
    """Spark properties as a dictionary of strings; later texts win.

    Args:
        given: A mapping, or texts that are each ``key=value`` or a JSON object; None for none. Booleans
            become ``true`` and ``false``, as Spark writes them.

    Raises:
        ValueError: If a text has no ``=``, or `given` is one string.

    >>> spark_properties(["spark.ui.enabled=false", '{"spark.task.cpus": 2}'])
    {'spark.ui.enabled': 'false', 'spark.task.cpus': '2'}
    """
    if isinstance(given, Mapping):
        return {_checked_name(key): _property_text(key, value) for key, value in given.items()}
    if isinstance(given, str) or not isinstance(given, Iterable | None):
        what = f"spark_conf is of the type {type(given).__name__}"
        raise refusal(ValueError, what, hint="write spark_conf=['key=value'] or a dict")
    result: dict[str, str] = {}
    for text in given or ():
        if not isinstance(text, str):
            what = f"spark_conf contains a value of the type {type(text).__name__}"
            raise refusal(ValueError, what, hint="write spark_conf=['key=value'] or a dict")
        if text.startswith("{"):
            result.update(spark_properties(_object_of(text)))
            continue
        key, equals, value = text.partition("=")
        if not (key and equals):
            # The text after the name may be a secret.
            name = re.split(r"[\s:=]", text, maxsplit=1)[0]
            shown = name if name == text else f"{name} ..."
            raise refusal(ValueError, f"{shown!r} is not key=value", hint="write spark.some.property=value")
        result[key.strip()] = value
    return result


def _object_of(text: str) -> Mapping[str, Any]:
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError as error:
        # The text itself may hold a secret.
        what = f"spark_conf has an object that is not JSON: {error}"
        raise refusal(ValueError, what, hint="write spark_conf=['key=value'] or a dict") from None


def _checked_name(key: Any) -> str:
    if not (isinstance(key, str) and key):
        what = f"spark_conf has a property without a name: {key!r}"
        raise refusal(ValueError, what, hint="write spark_conf={'spark.some.property': value}")
    return key


def _property_text(key: str, value: Any) -> str:
    if not isinstance(value, str | int | float):
        what = f"the value of {key} in spark_conf is of the type {type(value).__name__}"
        raise refusal(ValueError, what, hint="use a text, a number, True or False")
    return str(value).lower() if isinstance(value, bool) else str(value)


def properties_of_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """The Spark properties of a file like ``spark-defaults.conf``; ValueError if it cannot be read."""
    name = os.path.expanduser(path)
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        what = f"the file of Spark properties {name} cannot be read: {getattr(error, 'strerror', 'it is not UTF-8')}"
        raise refusal(ValueError, what, hint="name a file like spark-defaults.conf") from None
    if os.name == "posix" and os.stat(name).st_mode & 0o044:
        _warn_of_readers(name)
    return parsed_properties(text)


def parsed_properties(text: str) -> dict[str, str]:
    r"""The properties in a text with a line for each: ``key value``, ``key=value`` or ``key: value``.

    >>> parsed_properties("# Keys.\nspark.a  b c\nspark.d = e\\\n  f\n\nspark.g:h\\=\\u0041")
    {'spark.a': 'b c', 'spark.d': 'ef', 'spark.g': 'h=A'}
    """
    found = {}
    # A line that ends with an odd number of backslashes goes on in the next one.
    for line in re.sub(r"(?<!\\)((?:\\\\)*)\\\n[ \t]*", r"\1", text).splitlines():
        match = _LINE.match(line.strip())
        if match and match[1][0] not in "#!":
            found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _unescaped(text: str) -> str:
    def sign(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(sign, text)


@functools.cache
def _warn_of_readers(path: str) -> None:
    _LOGGER.warning("%s can be read by others; if it holds secrets, run: chmod 600 %s", path, path)


MODES = ("batch", "micro_batch", "streaming")
PROGRESS = ("auto", "off")
_PORT_MAX = 65_535
_SWITCHES = {
    "fast_start": "Starts a local Spark in half the time, at the cost of long jobs; for tests.",
    "show_elements_in_errors": "Puts the failing element into the error's text.",
    "drain_on_signal": "Has Ctrl-C and SIGTERM drain a stream, instead of cancelling it.",
    "take_over": "Ends another run that holds the checkpoint, and goes on from where it was.",
    "live": "Shows a run in the terminal while it goes on: watermarks, lags, panes (needs penstock[live]).",
}

OPTIMISATIONS = {
    "early_combining": "elements of a stream are combined by the tasks that read them",
    "one_round": "a fan-out of hot keys is left out in batch, where values are combined before the shuffle anyway",
    "lifted_combiners": "the values of a GroupByKey that are only combined are combined before the shuffle",
    "window_columns": "simple groupings of a stream keep windows in columns, instead of a machine for each key",
    "inline_sinks": "the last step of a stream makes the rows of its only sink, without a step of Spark's between them",
    "native_sums": "Spark adds up sums and counts of known types in a batch",
    "native_columns": "Spark computes with the columns of a source on its own, where it can",
    "native_streams": "Spark computes a whole stream of columns on its own, or the sums of its rounds, where it can",
    "column_bounds": "columns whose numbers are small, according to the footers of files, are added up as they are",
    "driver_rows": "the driver makes rows of a few values of the program on its own, without a task of Python",
    "shortcuts": "workers take the elements of a window, or the sums of all windows, together",
    "whole_batches": "batches go as they are from one `process_batch` to the next, even if there is a `process`",
}
"""The runner's optimisations, by name: ``without`` switches them off, and none changes a result."""


class SparkOptions(PipelineOptions):
    """Options of the Spark runner. `SparkRunnerOptions`, Beam's name, is the same class.

    Attributes:
        mode: ``batch``, ``micro_batch`` or ``streaming``; None means batch when every input is bounded.
        master: Spark's master URL, such as ``local[4]``; None leaves it to the Spark configuration.
        spark_master_url: Beam's name for `master`; `master` wins.
        app_name: The application's name in Spark's pages; None lets the runner name it.
        spark_conf: Spark properties; ``--spark_conf=key=value``, repeatable. Everybody on the machine can read a
            command line: put secrets into `spark_conf_file`.
        spark_conf_file: A file of Spark properties, like ``spark-defaults.conf``; `spark_conf` wins.
        shuffle_partitions: The number of partitions of a shuffle; None takes the number of the checkpoint, if there is
            one, or leaves it to Spark.
        checkpoint_location: The folder in which a streaming pipeline keeps its progress and state.
        events_per_batch: How many events of a TestStream make a micro-batch; None puts all into one.
        trigger_interval: The seconds between the beginnings of two micro-batches; None begins one when something
            arrives, and once a second while timers wait for the clock.
        without: The names of optimisations to switch off, of `OPTIMISATIONS`, or ``all``.
        record_events: How many elements and panes of each grouping are recorded, for ``result.figure``; None for none.
        drop_state: The labels of groupings and sources that the pipeline no longer has: the state of the groupings in
            the checkpoint may go, and how far the sources were read.
        drain_on_signal: Makes Ctrl-C and SIGTERM drain a stream, instead of cancelling it.
        take_over: Ends another run that holds the checkpoint, and continues from there.
        progress: ``off`` hides the progress of a batch; ``auto`` shows a bar on a terminal, and lines elsewhere.
        live: Shows a run in the terminal while it goes on; elsewhere, a line every ten seconds.
        live_port: The port of a page that shows the run while it goes on; 0 takes any that is free.
        live_host: The address of that page; by default only this machine can look.
        spark_job_server_jar: Beam's; without effect, as are `spark_rest_url`, `spark_submit_uber_jar` and
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
            help="The label of a grouping or a source whose state in the checkpoint may go; repeatable.",
        )
        parser.add_argument(
            "--progress", default="auto", help="off hides the progress of a batch; auto shows it."
        )
        parser.add_argument(
            "--live_port", type=int, default=None, help="The port of a page that shows the run; 0: any."
        )
        parser.add_argument(
            "--live_host", default=None, help="The address of that page; by default this machine's own."
        )
        for name, meaning in _SWITCHES.items():
            parser.add_argument(f"--{name}", action="store_true", default=False, help=meaning)
        _add_those_of_the_job_server(parser)

    def master_url(self) -> str | None:
        """The master URL under either name; None if neither is set."""
        url: str | None = self.master or self.spark_master_url
        return url

    def properties(self) -> dict[str, str]:
        """The Spark properties."""
        in_file = properties_of_file(self.spark_conf_file) if self.spark_conf_file else {}
        return in_file | spark_properties(self.spark_conf)

    def switched_off(self) -> frozenset[str]:
        """The names of the optimisations that are switched off; ``all`` stands for all of them."""
        names = frozenset(self.without or ())
        return frozenset(OPTIMISATIONS) if "all" in names else names

    def validate(self, validator: Any = None) -> list[str]:
        errors = []
        if self.mode is not None and self.mode not in MODES:
            errors.append(three_parts(f"mode is {self.mode!r}", hint=f"use one of {', '.join(MODES)}"))
        for name in ("master", "app_name", "spark_conf_file", "checkpoint_location"):
            # It comes of a variable of the shell that is not set, and would mean the default without a word.
            if getattr(self, name) == "":
                errors.append(three_parts(f"{name} is empty", hint=f"give {name} a value, or leave it out"))
        for name in ("shuffle_partitions", "events_per_batch", "record_events"):
            count = getattr(self, name)
            if isinstance(count, int | float) and count < 1:
                errors.append(three_parts(f"{name} is {count!r}", hint="use a whole number above 0"))
        errors += _wrong_names(self.without)
        interval = self.trigger_interval
        if isinstance(interval, int | float) and not 0 < interval < 86_400:
            errors.append(
                three_parts(
                    f"trigger_interval is {interval!r}", hint="use seconds: more than 0, less than a day"
                )
            )
        if self.take_over and not self.checkpoint_location:
            what = "take_over is set without a checkpoint_location"
            errors.append(
                three_parts(what, hint="name the folder of the checkpoint that is to be taken over")
            )
        errors += self._wrong_views()
        try:
            self.properties()
        except ValueError as error:
            errors.append(str(error))
        return errors

    def views(self) -> list[str]:
        """The options that ask for a view of the run."""
        given = {"live": bool(self.live), "live_port": self.live_port is not None}
        return [name for name, is_given in given.items() if is_given]

    def _wrong_views(self) -> list[str]:
        errors = []
        if self.progress not in PROGRESS:
            errors.append(
                three_parts(f"progress is {self.progress!r}", hint=f"use one of {', '.join(PROGRESS)}")
            )
        port = self.live_port
        is_port = isinstance(port, int) and not isinstance(port, bool) and 0 <= port <= _PORT_MAX
        if port is not None and not is_port:
            hint = f"use a port from 1 to {_PORT_MAX}, or 0 for any that is free"
            errors.append(three_parts(f"live_port is {port!r}", hint=hint))
        if self.live_host is not None and port is None:
            what = "live_host is set without a live_port, and so there is no page"
            errors.append(three_parts(what, hint="add --live_port=0"))
        return errors


def _add_those_of_the_job_server(parser: OptionsParser) -> None:
    instead = "there is no job server here: --master"
    parser.add_without_effect(instead, "--spark_job_server_jar", default=None)
    parser.add_without_effect(instead, "--spark_submit_uber_jar", action="store_true", default=False)
    parser.add_without_effect(instead, "--spark_rest_url", default=None)
    parser.add_without_effect(
        "the installed pyspark has the version", "--spark_version", default="3", choices=["3"]
    )


def _wrong_names(without: Any) -> list[str]:
    hint = f"use a list of: all, {', '.join(OPTIMISATIONS)}"
    unknown = [name for name in without or () if name != "all" and name not in OPTIMISATIONS]
    return [
        three_parts(f"without names {name!r}, which is not an optimisation", hint=hint) for name in unknown
    ]


SparkRunnerOptions = SparkOptions
