"""One contender at work on Nexmark: a process that runs the jobs it reads, and answers when each is done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from answering import CarryOut, answer_orders
from nexmark.jobs import JOBS
from stream_session import start_session


def start(name: str, cores: int) -> CarryOut:
    """A contender with its session; the orders it takes are modes."""
    spark = start_session(cores)

    def carry_out(mode: str, **arguments: Any) -> dict[str, Any]:
        return JOBS[name][mode](spark, **arguments)

    return carry_out


if __name__ == "__main__":
    answer_orders(lambda: start(sys.argv[1], int(sys.argv[2])))
