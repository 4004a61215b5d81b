"""Puts a stream under fire on real Spark, and verifies that nothing is lost or doubled.

    python -m tests.fire.run --minutes 60 --seed 1
    python -m tests.fire.run --minutes 20 --seed 1 --cluster

See ``rounds.py`` for what runs, and ``faults.py`` for what happens to it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.fire.rounds import ROUNDS, fire, table_of


def main() -> None:
    """Runs the rounds, prints what happened, and fails if anything is not there once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cluster", action="store_true", help="run on a standalone cluster of this machine")
    parser.add_argument("--rounds", nargs="+", choices=ROUNDS, default=["files", "kafka", "postgres"])
    parser.add_argument(
        "--faults", nargs="+", default=[""], help="words, of which a fault's description has one"
    )
    parser.add_argument("--results", type=Path, help="a file for all that happened, as JSON")
    given = parser.parse_args()
    names = ["cluster"] if given.cluster else given.rounds
    reports = []
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix="penstock-fire-"))
        print(f"round {name}, seed {given.seed}, in {folder}", flush=True)
        reports.append(fire(name, given.minutes / len(names), given.seed, folder, words=tuple(given.faults)))
        if reports[-1].is_good:
            shutil.rmtree(folder)
    print("\n".join(table_of(reports)))
    if given.results:
        given.results.write_text(f"{json.dumps([asdict(report) for report in reports], indent=1)}\n")
    for verdict in (verdict for report in reports for verdict in report.verdicts if verdict.examples):
        print(f"{verdict.sink}: not once: {', '.join(map(str, verdict.examples))} ...")
    if not all(report.is_good for report in reports):
        raise SystemExit("something is lost, doubled or wrong: the folders of those rounds are still there")


if __name__ == "__main__":
    main()
