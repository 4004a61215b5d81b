"""Beam sources: bounded ones are split by one step and read by the next, and impulses become penstock's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from apache_beam.io import iobase as beam_iobase
from apache_beam.utils import timestamp as beam_timestamp

from penstock.functions.dofn import DoFn, FlatMapDoFn
from penstock.io.streaming.periodic_sequence import PeriodicImpulse, PeriodicSource, RebaseMode
from penstock_spark.beam.values import OUTPUT_KINDS, time_of

if TYPE_CHECKING:
    from apache_beam.transforms.periodicsequence import PeriodicImpulse as BeamsPeriodicImpulse


def split_source() -> DoFn:
    """Gives the pieces of each source."""
    return _counting(FlatMapDoFn(_pieces))


def read_pieces() -> DoFn:
    """Gives the elements of each piece."""
    return _counting(FlatMapDoFn(_elements))


def periodic_source(impulse: BeamsPeriodicImpulse) -> PeriodicSource:
    """The source of a Beam PeriodicImpulse."""
    start, stop = _bound(impulse.start_ts), _bound(impulse.stop_ts)
    data = [_datum(datum) for datum in impulse.data or ()]
    rebase = RebaseMode[impulse.rebase.name]
    return PeriodicImpulse(start, stop, impulse.interval, data=data, rebase=rebase).source


def _bound(time: object) -> Any:
    return time if isinstance(time, (int, float)) else time_of(time)


def _datum(datum: Any) -> object:
    is_timed = isinstance(datum, tuple) and len(datum) == 2 and isinstance(datum[0], beam_timestamp.Timestamp)
    return (time_of(datum[0]), datum[1]) if is_timed else datum


def _counting(dofn: DoFn) -> DoFn:
    dofn.output_kinds = OUTPUT_KINDS
    return dofn


def _pieces(source: beam_iobase.BoundedSource) -> Iterator[Any]:
    yield from source.split(beam_iobase.Read.get_desired_chunk_size(source.estimate_size()))


def _elements(piece: beam_iobase.SourceBundle) -> Iterator[Any]:
    tracker = piece.source.get_range_tracker(piece.start_position, piece.stop_position)
    yield from piece.source.read(tracker)
