"""The queries by name: what each asks for, and how its rows are compared.

They are those of Apache Beam's Nexmark suite and of the SQL versions that other engines use, with these choices, so
that an answer depends on the events alone, in batch and on streams, and for every contender:

- Prices are whole cents, and means are rounded down.
- Of two highest bids the earlier one is the higher, and then the bid of the bidder with the smaller number.
- Windows are of ten seconds. q4 has sliding windows of the time at which auctions expire, as Beam's has, and q19 the
  ten best bids of a window; the SQL versions have both for all time, and correct their answers forever.
- q6 answers again with every auction that is over. On a stream several are over at one moment, in any order, and so the
  last answer for each seller counts.
- q12 counts by the clock, and so what it counts of a bidder all together is compared. A batch is one moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nexmark.model import END


@dataclass(frozen=True)
class Query:
    """A question about the events."""

    name: str  # As in the benchmark.
    title: str  # For people.
    has_times: bool = True  # Whether the time of events matters in a batch.
    kept: str = "all"  # Which rows of one key count: ``all`` of them, the ``last`` one, or their ``sum``.

    def answer(self, lines: Iterable[str]) -> list[str]:
        r"""The answer that lines say together, in order; lines about the end of the stream say nothing.

        A line that ends with ``undo`` takes an equal one back.

        >>> QUERIES["q12"].answer(["7\t1", "8\t2", "7\t3"])
        ['7\t4', '8\t2']
        >>> QUERIES["q6"].answer(["7\t1\t50", "7\t3\t90", "7\t2\t60"])
        ['7\t3\t90']
        >>> QUERIES["q12"].answer(["7\t1", "7\t1\tundo", "7\t2"])
        ['7\t2']
        """
        rows = [line.split("\t") for line in left_of(lines)]
        rows = [row for row in rows if str(END) not in row]
        if self.kept == "last":
            last: dict[str, list[str]] = {}
            for row in sorted(rows, key=lambda row: int(row[1])):
                last[row[0]] = row
            rows = list(last.values())
        if self.kept == "sum":
            sums: dict[str, int] = {}
            for key, count in rows:
                sums[key] = sums.get(key, 0) + int(count)
            rows = [[key, str(total)] for key, total in sums.items()]
        return sorted("\t".join(row) for row in rows)


QUERIES = {
    query.name: query
    for query in (
        Query("q0", "all bids unchanged", has_times=False),
        Query("q1", "bids with their prices in euro", has_times=False),
        Query("q2", "bids for some auctions", has_times=False),
        Query("q3", "who sells things of a category in three states", has_times=False),
        Query("q4", "mean of the winning prices of a category"),
        Query("q5", "auctions with the most bids"),
        Query("q6", "mean price of a seller's last ten auctions", kept="last"),
        Query("q7", "highest bid"),
        Query("q8", "who sells something in the window of joining"),
        Query("q9", "winning bids"),
        Query("q11", "bids of a bidder's sessions"),
        Query("q12", "bids of a bidder by the clock", has_times=False, kept="sum"),
        Query("q19", "ten best bids for each auction"),
    )
}


UNDO = "\tundo"
"""The end of a line that retracts an equal line."""


def left_of(lines: Iterable[str]) -> list[str]:
    """The lines that no other line retracts."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts[line.removesuffix(UNDO)] += -1 if line.endswith(UNDO) else 1
    if below := -counts:
        raise AssertionError(f"{below.total()} rows are undone that are not there, such as {min(below)!r}")
    return list(counts.elements())


def as_line(row: Iterable[object]) -> str:
    r"""A row as a line.

    >>> as_line((1, "Ann"))
    '1\tAnn'
    """
    return "\t".join(map(str, row))
