"""Which outside data a pipeline read and wrote (Beam's ``Lineage``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from penstock.error import refusal
from penstock.metrics.execution import BOUNDED_TRIES, MetricResult, current_container


class MetricQuery(Protocol):
    """The metrics of a run, as `Lineage` reads them: `penstock.metrics.metric.MetricResults`."""

    def query(self) -> Mapping[str, Sequence[MetricResult]]:
        """Returns all metrics, by kind."""


_RESERVED = re.compile(r"[:\s.]")


class Lineage:
    """Records the sources or the sinks of a pipeline as a metric; `label` is `SOURCE` or `SINK`.

    >>> Lineage.get_fq_name("kafka", "cluster", "topic.a")
    'kafka:cluster.`topic.a`'
    """

    LINEAGE_NAMESPACE = "lineage"
    SOURCE = "sources_v2"
    SINK = "sinks_v2"

    def __init__(self, label: str) -> None:
        self._label = _known(label)

    @classmethod
    def sources(cls) -> Lineage:
        """Returns the record of sources."""
        return cls(cls.SOURCE)

    @classmethod
    def sinks(cls) -> Lineage:
        """Returns the record of sinks."""
        return cls(cls.SINK)

    @staticmethod
    def wrap_segment(segment: str) -> str:
        """Returns a segment in backticks if it contains a colon, a dot or white space."""
        wrapped = segment.startswith("`") and segment.endswith("`")
        return f"`{segment}`" if _RESERVED.search(segment) and not wrapped else segment

    @staticmethod
    def get_fq_name(system: str, *segments: str, subtype: str | None = None) -> str:
        """Returns the full name: ``system:segment.segment`` or ``system:subtype:segment.segment``."""
        joined = ".".join(Lineage.wrap_segment(segment) for segment in segments)
        return ":".join([system, subtype, joined] if subtype else [system, joined])

    def add(
        self, system: str, *segments: str, subtype: str | None = None, last_segment_sep: str | None = None
    ) -> None:
        """Records a source or a sink.

        Args:
            system: Where it is, such as ``kafka``; or a full name, alone.
            *segments: Its parts, from the outermost.
            subtype: A kind within the system.
            last_segment_sep: Splits the last part further, so that many parts can be recorded as one.
        """
        self.add_raw(*_parts(system, segments, subtype, last_segment_sep))

    def add_raw(self, *rollup_segments: str) -> None:
        """Records a full name of parts that are joined unchanged."""
        container = current_container()
        if container is not None:
            container.add(BOUNDED_TRIES, (self.LINEAGE_NAMESPACE, self._label), rollup_segments)

    @staticmethod
    def query(results: MetricQuery, label: str, truncated_marker: str = "*") -> set[str]:
        """Returns the full names that a run recorded under a label; a name of several sources ends with the marker."""
        _known(label)
        found = set()
        for result in results.query()[BOUNDED_TRIES]:
            metric = result.key.metric
            if (metric.namespace, metric.name) == (Lineage.LINEAGE_NAMESPACE, label):
                for *parts, cut in (result.committed or result.attempted).flattened():
                    found.add("".join(map(str, parts)) + (truncated_marker if cut else ""))
        return found


def _known(label: str) -> str:
    if label not in (Lineage.SOURCE, Lineage.SINK):
        what = f"no lineage is labelled {label!r}"
        raise refusal(ValueError, what, hint="use Lineage.SOURCE or Lineage.SINK")
    return label


def _parts(
    system: str, segments: tuple[str, ...], subtype: str | None, last_segment_sep: str | None
) -> Iterator[str]:
    if not segments and subtype is None:
        yield system
        return
    yield f"{system}:"
    if subtype:
        yield f"{subtype}:"
    yield from (f"{segment}." for segment in segments[:-1])
    for last in segments[-1:]:
        pieces = last.split(last_segment_sep) if last_segment_sep else [last]
        yield from (f"{piece}{last_segment_sep}" for piece in pieces[:-1])
        yield pieces[-1]
