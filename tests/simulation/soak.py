"""Runs programs of a simulated Spark, one seed after the other, and shows the smallest one that fails.

What a run does with files decides what a seed means. So a change of that needs other seeds for some of the breaks.

Some ways to call it::

    python -m tests.simulation.soak --programs 10000
    python -m tests.simulation.soak --until-stopped --first 1000000
    python -m tests.simulation.soak --seed 4711
    python -m tests.simulation.soak --breaks --programs 2000
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterable

from tests.simulation.mutants_of_streams import MUTANTS, Mutant
from tests.simulation.shrinking import failure_of, shrunk


def main() -> int:
    """Returns 1 if a program has failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--programs", type=int, default=10_000, help="how many programs")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--until-stopped", action="store_true", help="until you press Ctrl-C")
    which.add_argument("--seed", type=int, help="only this one")
    which.add_argument("--breaks", action="store_true", help="find seeds for breaks that theirs find no more")
    options = parser.parse_args()
    seeds: Iterable[int] = range(options.first, options.first + options.programs)
    if options.breaks:
        return _find_breaks(seeds)
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


def _find_breaks(seeds: Iterable[int]) -> int:
    """Shows the first seed for each break that is found no more; returns 1 if there is none for some."""
    is_any_lost = False
    for mutant in MUTANTS:
        if not _finds(mutant, mutant.seed):
            seed = next((seed for seed in seeds if _finds(mutant, seed)), None)
            is_any_lost = is_any_lost or seed is None
            print(f"{mutant.name}: {seed}, and not {mutant.seed}", flush=True)
    return int(is_any_lost)


def _finds(mutant: Mutant, seed: int) -> bool:
    """True if the program of a seed fails with a break, and not without it."""
    program = mutant.make(seed)
    with mutant.applied():
        if failure_of(seed, program) is None:
            return False
    return failure_of(seed, program) is None


if __name__ == "__main__":
    sys.exit(main())
