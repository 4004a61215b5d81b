"""Measures a stateful step with a value and a timer for each of 100,000 users, beside processors written by hand.

Run it with ``python benchmarks/stream_stateful.py``; it takes some minutes, and most of them the processor by hand. The
one over data frames is slower still, and only runs if it is among ``--contenders``.

A user's total grows with each event, which sets the timer again; when nothing has come for ten minutes of event time,
the total is given, and the user forgotten. Contenders take turns as in ``stream_replay.py``. What a user has been given
all together is compared with what plain Python finds; how many times it was given depends on when the watermark moves.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from keyed_inputs import each_user_once, user_files
from keyed_state import compare_keyed
from options import parsed_settings
from stream_comparison import Work, add_turns

CONTENDERS = ("rows", "frames", "penstock")


def main(given: Sequence[str] | None = None) -> None:
    """Runs everything, prints the tables and writes the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=5, help="how many files, each a micro-batch")
    add_turns(parser, runs=2)
    settings = parsed_settings(parser, given, CONTENDERS, "stream_stateful.json", unasked=("frames",))
    work = Work(
        title=f"totals of {settings.users:,} users, each with a timer",
        contenders=CONTENDERS,
        job="stateful",
        arguments={"files_per_batch": 1},
        events=settings.events,
        source=user_files(settings.folder, settings.events, settings.users, settings.files),
        untimed="expired",
    )
    compare_keyed(settings, work, each_user_once(settings.folder, settings.users), settings.users)


if __name__ == "__main__":
    main()
