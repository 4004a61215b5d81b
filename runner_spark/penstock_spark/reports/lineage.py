"""Reports the files that a run reads and writes as Beam's lineage metric, from the plan and without the tasks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.graph import Graph, Read, Sink, Source, Write
from penstock.io.files.paths import known_path
from penstock.io.filesystems import FileSystems
from penstock.io.formats.file_formats import FileSource, ShardedSink
from penstock.io.formats.text_rows import TextRowsSink
from penstock.io.sparkio import SparkSink
from penstock.io.streaming.stream_sources import SourceWithRejects, StreamSource
from penstock.metrics.execution import MetricsContainer, Snapshot, current_container, set_current
from penstock_spark.plan.column_plan import ColumnsSource
from penstock_spark.session.backend import TaskReports

_FILES_MAX = 10
"""A write reports up to this many files one by one, as in Beam; for more, it reports a pattern."""

_DRIVER = -2
"""The stage number of the driver's own metrics."""


def report_lineage(told: TaskReports, run: str, graph: Graph, written: Mapping[str, tuple[Any, ...]]) -> None:
    """Adds the files of a run's reads and writes to its metrics; a write of a stream reports its prefix."""
    snapshot: Snapshot = {}
    before = current_container()
    try:
        for step in graph.steps:
            container = MetricsContainer(step.label)
            set_current(container)
            match step.primitive:
                case Read(source):
                    for path in _read(source):
                        FileSystems.report_source_lineage(path)
                case Write(sink):
                    for path in _list_written(sink, written.get(step.label)):
                        FileSystems.report_sink_lineage(path)
            snapshot.update(container.snapshot())
    finally:
        set_current(before)
    if snapshot:
        told.value[run, _DRIVER, 0] = snapshot


def unwrap_source(description: Source | Sink) -> Any:
    """A description without the ones around it that compute columns or say when a source is read."""
    while isinstance(description, StreamSource | SourceWithRejects | ColumnsSource):
        description = description.source
    return description


def _read(source: Source) -> Iterator[str]:
    inner = unwrap_source(source)
    pattern = known_path(inner.file_pattern) if isinstance(inner, FileSource) else None
    if pattern is not None:
        yield pattern


def _list_written(sink: object, given: tuple[Any, ...] | None) -> Iterator[str]:
    if given is None:
        match sink:
            case ShardedSink(shards=shards):
                prefix, suffix = known_path(shards.file_path_prefix), shards.file_name_suffix
            case TextRowsSink(path=path) | SparkSink(path=path):
                prefix, suffix = path if path is None else known_path(path), ""
            case _:
                return
        if isinstance(prefix, str):
            yield f"{prefix}*{suffix}"
        return
    names = [name for name in given if isinstance(name, str)]
    if len(names) <= _FILES_MAX:
        yield from names
    else:
        # The alphabetically first and last names share exactly the prefix that all names share.
        pairs = zip(min(names), max(names), strict=False)
        yield "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)) + "*"
