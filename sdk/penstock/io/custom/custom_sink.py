"""Custom sinks: begin, write pieces in parallel, finish once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock import graph
from penstock.checks.unsupported_arguments import MANAGED, refuse_unsupported
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import AsIter, AsSingleton, PCollection
from penstock.elements.bounded_window import GlobalWindow
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import FlatMap, Map, ParDo
from penstock.transforms.grouping.group_by_key import GroupByKey
from penstock.transforms.grouping.windowing import WindowInto
from penstock.utils.identifiers import make_uuid
from penstock.utils.windowed_value import WindowedValue
from penstock.windows.window_fn import GlobalWindows


class Writer:
    """Writes one piece for a `Sink` (Beam's ``Writer``)."""

    def write(self, value: Any) -> None:
        """Writes one element."""
        raise NotImplementedError

    def close(self) -> Any:
        """Ends the piece; the result goes to ``Sink.finalize_write``."""
        raise NotImplementedError

    def at_capacity(self) -> bool:
        """True if another piece should begin."""
        return False


class Sink:
    """A custom sink; override its methods (Beam's ``iobase.Sink``).

    Attributes:
        skip_if_empty: Whether nothing is written for an empty collection.
        num_shards: The number of pieces; 0 or None leaves it to the runner.
    """

    skip_if_empty = False
    num_shards: int | None = 0

    def initialize_write(self) -> object:
        """Called once before the first write; the result goes to the other methods."""
        raise NotImplementedError

    def open_writer(self, init_result: Any, uid: str) -> Writer:
        """Returns a writer for one piece; `uid` is different for each piece."""
        raise NotImplementedError

    def pre_finalize(self, init_result: Any, writer_results: Iterable[Any]) -> object:
        """Called once after all pieces are written, before `finalize_write`, e.g. to clear the destination."""

    def finalize_write(
        self, init_result: Any, writer_results: Iterable[Any], pre_finalize_result: Any
    ) -> Any:
        """Called once with the results of all writers; may return elements for the output of ``Write``."""
        raise NotImplementedError

    def pre_finalize_windowed(
        self, init_result: object, writer_results: Iterable[Any], window: object = None
    ) -> Any:
        """Like `pre_finalize`, for one window of an unbounded collection."""
        raise NotImplementedError

    def finalize_windowed_write(
        self,
        init_result: object,
        writer_results: Iterable[Any],
        pre_finalize_result: object,
        window: object = None,
    ) -> Any:
        """Like `finalize_write`, for one window of an unbounded collection."""
        raise NotImplementedError


class Write(PTransform[Any, Any]):
    """Writes to a sink (Beam's ``Write``).

    The sink is a `Sink`, a transform that writes, or a description for the runner (`penstock.graph.Sink`).

    Args:
        sink: The sink.
        unsupported: Arguments of Beam's managed transforms, which are refused.

    Raises:
        UnsupportedByRunner: One of the arguments of Beam's managed transforms is passed.
        TypeError: An argument is unknown.
    """

    def __init__(self, sink: object, **unsupported: object) -> None:
        super().__init__()
        refuse_unsupported("Write", unsupported, MANAGED)
        self.sink = sink

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        if isinstance(self.sink, graph.Sink):
            return PCollection.from_(pcoll)
        if isinstance(self.sink, Sink):
            return pcoll | WriteImpl(self.sink)
        if isinstance(self.sink, PTransform):
            return pcoll | self.sink
        what = f"A sink must inherit iobase.Sink or be a PTransform. Received: {self.sink!r}"
        raise refusal(ValueError, what, where=self._where(), hint="use a transform such as WriteToText")

    def to_primitive(self) -> graph.Write | None:
        return graph.Write(self.sink) if isinstance(self.sink, graph.Sink) else None


class WriteImpl(PTransform[Any, Any]):
    """Writes a bounded collection to a `Sink` (Beam's ``WriteImpl``); refuses unbounded ones."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self.sink = sink

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        if not pcoll.is_bounded:
            what = "a custom Sink takes only bounded collections"
            raise refusal(NotImplementedError, what, where=self._where(), hint="write in a DoFn")
        shards = self.sink.num_shards or 0
        once = pcoll.pipeline | "DoOnce" >> Create([None])
        begun = once | "InitializeWrite" >> Map(_initialize, self.sink)
        everywhere = pcoll | WindowInto(GlobalWindows())
        if shards:
            keyed = everywhere | "Shard" >> ParDo(_RoundRobin(shards)) | GroupByKey()
            pieces = keyed | "WriteShards" >> ParDo(_WriteShard(self.sink), AsSingleton(begun))
        else:
            pieces = everywhere | "WriteBundles" >> ParDo(_WriteBundle(self.sink), AsSingleton(begun))
        return once | "FinalizeWrite" >> FlatMap(
            _finalize, self.sink, AsSingleton(begun), AsIter(pieces), max(shards, 1)
        )


def _initialize(_: object, sink: Sink) -> object:
    return sink.initialize_write()


def _finalize(
    _: object, sink: Sink, init_result: object, pieces: Iterable[Any], shards: int
) -> Iterable[Any]:
    results = list(pieces)
    if results or not sink.skip_if_empty:
        missing = range(shards - len(results))
        results += [sink.open_writer(init_result, make_uuid()).close() for _ in missing]
    prepared = sink.pre_finalize(init_result, results)
    return sink.finalize_write(init_result, results, prepared) or ()


class _RoundRobin(DoFn):
    """Distributes the elements over the shards."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._next = 0

    def process(self, element: object) -> Iterator[tuple[int, Any]]:
        self._next = (self._next + 1) % self._shards
        yield self._next, element


class _WriteShard(DoFn):
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def process(self, element: tuple[int, Iterable[Any]], init_result: object) -> Iterator[Any]:
        writer = self._sink.open_writer(init_result, make_uuid())
        for value in element[1]:
            writer.write(value)
        yield writer.close()


class _WriteBundle(DoFn):
    """Writes the elements of a bundle; begins another piece when the writer is full."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._writer: Writer | None = None

    def start_bundle(self) -> None:
        self._writer = None

    def process(self, element: object, init_result: object) -> Iterator[Any]:
        if self._writer is None:
            self._writer = self._sink.open_writer(init_result, make_uuid())
        self._writer.write(element)
        if self._writer.at_capacity():
            yield self._writer.close()
            self._writer = None

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._writer is not None:
            window = GlobalWindow()
            yield WindowedValue(self._writer.close(), window.max_timestamp(), (window,))
