"""The commands that show: ``graph`` a pipeline, ``live`` a run, and ``state`` a checkpoint."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from penstock.base.engine import make_spark_runner
from penstock.diagrams.graphs import mermaid_of, svg_of
from penstock.diagrams.steps import fold_composite, steps_of
from penstock.error import refusal
from penstock.graph import show
from penstock.options.table import TOKEN_MIN
from penstock_conformance.program_graphs import pipeline_of_program
from penstock_conformance.subcommands import Commands
from penstock_spark.checkpoints.custody.requests import Request, describe_sender
from penstock_spark.checkpoints.custody.status import command_run
from penstock_spark.files.disk_place import open_place
from penstock_spark.live.server import LOOPBACK, LiveServer, SendCommand
from penstock_spark.live.snapshot_files import FollowedRun
from penstock_spark.live.views import TOKEN_VARIABLE

FORMS = ("text", "svg", "mermaid")
TABLES = ("table", "csv", "json")
_ROWS = 100
_ANSWER_SECONDS = 30.0
_CELL_MAX = 40


def add_commands(commands: Commands) -> None:
    """Adds the commands to a parser's."""
    graph = commands.add_parser(
        "graph",
        help="draw the pipeline of a program, without starting anything",
        description="Draws the first pipeline that a program runs. The program continues until it runs the pipeline, "
        "which does not start: neither does Spark.",
        epilog="Example: penstock graph my_pipeline.py --to svg > my_pipeline.svg",
    )
    graph.set_defaults(run=_graph)
    graph.add_argument("program", type=Path, help="the file of the program")
    graph.add_argument("--to", choices=FORMS, default="text", help="how to draw it; default: %(default)s")
    graph.add_argument("--folded", action="store_true", help="draw each composite at the top as one step")
    graph.add_argument(
        "--arguments",
        nargs=argparse.REMAINDER,
        default=[],
        help="the program's own arguments: all that comes after this",
    )
    live = commands.add_parser(
        "live",
        help="show a stream that runs elsewhere, or that is over",
        description="Shows the page of a run whose snapshot lies beside its checkpoint. A stream writes it there if "
        "it runs with --live or --live_port, and with a --checkpoint_location.",
        epilog="Example: penstock live --from /checkpoints/scores --port 4041",
    )
    live.set_defaults(run=_live)
    live.add_argument(
        "--from",
        dest="place",
        required=True,
        metavar="CHECKPOINT",
        help="the checkpoint, or a copy of live.json",
    )
    live.add_argument("--port", type=int, default=0, help="the port of the page; default: any that is free")
    live.add_argument("--host", default=LOOPBACK, help="the address of the page; default: only this machine")
    live.add_argument(
        "--token",
        help="let who has this token drain or cancel the run from the page; at least 16 characters",
    )
    live.add_argument("--json", action="store_true", help="print the snapshot as JSON, and serve no page")
    state = commands.add_parser(
        "state",
        help="print the state in a checkpoint as a table",
        description="Prints what each grouping of a stream holds for each key and window, after the last finished "
        "micro-batch. It starts Spark, and shows keys and values.",
        epilog="Example: penstock state /checkpoints/scores --grouping Sum --limit 20",
    )
    state.set_defaults(run=_state)
    state.add_argument("checkpoint", help="the folder of the checkpoint")
    state.add_argument("--grouping", metavar="LABEL", help="only this grouping")
    state.add_argument("--limit", type=int, default=_ROWS, help="how many rows; default: %(default)s")
    state.add_argument("--to", choices=TABLES, default="table", help="the form; default: %(default)s")


def _graph(options: argparse.Namespace) -> int:
    pipeline = pipeline_of_program(options.program, options.arguments)
    graph = pipeline.to_graph()
    steps = fold_composite(steps_of(graph)) if options.folded else steps_of(graph)
    match options.to:
        case "svg":
            print(svg_of(steps, options.program.stem, pipeline.facts()))
        case "mermaid":
            print(mermaid_of(steps))
        case _ if options.folded:
            what = "a graph as text cannot be folded"
            raise refusal(ValueError, what, where="--folded", hint="add --to svg or --to mermaid")
        case _:
            print(show(graph))
    return 0


def _live(options: argparse.Namespace) -> int:
    followed = FollowedRun(options.place)
    if options.json:
        print(followed.look().to_json())
        return 0
    token = options.token or os.environ.get(TOKEN_VARIABLE) or None
    if token is not None and len(token) < TOKEN_MIN:
        what = f"the token has {len(token)} characters, and {TOKEN_MIN} are the least"
        hint = 'use the output of: python -c "import secrets; print(secrets.token_urlsafe())"'
        raise refusal(ValueError, what, where="", hint=hint)
    server = LiveServer(followed.look, options.port, options.host, token, _sender(options.place))
    print(f"the live view is at {server.url}; press Ctrl-C to end it", file=sys.stderr, flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
    return 0


def _sender(place: str) -> SendCommand | None:
    """Returns what sends the run of a checkpoint a command; None for a copy of its snapshot."""
    if Path(place).is_file():
        return None
    sender = f"the live page of {describe_sender()}"
    return lambda name: command_run(open_place(place), Request(name, sender=sender), _ANSWER_SECONDS)


def _state(options: argparse.Namespace) -> int:
    if options.limit < 1:
        what = f"--limit is {options.limit}"
        raise refusal(ValueError, what, hint="use a whole number above 0")
    frame = make_spark_runner().state_of(options.checkpoint)
    if options.grouping is not None:
        frame = frame.where(frame["grouping"] == options.grouping)
    found = [row.asDict() for row in frame.limit(options.limit + 1).collect()]
    rows = found[: options.limit]
    match options.to:
        case "json":
            for row in rows:
                print(json.dumps(row, default=str))
        case "csv":
            writer = csv.DictWriter(sys.stdout, frame.columns)
            writer.writeheader()
            writer.writerows(rows)
        case _:
            print("\n".join(_table(frame.columns, rows)))
    if len(found) > len(rows):
        print(f"there are more rows than {options.limit}; --limit shows more", file=sys.stderr)
    return 0


def _table(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Rows as text in columns.

    >>> list(_table(["key", "panes"], [{"key": "'a'", "panes": 2}]))
    ['key  panes', "'a'  2"]
    """
    names = list(columns)
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(names))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    printable = "".join(each if each.isprintable() else "·" for each in islice(text, _CELL_MAX + 1))
    return printable if len(printable) <= _CELL_MAX else f"{printable[: _CELL_MAX - 1]}…"
