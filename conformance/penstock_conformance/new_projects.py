"""The command ``new``: writes a small project that runs, with data and a test, into a new folder."""

from __future__ import annotations

import argparse
import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from penstock.error import refusal
from penstock_conformance.subcommands import Commands

KINDS = {
    "batch": "a program over a file: parse, set aside what is wrong, add up",
    "stream": "a program over a folder that grows: windows of event time, stop and continue",
    "sql": "a job in SQL: tables, a view, a query that writes and one that prints",
}
RUN = {
    "batch": "python pipeline.py",
    "stream": "python pipeline.py --available_now",
    "sql": "penstock sql job.sql",
}
_PROGRAMS = "first_programs"
_NAME = "first-program"
_ALLOWED = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_OWN = frozenset(("penstock", "pyspark", "pytest"))
_NOT_COPIED = ("__pycache__", ".")


def add_command(commands: Commands) -> None:
    """Adds the command to a parser's."""
    new = commands.add_parser(
        "new",
        help="write a small project that runs, with data and a test",
        description="Writes a small project into a new folder: a program, data, a test, and a README that says how to "
        "run both.",
        epilog="Example: penstock new stream temperatures",
    )
    new.set_defaults(run=_new)
    new.add_argument(
        "kind",
        choices=KINDS,
        metavar="KIND",
        help=_describe_kinds(),
    )
    new.add_argument(
        "folder", type=Path, metavar="NAME", help="the folder, whose last part names the project"
    )


def _describe_kinds() -> str:
    return "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())


def _new(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    written = write_project(options.kind, folder)
    print(f"wrote {', '.join(written)} in {folder}\n")
    steps = [f"cd {folder}", RUN[options.kind], "python -m pytest"]
    print("\n".join(f"  {step}" for step in steps if step != "cd ."))
    return 0


def write_project(kind: str, folder: Path) -> list[str]:
    """Writes the project of a kind into a folder that is new or empty, and returns the names of its files.

    Args:
        kind: One of `KINDS`.
        folder: The folder; the project has the name of its last part.

    Raises:
        ValueError: The name is not one that a Python project can have, or the folder has files.
    """
    name = folder.resolve().name
    _check_name(name)
    _check_folder(folder)
    try:
        return _copy(kind, folder, name)
    except OSError as error:
        what = f"{folder} cannot be written: {error.strerror}"
        raise refusal(ValueError, what, where="", hint="name a folder that you can write") from None


def _copy(kind: str, folder: Path, name: str) -> list[str]:
    written = []
    for path, source in _files_of(resources.files(__package__).joinpath(_PROGRAMS, kind)):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text(encoding="utf-8").replace(_NAME, name), encoding="utf-8")
        written.append(path)
    return written


def _files_of(folder: Traversable, above: str = "") -> list[tuple[str, Traversable]]:
    """The files in a folder of this package and below it, by their paths."""
    found = []
    for each in sorted(folder.iterdir(), key=lambda one: one.name):
        if each.name.startswith(_NOT_COPIED):
            continue
        path = above + each.name
        found += _files_of(each, f"{path}/") if each.is_dir() else [(path, each)]
    return found


def _check_name(name: str) -> None:
    """Refuses a name that is not one of a Python project, or one that hides a package that the project imports."""
    if _ALLOWED.fullmatch(name) is None:
        what = f"{name!r} cannot be the name of a project: it has letters, digits, '.', '-' and '_' only"
        mended = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-")
        raise refusal(ValueError, what, where="", hint=f"use a name such as {mended or 'my-project'}")
    if re.sub("[._-]+", "-", name).lower() in _OWN:
        what = f"a project named {name!r} would be taken for the package of that name"
        raise refusal(ValueError, what, where="", hint=f"use a name such as my-{name}")


def _check_folder(folder: Path) -> None:
    """Refuses a folder with files, and a file."""
    hint = "name a new folder, or an empty one"
    if folder.exists() and not folder.is_dir():
        raise refusal(ValueError, f"{folder} is a file", where="", hint=hint)
    names = (each.name for each in folder.iterdir()) if folder.exists() else ()
    # A name that begins with a dot is not in the way: git makes such a folder.
    found = sorted(name for name in names if not name.startswith("."))
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        what = f"the folder {folder} is not empty: it has {', '.join(found[:3])}{more}"
        raise refusal(ValueError, what, where="", hint=hint)
