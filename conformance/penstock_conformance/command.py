"""The command ``penstock``: shows pipelines, runs and state, runs queries, and plays the conformance suite."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import penstock
from penstock.error import RunnerError, refusal, split_hint
from penstock.options.base import render_help
from penstock.options.optimisations import OPTIMISATIONS
from penstock.tracebacks import FLAG, is_fault, print_failure, show_all_lines
from penstock_conformance import (
    controlling,
    doctor,
    new_projects,
    report,
    showing,
    stored_state,
    summary,
    table,
)
from penstock_conformance.capabilities import read_chapters
from penstock_conformance.choosing import choose_modes, choose_scenarios, list_scenarios
from penstock_conformance.connect_server import server_at
from penstock_conformance.outcomes import Outcome, Status
from penstock_conformance.parsing import load
from penstock_conformance.playing import ENGINES, outcomes_of
from penstock_conformance.subcommands import BAD_INPUT, Commands, Parser

FAILED = 1
INTERRUPTED = 130
"""The exit status of a program that Ctrl-C has ended, as in a shell."""

_GROUPS = {
    "begin": ("new", "graph", "sql"),
    "look at streams": ("status", "live", "state"),
    "control streams": ("drain", "cancel", "signal", "update"),
    "help": ("doctor", "options", "conformance"),
}
"""The commands as ``--help`` shows them."""

_EXAMPLES = """\
examples:
  penstock new batch sales        write a first project
  penstock graph pipeline.py      draw a pipeline, and start nothing
  penstock COMMAND --help         explain a command"""

RECORDED_EVENTS = 1_000
"""Scenarios have far fewer events than this."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command, and returns the exit status: 0 for success, 1 if a scenario failed, 2 for a wrong command.

    >>> main(["conformance", "--engine", "bare", "--mode", "batch", "--figure", "figure 10"])
                                 batch
    figure 10                    passed
    1 passed, 0 failed
    0
    """
    parser = _parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--arguments") if "--arguments" in given else len(given)
    own = [each for each in given[:end] if each != FLAG]
    if len(own) < end:
        # Every command takes it, wherever it stands.
        show_all_lines()
    options, flags = parser.parse_known_args([*own, *given[end:]])
    if flags and not hasattr(options, "flags"):
        parser.error(f"unrecognized arguments: {' '.join(flags)}")
    options.flags = flags
    try:
        return int(options.run(options))
    except Exception as error:
        print_failure(error)
        is_named = isinstance(error, ValueError | RunnerError) or split_hint(str(error))[1] != ""
        return BAD_INPUT if is_named and not is_fault(error) else FAILED


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="penstock",
        usage="penstock COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        FLAG, action="store_true", help="show all lines of a traceback, also those of penstock and Spark"
    )
    parser.add_argument("--version", action="version", version=f"penstock {penstock.__version__}")
    commands = Commands(parser, _GROUPS)
    options = commands.add_parser(
        "options",
        help="print the options of pipelines, and what they mean",
        epilog="Example: penstock options",
    )
    options.set_defaults(run=_options)
    showing.add_commands(commands)
    controlling.add_commands(commands)
    doctor.add_command(commands)
    new_projects.add_command(commands)
    stored_state.add_command(commands)
    sql = commands.add_parser(
        "sql",
        help="run a job in SQL, or queries",
        description="Runs the statements of a file, of an argument or of the standard input: tables of all connectors, "
        "views, queries, and INSERT INTO, which all together are one pipeline with one checkpoint.",
        epilog="All options of pipelines are taken, such as --checkpoint=DIR, --mode=batch and --drain_on_signal: "
        "`penstock options` shows them. They override SET. Example: penstock sql job.sql --checkpoint=/checkpoints/job",
    )
    sql.set_defaults(run=_sql, flags=[])
    sql.add_argument("statements", nargs="?", help="a file that ends with .sql, or statements")
    conformance = commands.add_parser(
        "conformance",
        help="play the figures of the literature, and compare the outputs",
        description="Plays the figures and rules of the literature, and compares the outputs.",
        epilog="Example: penstock conformance --figure 7 --mode batch",
    )
    conformance.set_defaults(run=_conformance)
    add = conformance.add_argument
    add("--mode", nargs="+", action="extend", default=[], help="streaming, micro_batch, batch; default: all")
    add(
        "--figure",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="only figures and rules of these names: 7, 2-11, S-3, C2-13, or a part of a title or file",
    )
    add("--engine", choices=ENGINES, default="spark", help="default: %(default)s; bare starts no engine")
    add("--master", metavar="URL", help="Spark's master; default: what Spark's configuration says, or local")
    add("--remote", metavar="URL", help="a server of Spark Connect, as in sc://host:15002; local starts one")
    add("--checkpoint", metavar="DIR", help="for a cluster: a folder that all of its machines reach")
    add(
        "--without",
        action="append",
        choices=("all", *OPTIMISATIONS),
        metavar="NAME",
        help="an optimisation to switch off: all, or one of " + ", ".join(OPTIMISATIONS),
    )
    add("--report", type=Path, metavar="DIR", help="write junit.xml and index.html there")
    add(
        "--table", action="store_true", help="play all, and write the table of a clone, conformance/README.md"
    )
    add("--list", action="store_true", help="list everything, and play nothing")
    parser.description = f"The Dataflow Model for PySpark.\n\n{commands.render_groups()}"
    return parser


def _options(_: argparse.Namespace) -> int:
    """Prints the same text as a program with ``--help``."""
    print(render_help())
    return 0


def _sql(options: argparse.Namespace) -> int:
    """Runs the statements; see `penstock.sql.jobs.running`."""
    from penstock.sql.jobs.running import run_command

    try:
        run_command(options.statements, options.flags)
    except KeyboardInterrupt:
        # The run has said what became of it; a traceback would look like a fault.
        return INTERRUPTED
    return 0


def _conformance(options: argparse.Namespace) -> int:
    """Plays the selected scenarios, perhaps on a server of Spark Connect; see `main`."""
    if options.remote is None:
        return _played(options)
    other = "--engine bare" if options.engine != "spark" else "--master" if options.master else None
    if other is not None:
        what = f"--remote names the Spark to play on, and {other} another engine or Spark"
        raise refusal(ValueError, what, where="", hint="pass one of them")
    with server_at(options.remote) as options.master:
        return _played(options)


def _played(options: argparse.Namespace) -> int:
    if options.table and (options.mode or options.figure):
        raise refusal(
            ValueError,
            "the table needs all scenarios",
            where="",
            hint="leave out --mode and --figure, or --table",
        )
    sources = read_chapters() if options.table else ()
    modes = choose_modes(options.mode)
    scenarios = choose_scenarios(load(), options.figure)
    if options.list:
        print("\n".join(list_scenarios(scenarios)))
        return 0
    if not any(mode in scenario.modes for scenario in scenarios for mode in modes):
        what = f"no selected scenario is written for the mode {' or '.join(modes)}"
        raise refusal(ValueError, what, where="", hint="leave out --mode, or select more figures")
    if options.report:
        report.prepare(options.report)
    given = {"master": options.master, "checkpoint_location": options.checkpoint, "without": options.without}
    arguments: dict[str, Any] = {name: value for name, value in given.items() if value}
    if options.report:
        arguments["record_events"] = RECORDED_EVENTS
    outcomes = list(
        summary.print_totals(
            outcomes_of(scenarios, modes, options.engine, _tell, **arguments), progress=sys.stderr
        )
    )
    if all(outcome.status is Status.NOT_PLAYED for outcome in outcomes):
        reasons = "; ".join(dict.fromkeys(outcome.text for outcome in outcomes))
        raise refusal(ValueError, f"nothing was played: {reasons}", where="", hint="add --engine bare")
    if options.report:
        report.write(options.report, outcomes)
    if options.table:
        table.write(outcomes, sources)
    return _said(outcomes, modes)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _said(outcomes: Sequence[Outcome], modes: Sequence[str]) -> int:
    """Prints failures and totals, and returns the exit status."""
    failed = [outcome for outcome in outcomes if outcome.status is Status.FAILED]
    for outcome in failed:
        print(outcome.text)
    for line in summary.table(outcomes, modes):
        print(line)
    print(summary.format_total(outcomes))
    return FAILED if failed else 0
