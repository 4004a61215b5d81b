"""Measures an inner join of two streams in windows of ten minutes, beside processors by hand and Spark's own join.

Run it with ``python benchmarks/stream_join.py``; it takes some minutes, and most of them the processor by hand. The one
over data frames, and Spark's join after the Python parse, only run if they are among ``--contenders``.

Orders and payments match if they have the same id and are in the same window. Each pair is given as soon as both are
there, by everybody: penstock's is ``JoinRows("inner")``, and Spark's own has watermarks on both sides and the window
among the columns that must be equal. Contenders take turns as in ``stream_replay.py``; all pairs are checked.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from keyed_inputs import each_order_paid, order_files
from keyed_state import compare_keyed
from options import parsed_settings
from stream_comparison import Work, add_turns

CONTENDERS = ("rows", "frames", "native_sql", "native_python", "penstock")
UNASKED = ("frames", "native_python")


def main(given: Sequence[str] | None = None) -> None:
    """Runs everything, prints the tables and writes the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000, help="of both sides together")
    parser.add_argument("--orders", type=int, default=100_000, help="that are kept to measure the state")
    parser.add_argument("--files", type=int, default=5, help="how many files of each side")
    add_turns(parser, runs=2)
    settings = parsed_settings(parser, given, CONTENDERS, "stream_join.json", unasked=UNASKED)
    work = Work(
        title="orders joined with their payments in windows of ten minutes",
        contenders=CONTENDERS,
        job="join",
        arguments={"files_per_batch": 1},
        events=settings.events,
        source=order_files(settings.folder, settings.events, settings.files),
        untimed="pairs",
    )
    compare_keyed(settings, work, each_order_paid(settings.folder, settings.orders), settings.orders)


if __name__ == "__main__":
    main()
