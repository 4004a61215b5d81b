"""The files of the events: lines of JSON in one file or in one for each micro-batch, and Parquet for each kind."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from nexmark.generator import DISORDER_MILLIS, events, last_events
from nexmark.model import KINDS, Event, to_line
from stream_inputs import cut, write_stream

END_SECONDS = 600
"""The time from all other events to the last events: whatever waits is over then."""

_ARROW_TYPES = {int: pa.int64(), str: pa.string()}


def batch_files(folder: Path, count: int, parts: int = 4) -> Path:
    """Writes events, in as many files as there should be parts for cores to read, unless they exist.

    The folder has the lines in ``lines`` and, in Parquet, each kind of event in a folder of its name.
    """
    target = folder / f"nexmark-{count}"
    if not target.exists():
        made = list(events(count))
        unfinished = _emptied(target)
        write_stream(unfinished / "lines", cut([to_line(event) for event in made], parts))
        for name in KINDS:
            _write_parquet(unfinished / name, name, made)
        unfinished.rename(target)
    return target


def stream_files(folder: Path, count: int, parts: int) -> Path:
    """Writes events, and events that end the stream, unless they exist; ``lines`` has files for one
    micro-batch each.
    """
    target = folder / f"nexmark-{count}-in-{parts}"
    if not target.exists():
        unfinished = _emptied(target)
        write_stream(unfinished / "lines", stream_lines(list(events(count)), parts))
        unfinished.rename(target)
    return target


def stream_lines(made: Sequence[Event], parts: int) -> list[Sequence[str]]:
    """The lines of `parts` files, and the lines of one more that ends the stream."""
    last = max(event.time for event in made) + DISORDER_MILLIS + END_SECONDS * 1_000
    return [
        *cut([to_line(event) for event in made], parts),
        [to_line(event) for event in last_events(last)],
    ]


def _emptied(target: Path) -> Path:
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    return unfinished


def _write_parquet(folder: Path, name: str, made: Sequence[Event]) -> None:
    folder.mkdir()
    schema = pa.schema([(field, _ARROW_TYPES[kind]) for field, kind in get_type_hints(KINDS[name]).items()])
    rows = [event for event in made if isinstance(event, KINDS[name])]
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    pq.write_table(pa.table(arrays, schema=schema), folder / "part-0.parquet")
