"""Explains Spark's errors in the terms of the pipeline; Java's own text goes to a logger, at the level DEBUG."""

from __future__ import annotations

import fnmatch
import functools
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NoReturn
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from penstock.error import BeamError, RunnerError
from penstock.graph import Graph, Read, Step
from penstock.io.files.paths import known_path
from penstock.io.formats.file_formats import FileSource
from penstock.io.query_source import QuerySource
from penstock.io.sparkio import SparkSource
from penstock_spark.reports.crash_marker import WorkerDeath, find_worker_death
from penstock_spark.reports.failure import find_failure, to_exception
from penstock_spark.reports.lineage import unwrap_source
from penstock_spark.reports.misfit_lines import find_misfit_line
from penstock_spark.reports.reporting import Reporting, current_reporting, is_in_run, reports_of
from penstock_spark.reports.spark_conditions import conditions_of
from penstock_spark.reports.spark_messages import MESSAGES, MISFIT, OF_A_FILE, Explanation, explanation_of
from penstock_spark.session.classic.java_life import (
    explain_java_death,
    find_packages_in_traceback,
    is_cut_off,
)
from penstock_spark.session.connect.server_life import explain_server_loss, is_of_connect

_LOGGER = logging.getLogger("penstock_spark.spark")
_RUNNER = __name__.partition(".")[0]
_SENTENCE_CHARACTERS = 400
_FILE_CHARACTERS = 300
_STEPS_SHOWN = 3
_CLASS_NAMES = re.compile(r"\b(?:[a-z][\w$]*\.){2,}([A-Z][\w$]*)\b")
_CAUSE = re.compile(r"^(?:Caused by: |: |)(?:[\w$]+\.)+([A-Z][\w$]*)(?:: ([^\n]+))?$", re.MULTILINE)
_BLOCK = r"Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n|\n)+(?P<said>[^\n]+)(?:\n  hint: (?P<hint>[^\n]+))?"
_RAISED = re.compile(
    r"(?:PythonException|from the Python worker)[^\n]*?(?=Traceback|\n)\n?(?P<stack>" + _BLOCK + ")"
)
_RAISED_NEXT = re.compile(
    r"(?:\n(?![ \t]*at |Traceback )[^\n]*)*?\n\n(?:The above exception was the direct cause of the following exception|"
    r"During handling of the above exception, another exception occurred):\n\n" + _BLOCK
)
"""The next exception of a chain; the last one is the one that was raised."""
_SPARKS_STATE = re.compile(
    r"\s*SQLSTATE: \w+.*|\n=== Streaming Query ===.*|;?\n'?[A-Z]\w+ .*|\nJVM stacktrace.*", re.DOTALL
)
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH.*?version: ([\d.]*\d)\b.*?driver: ([\d.]*\d)\b")
_OWN_ERROR = f"{RunnerError.__module__}.{RunnerError.__qualname__}: "
_HINT = "set the logger penstock_spark.spark to DEBUG to see Spark's own text, and call explain() to see the stages"


@dataclass(frozen=True)
class ErrorContext:
    """The facts that the code that catches an error knows."""

    reporting: Reporting = field(default_factory=current_reporting)
    graph: Graph | None = None
    places: tuple[str, ...] = ()  # The steps that Spark was running, as the second lines of errors.
    checkpoint: str | None = None  # The folder of a stream's state.
    computed: tuple[str, ...] = ()  # The steps whose values Spark computes, in the form of `places`.
    # The place of the step that a worker could not read, by the worker's error.
    unreadable: Callable[[str], str | None] = lambda said: None


@functools.cache
def keep_pyspark_quiet() -> None:
    """Keeps PySpark from printing errors that this module reports: its text has Java's stack, and quotes the input.

    PySpark still prints the errors of the program's own use of Spark.
    """
    logger = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    logger.addFilter(lambda record: not is_in_run())
    # Java calls the driver for each micro-batch, and Py4J logs what the call raises.
    logging.getLogger("py4j.clientserver").addFilter(_is_not_of_a_run)


def _is_not_of_a_run(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return error is None or _RUNNER not in find_packages_in_traceback(error)


@contextmanager
def translate_errors(surroundings: ErrorContext | None = None) -> Iterator[None]:
    """Raises every exception of the block in the terms of the pipeline."""
    try:
        yield
    except Exception as error:
        raise_translated(error, surroundings)


def raise_translated(error: Exception, surroundings: ErrorContext | None = None) -> NoReturn:
    """Raises an error in the terms of the pipeline; an error of neither Spark nor a worker stays unchanged."""
    other = translate(error, surroundings)
    if other is error:
        raise error
    raise other from other.__cause__


def translate(error: Exception, surroundings: ErrorContext | None = None) -> BaseException:
    known = surroundings or ErrorContext()
    text = _text_of(error)
    with reports_of(known.reporting):
        failure = find_failure(text)
        died = find_worker_death(text) if failure is None else None
    if failure is not None:
        return to_exception(failure)
    if isinstance(error, BeamError):
        return error
    death = explain_java_death(error, _places(known))
    if death is not None:
        return death
    lost = explain_server_loss(error, _places(known))
    if lost is not None:
        _LOGGER.debug("the server's own text:\n%s", text)
        return lost
    if not _is_sparks(error):
        return error
    _LOGGER.debug("Spark's own text:\n%s", text)
    if died is not None:
        return _death(died, known)
    if (raised := _find_raised(text)) is not None:
        return _make_worker_error(raised, known)
    if (explained := _explained(error, known)) is not None:
        return explained
    for message in MESSAGES:
        found = message.pattern.search(text)
        if found is not None:
            # A group of an alternative has the same name with a 2.
            groups = {name.removesuffix("2"): value for name, value in found.groupdict().items() if value}
            if message is MISFIT and (line := _misfit_line(groups["file"], known.graph)) is not None:
                message = replace(message, what=line)
            return _make_message_error(message, groups, groups.get("file"), known)
    return RunnerError(f"Spark failed: {_sentence(error, text)}", where=_places(known), hint=_HINT)


def _is_sparks(error: Exception) -> bool:
    if isinstance(error, PySparkException) or any("py4j" in kind.__module__ for kind in type(error).__mro__):
        return True
    if is_of_connect(error):
        return True
    return is_cut_off(error) or (isinstance(error, TypeError) and "'JavaPackage' object" in str(error))


def _text_of(error: object) -> str:
    """All that a Spark error says: its type, its text, and Java's stack with its causes."""
    parts = [f"{type(error).__name__}: {error}"]
    while isinstance(error, PySparkException):
        # The error of a query has the stacks of its causes with its cause alone.
        stack, error = getattr(error, "_stackTrace", None), getattr(error, "_cause", None)
        parts += [str(stack or ""), str(error or "")]
    return "\n".join(filter(None, parts))


def _death(died: WorkerDeath, known: ErrorContext) -> RunnerError:
    what = "the Python worker of this step has died"
    if died.fault is not None:
        what += f": {died.fault}" + (f", at {died.line}" if died.line else "")
        hint = "check the line that Python ran; a library that is not written in Python may have crashed"
    else:
        hint = "check whether the step calls os._exit, or takes so much memory that the system kills it"
    where = died.where or _list_places(died.steps) or _places(known)
    return RunnerError(what, where=where, hint=hint)


@dataclass(frozen=True)
class _Raised:
    """An exception of a worker, by Spark's text."""

    said: str  # Its class and the first line of its message.
    hint: str | None
    stack: str  # The lines of it and of its causes.


def _find_raised(text: str) -> _Raised | None:
    found = _RAISED.search(text)
    if found is None:
        return None
    start, last = found.start("stack"), found
    while (following := _RAISED_NEXT.match(text, last.end())) is not None:
        last = following
    return _Raised(last["said"], last["hint"], text[start : last.end()])


def _make_worker_error(raised: _Raised, known: ErrorContext) -> RunnerError:
    """An error that a worker raised outside of any step: it could not read the program, or an import failed."""
    if (other := _OTHER_PYTHON.search(raised.said)) is not None:
        workers, program = other.groups()
        return RunnerError(
            f"the workers run Python {workers}, and the program Python {program}: they need the same minor version",
            where="in the Spark session of the run",
            hint=f"run the program with Python {workers}, or have Spark, or the server of Spark Connect, start its "
            f"workers with Python {program} (PYSPARK_PYTHON)",
        )
    if (where := known.unreadable(raised.said)) is not None:
        what = f"the workers cannot unpickle what this step sends to them: {_plain(raised.said)}"
        hint = (
            "make the object in DoFn.setup, or give its class a __reduce__ with all arguments of its __init__"
        )
    else:
        said, where = raised.said, _places(known)
        is_own = said.startswith(_OWN_ERROR)
        what = said.removeprefix(_OWN_ERROR) if is_own else f"a Python worker failed: {_plain(said)}"
        hint = "make sure that the workers can import what the program imports"
    error = RunnerError(what, where=where, hint=raised.hint or hint)
    error.add_note(f"In the worker:\n{raised.stack}")
    return error


def _explained(error: Exception, known: ErrorContext) -> RunnerError | None:
    """Returns what the conditions of an error say; None if its text says more."""
    conditions = conditions_of(error)
    if any(each.name.startswith(OF_A_FILE) for each in conditions):
        return None
    for each in conditions:
        explanation = explanation_of(each.name)
        if explanation is not None:
            parameters = {name: value.strip("`") for name, value in each.parameters.items()}
            file = parameters.get("path") or parameters.get("outputPath")
            return _make_message_error(
                explanation, parameters, file if explanation.about == "file" else None, known
            )
    return None


def _make_message_error(
    explanation: Explanation, found: Mapping[str, str], file: str | None, known: ErrorContext
) -> RunnerError:
    values = {name: _show_path(value) if value == file else _plain(value) for name, value in found.items()}
    what = explanation.what.format_map({"file": "", **values})
    return RunnerError(what, where=_where(explanation, file, known), hint=explanation.hint)


def _where(message: Explanation, file: str | None, known: ErrorContext) -> str | None:
    match message.about:
        case "checkpoint" if known.checkpoint:
            return f"in the checkpoint {known.checkpoint}"
        case "value":
            return _list_places(known.computed) or _places(known)
        case "session":
            return _places(known) or "in the Spark session of the run"
        case _ if file is not None:
            if known.checkpoint and _is_within(_path(file), _path(known.checkpoint)):
                return f"in the checkpoint {known.checkpoint}"
            return _reader(file, known.graph) or _places(known)
        case _:
            return _places(known)


def _reader(file: str, graph: Graph | None) -> str | None:
    return next((step.where for step, _ in _readers(file, graph)), None)


def _readers(file: str, graph: Graph | None) -> Iterator[tuple[Step, object]]:
    """Yields the steps that read a file, each with the description of the files."""
    for step in graph.steps if graph else ():
        read = unwrap_source(step.primitive.source) if isinstance(step.primitive, Read) else None
        sources = [each.rows for each in read.tables] if isinstance(read, QuerySource) else [read]
        for source in sources:
            path = source.file_pattern if isinstance(source, FileSource) else None
            pattern = known_path(source.path if isinstance(source, SparkSource) else path or "")
            if pattern and fnmatch.fnmatch(_path(file), _path(pattern) + "*"):
                yield step, source


def _misfit_line(file: str, graph: Graph | None) -> str | None:
    """The text of an error that names the line of a file; None if the line is not found."""
    for _, source in _readers(file, graph):
        if isinstance(source, SparkSource) and (line := find_misfit_line(_path(file), source)) is not None:
            number, does, why = line.partition(" does not fit the columns")
            # Braces in the name of a file are not fields of the text.
            return f"{number} of {{file}}{does}{why}"
    return None


def _is_within(path: str, folder: str) -> bool:
    longer, shorter = max(path, folder, key=len), min(path, folder, key=len)
    return longer == shorter or longer.startswith(f"{shorter.rstrip('/')}/")


def _path(name: str) -> str:
    """An absolute path without the scheme, decoded."""
    plain = unquote(re.sub(r"^file:/+", "/", name))
    return plain if re.match(r"[\w+.-]+:/", plain) else os.path.abspath(plain)


def _show_path(name: str) -> str:
    path = unquote(re.sub(r"^file:/+", "/", name))
    return path if len(path) <= _FILE_CHARACTERS else f"...{path[-_FILE_CHARACTERS:]}"


def _places(known: ErrorContext) -> str | None:
    return _list_places(known.places) or _list_places(
        tuple(step.where for step in known.graph.steps) if known.graph else ()
    )


def _list_places(places: tuple[str, ...]) -> str | None:
    if not places:
        return None
    if len(places) == 1:
        return places[0]
    shown = ", ".join(place.removeprefix("at step ") for place in places[:_STEPS_SHOWN])
    more = f" and {len(places) - _STEPS_SHOWN} more" if len(places) > _STEPS_SHOWN else ""
    return f"in a job of the steps {shown}{more}"


def _sentence(error: Exception, text: str) -> str:
    """Spark's most specific sentence about the error."""
    own = str(error)
    is_around = "Job aborted" in own or "terminated with exception" in own
    causes = [said or kind for kind, said in _CAUSE.findall(text)]
    if causes and (is_around or not isinstance(error, PySparkException)):
        return _plain(causes[-1])
    return _plain(own)


def _plain(text: str) -> str:
    """Spark's text without the names of Java packages, shortened."""
    text = _CLASS_NAMES.sub(r"\1", _SPARKS_STATE.sub("", text)).strip()
    return text if len(text) <= _SENTENCE_CHARACTERS else f"{text[:_SENTENCE_CHARACTERS]} ..."
