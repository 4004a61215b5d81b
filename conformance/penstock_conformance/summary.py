"""The results of a run for a terminal: a line for each file, and a table at the end."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from penstock_conformance.choosing import file_of
from penstock_conformance.citations import is_figure, order_of
from penstock_conformance.outcomes import Outcome, Status, by_row


def print_totals(outcomes: Iterable[Outcome], progress: TextIO) -> Iterator[Outcome]:
    """Yields these outcomes; after each file, a line with its totals goes to `progress`.

    On a terminal, the line also counts while the file's scenarios are played.
    """
    for (mode, file), group in itertools.groupby(outcomes, key=lambda one: (one.mode, file_of(one.scenario))):
        counts: Counter[Status] = Counter()
        for outcome in group:
            counts[outcome.status] += 1
            if progress.isatty():
                progress.write(f"\r{_line(mode, file, counts)}")
                progress.flush()
            yield outcome
        beginning = "\r" if progress.isatty() else ""
        progress.write(f"{beginning}{_line(mode, file, counts)}\n")
        progress.flush()


def _line(mode: str, file: str, counts: Counter[Status]) -> str:
    return f"{mode:<12} {file:<28} {format_totals(counts)}"


def format_totals(counts: Counter[Status]) -> str:
    """Numbers in words; what differs by the model has passed.

    >>> format_totals(Counter({Status.PASSED: 3, Status.DIFFERS: 2, Status.NOT_PLAYED: 1}))
    '5 passed, 0 failed, 1 not played'
    """
    text = f"{counts[Status.PASSED] + counts[Status.DIFFERS]} passed, {counts[Status.FAILED]} failed"
    not_played = counts[Status.NOT_PLAYED]
    return f"{text}, {not_played} not played" if not_played else text


def format_total(outcomes: Iterable[Outcome]) -> str:
    """All outcomes in one line."""
    return format_totals(Counter(outcome.status for outcome in outcomes))


def table(outcomes: Sequence[Outcome], modes: Sequence[str]) -> Iterator[str]:
    """Lines of a table, figures by mode, and below them everything else, by file."""
    widths = [max(len(mode), len(Status.DIFFERS.value)) for mode in modes]
    rows = by_row(outcomes)
    yield _columns("", modes, widths)
    for row in sorted(rows, key=lambda row: (not is_figure(row), order_of(row))):
        cells = [rows[row][mode].value if mode in rows[row] else "-" for mode in modes]
        yield _columns(row, cells, widths)


def _columns(first: str, cells: Iterable[str], widths: Iterable[int]) -> str:
    aligned = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)]
    return "  ".join([f"{first:<27}", *aligned]).rstrip()
