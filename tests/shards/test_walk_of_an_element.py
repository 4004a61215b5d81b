"""The walks in docs/design are those of an element: the modules of their tables take it, in that order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.window import FixedWindows
from penstock_spark.stream.transport.inbox import Inbox, Received
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Message
from tests.runner.plain_runner import run_plain
from tests.shards.toy_query import ToyQuery

DESIGN = Path(__file__).parents[2] / "docs" / "design"
WORD = "zebra"
HOLDERS = (Batch, Message, Inbox, Received)


def hops(page: str) -> list[str]:
    """The modules in the table of a walk."""
    return re.findall(r"^\| \d+ \| `([\w/]+)\.py` \|", (DESIGN / page).read_text(), re.MULTILINE)


def holds_word(value: Any, depth: int = 0) -> bool:
    """True if a value is or has the word; only what carries elements is searched."""
    if isinstance(value, str | bytes):
        return WORD in value if isinstance(value, str) else WORD.encode() in value
    if depth > 10:
        return False
    if isinstance(value, dict):
        return any(holds_word(each, depth + 1) for pair in [*value.items()] for each in pair)
    if isinstance(value, list | tuple | set):
        return any(holds_word(each, depth + 1) for each in [*value])
    return isinstance(value, HOLDERS) and any(
        holds_word(getattr(value, name, None), depth + 1) for name in ("values", "parts", "messages")
    )


def takers_of_the_word(run: Callable[[], Any]) -> list[str]:
    """The modules whose functions have the word in an argument or a variable, in the order of the first ones."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = str(frame.f_globals.get("__name__", ""))
        if event != "call" or not module.startswith(("penstock.", "penstock_spark.")):
            return
        name = module.partition(".")[2].replace(".", "/")
        if name not in found and any(
            holds_word(value) for own, value in [*frame.f_locals.items()] if own != "self"
        ):
            found[name] = None

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return list(found)


def scored(line: str) -> tuple[str, int]:
    """A team and its score."""
    team, score, _ = line.split(",")
    return team, int(score)


def test_a_score_of_a_streaming_sum_takes_the_walk_of_the_page() -> None:
    pipeline = beam.Pipeline()
    source = beam.io.ReadFromText("/log/*", validate=False).as_stream(
        lambda line: float(line.rpartition(",")[2]), BoundedDisorder(2)
    )
    scores = pipeline | "Read" >> source | beam.Map(scored).with_output_types(tuple[str, int])
    totals = scores | beam.WindowInto(FixedWindows(10)) | beam.CombinePerKey(sum)
    _ = totals | beam.MapTuple(lambda team, total: f"{team} {total}") | "Write" >> WriteToMemory([])
    query, written = ToyQuery(pipeline), []

    def run() -> None:
        for line in (f"{WORD},3,1", f"{WORD},4,2", "ape,1,50"):
            written.extend(query.batch({"Read": [[line]]})["Write"])

    takers = takers_of_the_word(run)
    assert written == [f"{WORD} 7"]
    # Spark calls the first one, and the last one works on frames.
    first, *between, last = hops("streams.md")
    assert (first, last) == ("formats/text/stream", "lowering/batch_writer")
    assert [name for name in takers if name in between] == between


def test_a_word_of_a_batch_takes_the_walk_of_the_page() -> None:
    pipeline = beam.Pipeline()
    words = pipeline | beam.Create([f"a {WORD}", WORD]) | beam.FlatMap(str.split)
    pairs = words | beam.Map(lambda word: (word, 1)).with_output_types(tuple[str, int])
    written: list[str] = []
    _ = (
        pairs
        | beam.CombinePerKey(sum)
        | beam.MapTuple(lambda word, n: f"{word} {n}")
        | WriteToMemory(written)
    )
    takers = takers_of_the_word(lambda: run_plain(pipeline))
    assert sorted(written) == ["a 1", f"{WORD} 2"]
    # There are no files here, and so small an input is added up in Python.
    own = [name for name in hops("batch.md") if not name.startswith(("formats/", "sinks/", "lowering/"))]
    own.remove("folding/totals")
    assert [name for name in takers if name in own] == own
