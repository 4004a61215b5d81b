"""Reads what Spark's master URLs say."""

from __future__ import annotations

import os
import re


def is_local(master: str) -> bool:
    """True if the driver's own process runs the tasks.

    >>> is_local("local[2]"), is_local("local"), is_local("local-cluster[2,1,1024]"), is_local("yarn")
    (True, True, False, False)
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def local_cores(master: str) -> int:
    """Returns the number of tasks that a local master runs at once.

    >>> local_cores("local"), local_cores("local[3]"), local_cores("local[4,2]"), local_cores("local[*]") >= 1
    (1, 3, 4, True)
    """
    match = re.fullmatch(r"local\[\s*(\*|\d+)\s*(,.*)?\]", master)
    if match is None:
        return 1
    if match[1] != "*":
        return int(match[1])
    # The cores that this process may use, if the system says: a container often has fewer than its machine.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
