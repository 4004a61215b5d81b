"""Runs programs of a simulated Spark, one seed after the other, and shows the smallest one that fails.

Some ways to call it::

    python tests/simulation/soak.py --programs 10000
    python tests/simulation/soak.py --until-stopped --first 1000000
    python tests/simulation/soak.py --seed 4711
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from shrinking import failure_of, shrunk


def main() -> int:
    """Returns 1 if a program has failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--programs", type=int, default=10_000, help="how many programs")
    which.add_argument("--until-stopped", action="store_true", help="until somebody presses Ctrl-C")
    which.add_argument("--seed", type=int, help="only this one")
    options = parser.parse_args()
    seeds: Iterable[int] = range(options.first, options.first + options.programs)
    if options.seed is not None:
        seeds = [options.seed]
    elif options.until_stopped:
        seeds = itertools.count(options.first)
    done, failed, began = 0, 0, time.process_time()
    try:
        for seed in seeds:
            failure = failure_of(seed)
            done += 1
            if failure is not None:
                failed += 1
                print(f"the program of the seed {seed} fails\n{shrunk(failure)}\n", flush=True)
    except KeyboardInterrupt:
        pass
    seconds = time.process_time() - began
    print(f"{done:,} programs, {failed} failed, {done / max(seconds, 1e-9):.1f} programs a processor second")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
