"""The commands, examples and pages that users run, each as a process without a session that is there already."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_COMMAND = re.compile(r"^(?:    )?(penstock [a-z].*?)$|`(penstock [a-z][^`]*)`", re.MULTILINE)
_SESSION = re.compile(r"^ *```pycon spark$", re.MULTILINE)


def documented_commands() -> list[str]:
    """Every command line of ``penstock`` in the pages, as its reader would type it."""
    found = {
        (line or inline).strip()
        for page in PAGES
        for line, inline in _COMMAND.findall(page.read_text(encoding="utf-8"))
    }
    return sorted(found)


def documented_sessions() -> list[Path]:
    """The pages whose lines after ``>>>`` start Spark."""
    return [page for page in PAGES if _SESSION.search(page.read_text(encoding="utf-8"))]


def example_programs() -> list[Path]:
    return sorted(
        path
        for folder in (ROOT / "examples", ROOT / "examples" / "cookbook")
        for path in folder.glob("*.py")
        if not path.name.startswith("_")
    )


@dataclass(frozen=True)
class ColdStart:
    """How to run a documented command.

    Attributes:
        prints: A line that the process prints.
        prepare: Writes what the command reads into its working folder.
        replaced: A name that the page has made up, and what stands for it; empty if there is none.
        typed: What its user types afterwards.
    """

    prints: str
    prepare: Callable[[Path], object] = lambda _: None
    replaced: tuple[str, str] = ("", "")
    typed: str = ""

    def arguments(self, command: str) -> list[str]:
        """The words after ``penstock``."""
        return shlex.split(command.replace(*self.replaced) if self.replaced[0] else command)[1:]


def write_table(folder: Path) -> None:
    """Writes three rows of Parquet into the folder ``t``."""
    (folder / "t").mkdir()
    pq.write_table(pa.table({"team": ["red", "blue", "red"]}), folder / "t" / "scores.parquet")


def write_queries(folder: Path) -> None:
    write_table(folder)
    (folder / "queries.sql").write_text(QUERIES, encoding="utf-8")


def write_job(folder: Path) -> None:
    write_table(folder)
    target = "CREATE TABLE totals (team STRING, n BIGINT) WITH (format = 'json', path = 'totals');"
    rows = "INSERT INTO totals SELECT team, COUNT(*) FROM t GROUP BY team"
    (folder / "job.sql").write_text(f"{QUERIES.partition('SELECT')[0]}{target}{rows}", encoding="utf-8")


def write_program(folder: Path) -> None:
    program = """
        import penstock as beam

        with beam.Pipeline() as pipeline:
            pipeline | "Scores" >> beam.Create([1]) | beam.Map(print)
        """
    (folder / "program.py").write_text(inspect.cleandoc(program), encoding="utf-8")


QUERIES = """
    CREATE TABLE t WITH (format = 'parquet', path = 't');
    SELECT team, COUNT(*) AS n FROM t GROUP BY team ORDER BY n
    """

COMMANDS = {
    "penstock graph program.py": ColdStart("│ Scores", write_program),
    "penstock graph job.sql": ColdStart("totals", write_job),
    "penstock new batch sales": ColdStart("wrote README.md"),
    "penstock new stream temperatures": ColdStart("wrote README.md"),
    "penstock new sql revenue": ColdStart("wrote README.md"),
    "penstock doctor": ColdStart("ran in "),
    "penstock options": ColdStart("--checkpoint_location"),
    "penstock sql": ColdStart("red", write_table, typed=QUERIES),
    "penstock sql job.sql": ColdStart("red", write_queries, ("job.sql", "queries.sql")),
    "penstock sql queries.sql": ColdStart("red", write_queries),
    "penstock sql \"CREATE TABLE t WITH (format = 'parquet', path = '/data/t'); SELECT COUNT(*) AS n FROM t\"": (
        ColdStart("3", write_table, ("/data/t", "t"))
    ),
}
"""The documented commands that need no run before them."""

OF_A_CHECKPOINT = {
    "penstock live --from /checkpoints/scores": ColdStart(
        "live view", replaced=("/checkpoints/scores", "kept")
    ),
    "penstock state CHECKPOINT": ColdStart("state", replaced=("CHECKPOINT", "kept")),
    "penstock status CHECKPOINT": ColdStart("ended: DONE", replaced=("CHECKPOINT", "kept")),
    "penstock status /checkpoints/scores": ColdStart("ended: DONE", replaced=("/checkpoints/scores", "kept")),
}
"""The documented commands that read what a stream has left."""

ELSEWHERE = {
    "penstock conformance",
    "penstock conformance --without all",
    "penstock drain /checkpoints/scores --wait",
    "penstock cancel /checkpoints/scores",
    "penstock signal /checkpoints/scores flush",
    "penstock update /checkpoints/scores scores.py --arguments --mode=streaming",
    "penstock update /checkpoints/scores scores.py --check",
    "penstock update /checkpoints/scores scores.py",
    "penstock update /data/checkpoint job.sql",
    *("penstock status", "penstock update", "penstock update --check"),
}
"""The documented commands that take minutes, or need a run that lasts; tests/conformance runs them otherwise.

Some are named without their arguments.
"""

QUICK = {
    *("penstock graph program.py", "penstock graph job.sql", "penstock options"),
    *(command for command in COMMANDS if command.startswith("penstock new ")),
}
"""The documented commands that do not start Spark."""

STREAM = """
import penstock as beam

with beam.Pipeline(mode="streaming", checkpoint_location="kept", shuffle_partitions=1, live_port=0) as pipeline:
    pairs = pipeline | "Scores" >> beam.Create([("red", 1), ("blue", 2)])
    pairs | "Totals" >> beam.CombinePerKey(sum)
"""

NEED_A_SERVICE = {"enrich.py", "redis_streams.py"}
"""The examples with arguments that name a server, which their own tests start."""

RUN_PAGE = """
import sys
from pathlib import Path

page = Path(sys.argv[1])
from tests.test_docs import failures_of

sys.argv[1:] = []
failures = failures_of(page.name, page.read_text(encoding="utf-8"))
sys.exit("".join(failures) or None)
"""
"""Runs the examples of a page as its reader would, in one Python."""
