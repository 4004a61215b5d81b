"""A contender's side of the conversation: it reads orders from its input, and answers each when it is done."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

CarryOut = Callable[..., Any]
"""A function that does a job, by its name and arguments that JSON takes, and returns a result that JSON takes."""


def answer_orders(start: Callable[[], CarryOut]) -> None:
    """Starts a contender, reports that it is ready, and answers each order: the name of a job and its arguments."""
    # Other output of a job goes to the log.
    answers, sys.stdout = sys.stdout, sys.stderr
    carry_out = start()
    print("ready", file=answers, flush=True)
    for order in sys.stdin:
        job, arguments = json.loads(order)
        print(json.dumps(carry_out(job, **arguments)), file=answers, flush=True)
