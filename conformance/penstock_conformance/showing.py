"""The commands that show: ``graph`` a pipeline, and ``live`` a run."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.construction.pipeline import Pipeline
from penstock.diagrams.colours import Scheme
from penstock.diagrams.graphs import svg_of
from penstock.diagrams.languages import dot_of, json_of, mermaid_of
from penstock.diagrams.notes import notes_of
from penstock.diagrams.steps import StepView, fold_composites, steps_of
from penstock.diagrams.text import READABLE, measure_width, text_of
from penstock.error import refusal
from penstock.graph import Graph, show
from penstock.options.table import TOKEN_MIN
from penstock_conformance.program_graphs import pipeline_of_program
from penstock_conformance.subcommands import Commands
from penstock_spark.checkpoints.custody.requests import Request, describe_sender
from penstock_spark.checkpoints.custody.status import command_run
from penstock_spark.files.disk_place import open_place
from penstock_spark.live.server import LOOPBACK, LiveServer, SendCommand
from penstock_spark.live.snapshot_files import FollowedRun
from penstock_spark.live.views import TOKEN_VARIABLE

FORMS = ("text", "svg", "dot", "mermaid", "ir", "json")
_DRAWINGS = ("text", "svg", "dot", "mermaid")
_LOOKS = {
    "dark": ("svg", "dot", "mermaid"),
    "horizontal": _DRAWINGS,
    "folded": _DRAWINGS,
    "steps": _DRAWINGS,
}
"""The flags that say how a drawing looks, and the forms in which they mean something."""

_ANSWER_SECONDS = 30.0


def add_commands(commands: Commands) -> None:
    """Adds the commands to a parser's."""
    graph = commands.add_parser(
        "graph",
        help="draw the pipeline of a program, without starting anything",
        description="Draws the first pipeline that a program runs. The program continues until it runs the pipeline, "
        "which does not start: neither does Spark. Each transform of penstock is a box, and each composite of your own "
        "a frame; lines to side inputs are dashed.",
        epilog="Example: penstock graph my_pipeline.py --to svg --dark > my_pipeline.svg",
    )
    graph.set_defaults(run=_graph)
    graph.add_argument("program", type=Path, help="the file of the program")
    graph.add_argument(
        "--to",
        choices=FORMS,
        default="text",
        help="text (the default) draws in the terminal; svg, dot and mermaid for other programs; ir and json list the "
        "steps that the compiler sees",
    )
    graph.add_argument("--horizontal", action="store_true", help="draw from left to right")
    graph.add_argument(
        "--columns",
        type=int,
        metavar="N",
        help="the width of a drawing as text; default: the width of the terminal",
    )
    graph.add_argument("--dark", action="store_true", help="use dark colours, in svg, dot and mermaid")
    detail = graph.add_mutually_exclusive_group()
    detail.add_argument("--folded", action="store_true", help="draw each composite at the top as one box")
    detail.add_argument("--steps", action="store_true", help="draw all steps inside of transforms as well")
    graph.add_argument(
        "--arguments",
        nargs=argparse.REMAINDER,
        default=[],
        help="the program's own arguments: all that comes after this",
    )
    live = commands.add_parser(
        "live",
        help="show a stream that runs elsewhere or has ended",
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
        help="let a user with this token drain or cancel the run from the page; at least 16 characters",
    )
    live.add_argument("--json", action="store_true", help="print the snapshot as JSON, and serve no page")


def _graph(options: argparse.Namespace) -> int:
    form: str = options.to
    fitting = {name for name, forms in _LOOKS.items() if form in forms}
    for name in _LOOKS:
        if getattr(options, name) and name not in fitting:
            forms = " or ".join(f"--to {each}" for each in _LOOKS[name] if each != "text")
            what = f"--{name} means nothing with --to {form}"
            raise refusal(ValueError, what, where="", hint=f"leave it out, or add {forms}")
    pipeline = pipeline_of_program(options.program, options.arguments)
    print(_drawn(pipeline, options))
    return 0


def _drawn(pipeline: Pipeline, options: argparse.Namespace) -> str:
    graph = pipeline.to_graph()
    if options.to == "ir":
        return show(graph)
    if options.to == "json":
        return json_of(graph)
    detail = "steps" if options.steps else "folded" if options.folded else "own"
    steps, notes = _steps_and_notes(pipeline, graph, detail)
    is_horizontal: bool = options.horizontal
    match options.to:
        case "svg":
            scheme: Scheme = "dark" if options.dark else "both"
            name, facts = options.program.stem, pipeline.facts()
            return svg_of(steps, name, facts, notes, scheme=scheme, is_horizontal=is_horizontal)
        case "mermaid":
            return mermaid_of(steps, notes, is_dark=options.dark, is_horizontal=is_horizontal)
        case "dot":
            return dot_of(steps, notes, is_dark=options.dark, is_horizontal=is_horizontal)
    columns = options.columns or shutil.get_terminal_size().columns
    drawn = text_of(steps, notes, columns=columns, narrowest=READABLE, is_horizontal=is_horizontal)
    if measure_width(drawn) > columns and not is_horizontal:
        if detail == "own":
            steps, notes = _steps_and_notes(pipeline, graph, "folded")
            wide = measure_width(drawn)
            said = f"composites are folded, to fit {columns} columns; --columns {wide} shows what is in them"
            print(said, file=sys.stderr)
        drawn = text_of(steps, notes, columns=columns)
    if _can_print(drawn):
        return drawn
    return text_of(steps, notes, columns=columns, is_horizontal=is_horizontal, is_ascii=True)


def _steps_and_notes(
    pipeline: Pipeline, graph: Graph, detail: str
) -> tuple[Sequence[StepView], Mapping[str, Sequence[str]]]:
    """The steps that a drawing shows: all ``steps``, composites of the user's ``own``, or everything ``folded``."""
    folds: Mapping[str, str] = {} if detail == "steps" else pipeline.ready_made()
    if detail == "folded":
        tops = {label: name for label, name in folds.items() if "/" not in label}
        folds = {step.label.partition("/")[0]: "" for step in graph.steps} | tops
    steps = fold_composites(steps_of(graph), folds)
    return steps, notes_of(graph, steps, folds)


def _can_print(text: str) -> bool:
    """True if the standard output has all characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _live(options: argparse.Namespace) -> int:
    followed = FollowedRun(options.place)
    if options.json:
        print(followed.look().to_json())
        return 0
    token = options.token or os.environ.get(TOKEN_VARIABLE) or None
    if token is not None and len(token) < TOKEN_MIN:
        what = f"the token has {len(token)} characters, and needs at least {TOKEN_MIN}"
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
