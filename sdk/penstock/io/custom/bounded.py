"""Custom bounded sources: how they are split and read, one piece at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock import graph
from penstock.checks.unsupported_arguments import MANAGED, refuse_unsupported
from penstock.coders import typecoders
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.error import noun_for, refusal
from penstock.functions.dofn import DoFn
from penstock.io.custom.ranges import RangeSource, ReadFromSource
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import ParDo
from penstock.transforms.grouping.reshuffling import Reshuffle


class SourceBundle(NamedTuple):
    """A piece of a source: its approximate size in bytes, the source, and its range of positions (Beam's name)."""

    weight: Any
    source: Any
    start_position: Any
    stop_position: Any


class SourceBase:
    """The base of sources for ``Read`` (Beam's ``SourceBase``)."""

    def default_output_coder(self) -> object:
        """Returns the coder of the elements."""
        raise NotImplementedError

    def is_bounded(self) -> bool:
        """True if the source ends."""
        raise NotImplementedError


@dataclass(frozen=True)
class UnboundedSourceOfBeam(graph.Source):
    """A custom source that does not end: a pipeline can contain it, but no runner can read it."""

    name: str
    is_bounded = False

    def describe(self) -> str:
        return f"the source {self.name}"


class BoundedSource(SourceBase):
    """A custom source that ends; override its methods (Beam's ``BoundedSource``).

    >>> class Count(BoundedSource):
    ...     def estimate_size(self): return 2
    ...     def split(self, desired_bundle_size, start_position=None, stop_position=None):
    ...         yield SourceBundle(2, self, 0, 2)
    ...     def get_range_tracker(self, start_position, stop_position):
    ...         from penstock.io.range_trackers import OffsetRangeTracker
    ...         return OffsetRangeTracker(start_position or 0, stop_position or 2)
    ...     def read(self, range_tracker):
    ...         yield from (n for n in range(2) if range_tracker.try_claim(n))
    >>> list(read_bundle(next(Count().split(1))))
    [0, 1]
    """

    def estimate_size(self) -> int | None:
        """Returns the stored size in bytes, or None."""
        raise NotImplementedError

    def split(
        self, desired_bundle_size: int, start_position: Any = None, stop_position: Any = None
    ) -> Iterator[SourceBundle]:
        """Returns pieces of about that many bytes between two positions (None: the beginning and the end)."""
        raise NotImplementedError

    def get_range_tracker(self, start_position: Any, stop_position: Any) -> RangeTracker:
        """Returns the tracker of a range of positions (None: the beginning and the end)."""
        raise NotImplementedError

    def read(self, range_tracker: RangeTracker) -> Iterator[Any]:
        """Returns the elements in the tracker's range; claim the position of each element before yielding it."""
        raise NotImplementedError

    def default_output_coder(self) -> object:
        return typecoders.registry.get_coder(object)

    def is_bounded(self) -> bool:
        return True


class RangeTracker:
    """The range of a reader, and the positions that it has claimed (Beam's ``RangeTracker``)."""

    SPLIT_POINTS_UNKNOWN = object()

    def start_position(self) -> Any:
        """Returns the first position of the range."""
        raise NotImplementedError(type(self))

    def stop_position(self) -> Any:
        """Returns the position after the range."""
        raise NotImplementedError(type(self))

    def try_claim(self, position: Any) -> bool:
        """Claims a position at which reading can start; False after the range, a ValueError out of order."""
        raise NotImplementedError

    def set_current_position(self, position: Any) -> None:
        """Records a position, after a claimed one, at which reading cannot start."""
        raise NotImplementedError

    def position_at_fraction(self, fraction: float) -> Any:
        """Returns the position at a fraction of the range."""
        raise NotImplementedError

    def try_split(self, position: Any) -> Any:
        """Ends the range earlier; returns (position, fraction), or None if it refuses."""
        raise NotImplementedError

    def fraction_consumed(self) -> float:
        """Returns the share of the range behind the reader, between 0 and 1."""
        raise NotImplementedError

    def split_points(self) -> tuple[Any, Any]:
        """Returns the number of positions behind and ahead at which reading can start."""
        raise NotImplementedError

    def set_split_points_unclaimed_callback(self, callback: object) -> None:
        """Sets the reader's own function from the end of the range to the number of positions ahead."""
        raise NotImplementedError


def read_bundle(bundle: SourceBundle) -> Iterator[Any]:
    """Yields the elements of one piece of a source."""
    yield from bundle.source.read(
        bundle.source.get_range_tracker(bundle.start_position, bundle.stop_position)
    )


class _SplitSource(DoFn):
    def process(self, element: BoundedSource) -> Iterator[SourceBundle]:
        yield from element.split(Read.get_desired_chunk_size(element.estimate_size()))


class _ReadBundle(DoFn):
    def process(self, element: SourceBundle) -> Iterator[Any]:
        yield from read_bundle(element)


class SDFBoundedSourceReader(PTransform[Any, Any]):
    """Splits each `BoundedSource` in a PCollection, and reads the pieces in parallel (Beam's name)."""

    def __init__(self, data_to_display: object = None) -> None:
        super().__init__()
        self._data_to_display = data_to_display or {}

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        return (
            pcoll
            | "Split" >> ParDo(_SplitSource())
            | "Spread" >> Reshuffle()
            | "Read" >> ParDo(_ReadBundle())
        )


class Read(PTransform[Any, Any]):
    """Reads a source (Beam's ``Read``).

    The source is a `BoundedSource`, a `RangeSource`, a transform that reads, or a description for the runner
    (`penstock.graph.Source`).

    Args:
        source: The source.
        unsupported: Arguments that only Beam's managed transforms have, which are refused.

    Raises:
        UnsupportedByRunner: An argument that only Beam's managed transforms have was passed.
        TypeError: An argument is unknown.
    """

    def __init__(self, source: Any, **unsupported: object) -> None:
        super().__init__()
        refuse_unsupported("Read", unsupported, MANAGED)
        self.source = source

    @staticmethod
    def get_desired_chunk_size(total_size: int | None) -> int:
        """Returns the size of a piece in bytes, which grows with the source (Beam's rule).

        >>> Read.get_desired_chunk_size(1 << 40)
        1048576000
        """
        return max(1 << 20, 1000 * int(math.sqrt(total_size))) if total_size else 64 << 20

    def expand(self, pbegin: PBegin) -> PCollection[Any]:
        if isinstance(self.source, graph.Source):
            return PCollection(pbegin.pipeline, is_bounded=self.source.is_bounded)
        if isinstance(self.source, BoundedSource):
            result: PCollection[Any] = (
                pbegin | "Source" >> Create([self.source], reshuffle=False) | SDFBoundedSourceReader()
            )
            return result
        if isinstance(self.source, RangeSource):
            ranges: PCollection[Any] = pbegin.pipeline | ReadFromSource(self.source)
            return ranges
        if isinstance(self.source, PTransform):
            read: PCollection[Any] = pbegin.pipeline | self.source
            return read
        if isinstance(self.source, SourceBase) and not self.source.is_bounded():
            return PCollection(pbegin.pipeline, is_bounded=False)
        what = f"Read cannot read {noun_for(self.source)}"
        hint = "pass a BoundedSource, or use a transform such as ReadFromText"
        raise refusal(TypeError, what, where=self._where(), hint=hint)

    def to_primitive(self) -> graph.Read | None:
        if isinstance(self.source, SourceBase) and not isinstance(self.source, BoundedSource):
            return graph.Read(UnboundedSourceOfBeam(type(self.source).__name__))
        return graph.Read(self.source) if isinstance(self.source, graph.Source) else None
