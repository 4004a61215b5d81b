"""Runs a job: the statements of a text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from penstock.construction.pipeline import Pipeline
from penstock.error import refusal
from penstock.io.each_batch import ForEachBatch, WriteToMemory
from penstock.relations.changelog import Changelog
from penstock.runners.runner import PipelineResult
from penstock.sql.console import TableOnScreen, format_change, format_header, format_table
from penstock.sql.jobs.binding import JobBinder
from penstock.sql.jobs.bound import (
    Action,
    BoundInsert,
    BoundQuery,
    ExplainQuery,
    PrintLines,
    PrintQuery,
    RunInserts,
)
from penstock.sql.jobs.building import JobPipeline
from penstock.sql.jobs.options import read_flags
from penstock.sql.statements.words import UNNAMED, Script, without_rendering
from penstock.sql.tables.table import Table
from penstock.tracebacks import shortens_tracebacks


class Job:
    """The statements of a text, which are all bound before any of them runs (penstock's own).

    Statements that insert are one pipeline, with one checkpoint. Queries run one after another, and are printed.

    Args:
        text: The statements.
        name: The name of the text in errors, such as the name of its file.
        show: Prints a line.
        screen: The terminal on which a table over a stream stays in place; None prints lines.
        folder: The folder in which modules of functions are looked for first.
        tells_end: Whether a line on standard error says how many rows each table got, also after a quick batch.
        options: Options of the pipelines, which override SET.

    Raises:
        SqlError: A statement is wrong; nothing has run.

    Example: ``Job(Path("job.sql").read_text(), "job.sql").run()``.

    >>> lines = []
    >>> Job("CREATE VIEW one AS SELECT 1 AS n; DESCRIBE one;", show=lines.append).run()
    >>> lines
    ['column | type         | note', '-------+--------------+-----', 'n      | INT NOT NULL |']
    """

    def __init__(
        self,
        text: str,
        name: str = UNNAMED,
        show: Callable[[str], object] = print,
        screen: TextIO | None = None,
        folder: Path | None = None,
        tells_end: bool = False,
        **options: Any,
    ) -> None:
        self._show = show
        self._defaults = {"progress": "always"} if tells_end else {}
        self._screen = screen
        binder = JobBinder(Script(text, name, folder), options)
        self._actions: list[Action] = binder.bind()
        self._check_files = binder.check_files
        self._tables: Mapping[str, Table] = binder.tables
        # All that inserts is built before anything runs.
        self._built = {
            id(action): self._build(action.inserts, {**self._defaults, **action.options})
            for action in self._actions
            if isinstance(action, RunInserts)
        }

    @shortens_tracebacks
    def run(self) -> None:
        """Runs the statements, and returns when all queries have ended.

        Raises:
            SqlError: The files of a table are not there; nothing has run.
        """
        self._check_files()
        for action in self._actions:
            match action:
                case PrintLines(lines):
                    for line in lines:
                        self._show(line)
                case PrintQuery(query, options):
                    self._print(query, options)
                case ExplainQuery(what, options):
                    self._show(self._explain(what, options))
                case RunInserts():
                    self._built[id(action)].pipeline.run().wait_until_finish()

    def start(self) -> PipelineResult | None:
        """Starts the pipeline of the statements that insert, and returns its result; None if there is none.

        Queries are not run. It raises the errors of `run`.
        """
        self._check_files()
        if self.pipeline is None:
            return None
        result: PipelineResult = self.pipeline.run()
        return result

    @property
    def pipeline(self) -> Pipeline | None:
        """The pipeline of the statements that insert; None if there is none."""
        return next((built.pipeline for built in self._built.values()), None)

    def _build(self, inserts: tuple[BoundInsert, ...], options: Mapping[str, Any]) -> JobPipeline:
        built = self._pipeline(tuple(each.query for each in inserts), options)
        for insert in inserts:
            built.insert(insert)
        return built

    def _pipeline(self, queries: tuple[BoundQuery, ...], options: Mapping[str, Any]) -> JobPipeline:
        read = [table for query in queries for table in query.tables.values()]
        finds = any(table.connector.finds_in_engine and not table.types for table in read)
        streams = any(query.streams(options) for query in queries)
        return JobPipeline(options, streams, finds, self._tables)

    def _explain(self, what: BoundQuery | BoundInsert, options: Mapping[str, Any]) -> str:
        if isinstance(what, BoundInsert):
            return self._build((what,), options).pipeline.explain()
        built = self._pipeline((what,), options)
        result, _ = built.query(what, "Query")
        _ = result | "Keep" >> WriteToMemory([])
        return built.pipeline.explain()

    def _print(self, query: BoundQuery, options: Mapping[str, Any]) -> None:
        with query.script.steps_of(query.at):
            self._print_here(query, options)

    def _print_here(self, query: BoundQuery, options: Mapping[str, Any]) -> None:
        streams = query.streams(options)
        built = self._pipeline((query,), options)
        names = [each.name for each in query.columns if each.name.lower() != "undo"]
        if not streams or (query.rendering == "TABLE" and self._screen is None):
            result, transform = built.query(query, "Query")
            rows: list[Any] = []
            _ = result | "Keep" >> WriteToMemory(rows)
            built.pipeline.run().wait_until_finish()
            for line in format_table(rows, transform.order or ()):
                self._show(line)
        elif query.rendering == "TABLE":
            assert self._screen is not None
            result, transform = built.query(query, "Query", without_rendering(query.text))
            screen = TableOnScreen(self._screen, transform.order or ())
            _ = result | "Changes" >> Changelog() | "Show" >> ForEachBatch(screen.show)
            built.pipeline.run().wait_until_finish()
        else:
            result, _ = built.query(query, "Query")
            if query.rendering is None:
                result |= Changelog()
            shown = _ChangesAsLines(self._show, names)
            _ = result | "Show" >> ForEachBatch(shown.show)
            built.pipeline.run().wait_until_finish()


class _ChangesAsLines:
    """Prints the names of columns, and then each change when it comes."""

    def __init__(self, show: Callable[[str], object], names: list[str]) -> None:
        self._show = show
        self._show(format_header(names))

    def show(self, changes: list[Any], number: int) -> None:
        for change in changes:
            self._show(format_change(change))
        sys.stdout.flush()


def run_command(statements: str | None, flags: Sequence[str]) -> None:
    """Runs the statements that the command ``penstock sql`` is given, as `make_job` takes them."""
    make_job(statements, flags).run()


def make_job(statements: str | None, flags: Sequence[str]) -> Job:
    """Returns the job that the command ``penstock sql`` is given.

    Args:
        statements: The path of a file of SQL, or statements; None reads them from the standard input.
        flags: Options of pipelines.

    Raises:
        ValueError: A statement or an option is wrong, or there is no such file.
    """
    options: dict[str, Any] = read_flags(flags)
    path = Path(statements) if statements is not None and statements.endswith(".sql") else None
    if path is None:
        text, name = (sys.stdin.read(), "the standard input") if statements is None else (statements, UNNAMED)
    else:
        name = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            what = f"the job {str(path)!r} cannot be read: {why}"
            raise refusal(ValueError, what, where="", hint="pass the path of a file of SQL") from None
    folder = Path.cwd() if path is None else path.resolve().parent
    screen = sys.stdout if sys.stdout.isatty() else None
    return Job(text, name, screen=screen, folder=folder, tells_end=True, **options)
