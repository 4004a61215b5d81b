"""The work of a run over time: rows, busy time and backlog in spans of one width, no more than a page can draw."""

from __future__ import annotations

from dataclasses import dataclass

SPANS_MAX = 180
"""The number of spans that are kept; when there would be more, two become one, so that the whole run stays visible."""

FIRST_WIDTH_MICROS = 1_000_000

RECENT_WIDTH_MICROS = 5_000_000


@dataclass(frozen=True)
class Span:
    """The work in a span of time; a time without work has no span.

    Attributes:
        start_micros: When it begins.
        rows: The rows read. The rows of a micro-batch are spread evenly over its time.
        busy_micros: For how long a micro-batch was at work.
        backlog: How many offsets were not read yet when the last micro-batch in it ended; None if unknown.
    """

    start_micros: int
    rows: float = 0.0
    busy_micros: int = 0
    backlog: int | None = None


@dataclass(frozen=True)
class Throughput:
    """The work of a run over time.

    Attributes:
        width_micros: The length of each span.
        spans: The spans with work of the whole run, in order.
        recent_spans: The spans of the last fifteen minutes, of `RECENT_WIDTH_MICROS` each.
        until_micros: The time up to which the work is known; None before the first work.
    """

    width_micros: int = FIRST_WIDTH_MICROS
    spans: tuple[Span, ...] = ()
    recent_spans: tuple[Span, ...] = ()
    until_micros: int | None = None


def add_work(
    before: Throughput, began_micros: int, ended_micros: int, rows: float, backlog: int | None = None
) -> Throughput:
    """Returns the throughput with the work of a micro-batch.

    >>> found = add_work(Throughput(), 500_000, 2_500_000, 100)
    >>> [(span.start_micros, span.rows, span.busy_micros) for span in found.spans]
    [(0, 25.0, 500000), (1000000, 50.0, 1000000), (2000000, 25.0, 500000)]
    """
    if before.until_micros is not None:
        # Micro-batches do not overlap, but a clock may be set back.
        began_micros = max(began_micros, before.until_micros)
    ended_micros = max(ended_micros, began_micros + 1)
    width, spans = before.width_micros, before.spans
    first = spans[0].start_micros if spans else began_micros
    while (ended_micros - first) // width >= SPANS_MAX - 1:
        width *= 2
        spans = _merge(spans, width)
    work = began_micros, ended_micros, rows, backlog
    oldest = ended_micros - SPANS_MAX * RECENT_WIDTH_MICROS
    recent = tuple(span for span in before.recent_spans if span.start_micros >= oldest)
    late = max(began_micros, oldest)
    rows_recently = rows * (ended_micros - late) / (ended_micros - began_micros)
    return Throughput(
        width,
        _add(spans, width, *work),
        _add(recent, RECENT_WIDTH_MICROS, late, ended_micros, rows_recently, backlog),
        ended_micros,
    )


def _add(
    spans: tuple[Span, ...],
    width: int,
    began_micros: int,
    ended_micros: int,
    rows: float,
    backlog: int | None,
) -> tuple[Span, ...]:
    """Returns spans with the work of a micro-batch that comes after what they have."""
    starts = range(began_micros // width * width, ended_micros, width)
    earlier = spans[-1] if spans and spans[-1].start_micros == starts[0] else None
    made = []
    for start in starts:
        known = earlier if earlier is not None and start == starts[0] else Span(start)
        overlap = min(ended_micros, start + width) - max(began_micros, start)
        part = rows * overlap / (ended_micros - began_micros)
        left = backlog if start == starts[-1] else known.backlog
        made.append(Span(start, round(known.rows + part, 3), known.busy_micros + overlap, left))
    return (*(spans if earlier is None else spans[:-1]), *made)


def _merge(spans: tuple[Span, ...], width_micros: int) -> tuple[Span, ...]:
    """Returns the spans in longer ones."""
    found: dict[int, Span] = {}
    for span in spans:
        start = span.start_micros // width_micros * width_micros
        known = found.get(start, Span(start))
        found[start] = Span(start, known.rows + span.rows, known.busy_micros + span.busy_micros, span.backlog)
    return tuple(found.values())
