"""The command ``doctor``: says what pipelines need from this machine, what is wrong, and what to do."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, TypeVar

import penstock
from penstock.error import BeamError, split_hint
from penstock.utils import clock
from penstock_conformance.subcommands import Commands

WRONG = 1

ValueT = TypeVar("ValueT")

_NEWEST_PYTHON = (3, 14)
_PACKAGES = ("pyarrow", "pandas", "cloudpickle", "typing-extensions")
_FOR_DEVELOPERS = frozenset(("test", "oracle", "connectors", "benchmarks", "docs"))
_VARIABLES = ("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER", "PYSPARK_PYTHON")
_FREE_BYTES_MIN = 1 << 30


@dataclass(frozen=True)
class Finding:
    """Something that the doctor has found.

    Attributes:
        name: The thing.
        text: What it is like.
        hint: What to do about it; empty if nothing is wrong.
        is_wrong: Whether pipelines do not run because of it.
    """

    name: str
    text: str
    hint: str = ""
    is_wrong: bool = False

    def show(self) -> str:
        r"""Returns a line or two.

        >>> print(Finding("java", "17.0.15").show())
        ok     java      17.0.15
        >>> print(Finding("java", "none found", "install one", is_wrong=True).show())
        wrong  java      none found
                         hint: install one
        """
        mark = "wrong" if self.is_wrong else "note" if self.hint else "ok"
        line = f"{mark:<5}  {self.name:<8}  {self.text}"
        return f"{line}\n{'':<17}hint: {self.hint}" if self.hint else line


def add_command(commands: Commands) -> None:
    """Adds the command to a parser's."""
    doctor = commands.add_parser(
        "doctor",
        help="check this machine, and say what is wrong and what to do",
        description="Checks Python, Spark, Java, packages, extras and folders, and runs a small pipeline.",
        epilog="Example: penstock doctor --master spark://host:7077",
    )
    doctor.set_defaults(run=_doctor)
    doctor.add_argument(
        "--master", metavar="URL", help="the cluster to try; default: what Spark's configuration says"
    )
    doctor.add_argument("--quick", action="store_true", help="start no Spark")


def _doctor(options: argparse.Namespace) -> int:
    is_well = True
    checks = [_python, _packages, _spark, _java, _variables, _folders, _extras]
    for check in checks:
        is_well &= _tell(check)
    if options.quick:
        return 0 if is_well else WRONG
    if not is_well:
        print("no pipeline was run, because of what is wrong")
        return WRONG
    return 0 if _tell(lambda: _pipeline(options.master)) else WRONG


def _tell(check: Callable[[], Iterator[Finding]]) -> bool:
    """Prints what a check finds; returns True if nothing is wrong."""
    found = list(check())
    for each in found:
        print(each.show(), flush=True)
    return not any(each.is_wrong for each in found)


def _python() -> Iterator[Finding]:
    text = f"{platform.python_version()} on {platform.system()} ({sys.executable})"
    if os.name == "nt":
        yield Finding("python", text, "run penstock under WSL: a local Spark does not run on Windows", True)
    elif sys.version_info[:2] > _NEWEST_PYTHON:
        yield Finding("python", text, "use Python 3.11 to 3.14: newer ones are not tested")
    else:
        yield Finding("python", text)


def _packages() -> Iterator[Finding]:
    yield Finding("penstock", penstock.__version__)
    found = {name: _version(name) for name in _PACKAGES}
    missing = [name for name, known in found.items() if known is None]
    text = ", ".join(f"{name} {known}" for name, known in found.items() if known)
    if missing:
        yield Finding(
            "packages", f"{text}; missing: {', '.join(missing)}", f"run pip install {' '.join(missing)}", True
        )
    else:
        yield Finding("packages", text)


def _version(name: str) -> str | None:
    """Returns the version of an installed package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _spark() -> Iterator[Finding]:
    from penstock_spark.session.spark_versions import describe_package

    yield from _attempt("spark", describe_package, str)


def _java() -> Iterator[Finding]:
    from penstock_spark.session.java import find_java
    from penstock_spark.session.spark_versions import is_client_only

    with suppress(ImportError):
        if is_client_only():
            return
    yield from _attempt("java", find_java, lambda java: f"{java.version} ({java.executable})")


def _attempt(name: str, ask: Callable[[], ValueT], show: Callable[[ValueT], str]) -> Iterator[Finding]:
    """Asks something that raises an error in three parts if it is wrong."""
    try:
        yield Finding(name, show(ask()))
    except BeamError as error:
        yield _find_wrong(name, error, "see the text")


def _find_wrong(name: str, error: Exception, otherwise: str) -> Finding:
    """Returns what an error in three parts says; `otherwise` is the hint of one without a hint."""
    said, hint = split_hint(str(error))
    hint, _, more = hint.partition("\n")
    lines = [*said.splitlines(), *more.splitlines()]
    return Finding(name, ", ".join(line.strip() for line in lines), hint or otherwise, True)


def _variables() -> Iterator[Finding]:
    for name in _VARIABLES:
        value = os.environ.get(name)
        if value is None:
            continue
        hint = ""
        if name.endswith(("_HOME", "_DIR")) and not os.path.isdir(value):
            hint = "the folder does not exist: set it to one that does, or unset it"
        elif name == "PYSPARK_PYTHON" and shutil.which(value) is None:
            hint = "there is no such program: set it to the Python that has the packages, or unset it"
        elif name == "SPARK_REMOTE":
            hint = "pipelines run on this Spark Connect server"
        elif name == "SPARK_HOME" and (found := _version_of_home(value)) not in (None, _version("pyspark")):
            hint = f"it has Spark {found}, and pyspark is {_version('pyspark')}: unset it, or install the same version"
        yield Finding("setting", f"{name}={value}", hint, is_wrong=bool(hint) and name != "SPARK_REMOTE")


def _version_of_home(folder: str) -> str | None:
    """Returns the version of the Spark in a folder, by its file RELEASE; None without one."""
    try:
        with open(os.path.join(folder, "RELEASE"), encoding="utf-8") as file:
            found = re.match(r"Spark (\S+)", file.readline())
    except OSError:
        return None
    return found[1] if found else None


def _folders() -> Iterator[Finding]:
    from penstock_spark.process.user_cache import find_kept_folder
    from penstock_spark.session.configuration import read_spark_property

    scratch = (
        read_spark_property("spark.local.dir") or os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    )
    for folder in scratch.split(","):
        yield _folder(folder)
    if find_kept_folder("classes") is None:
        hint = "set PENSTOCK_CACHE to a folder that only you can write: starts are faster then"
        yield Finding("cache", "there is no folder for files that are kept between starts", hint)


def _folder(folder: str) -> Finding:
    """Looks at a folder where Spark shuffles, which needs space."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding(
            "disk", f"{folder}: {error.strerror}", "set spark.local.dir to a folder that exists", True
        )
    text = f"{free / (1 << 30):.1f} GiB free in {folder}"
    if not os.access(folder, os.W_OK):
        return Finding("disk", text, "set spark.local.dir to a folder that you can write", True)
    hint = "" if free >= _FREE_BYTES_MIN else "free some space, or set spark.local.dir to a larger disk"
    return Finding("disk", text, hint)


def _extras() -> Iterator[Finding]:
    """Names the extras that are installed, and those that are not."""
    missing: dict[str, list[str]] = {}
    for text in requires("penstock") or ():
        named = re.fullmatch(r"""([\w.-]+).*extra == ['"]([^'"]+)['"].*""", text)
        if named is None or named[2] in _FOR_DEVELOPERS or named[1] == "penstock":
            continue
        absent = missing.setdefault(named[2], [])
        if _version(named[1]) is None:
            absent.append(named[1])
    there = [name for name, absent in missing.items() if not absent]
    gone = [name for name, absent in missing.items() if absent]
    yield Finding("extras", ", ".join(there) or "none")
    if gone:
        yield Finding("absent", f"{', '.join(gone)} (pip install 'penstock[{gone[0]}]' adds one)")


def _pipeline(master: str | None) -> Iterator[Finding]:
    """Runs a pipeline with a shuffle; its workers say which Python they run."""
    import penstock as beam

    def python_of_worker(_: str, counts: Iterable[int]) -> str:
        return f"{platform.python_version()} on {platform.node()}" if sum(counts) == 2 else "a wrong sum"

    began = clock.monotonic_seconds()
    try:
        arguments: dict[str, Any] = {} if master is None else {"master": master}
        pipeline = beam.Pipeline(mode="batch", progress="off", **arguments)
        words = pipeline | beam.Create(["a", "b", "a", "b"]) | beam.Map(lambda word: (word, 1))
        found = sorted(set((words | beam.GroupByKey() | beam.MapTuple(python_of_worker)).collect()))
    except Exception as error:
        yield _find_wrong("pipeline", error, "look at Spark's log")
        return
    seconds = clock.monotonic_seconds() - began
    yield Finding("pipeline", f"ran in {seconds:.1f} s, with Python {', '.join(found)} in the workers")
