"""The number of a micro-batch, which its tasks know.

Jobs of the thread that runs the query have it as a property. A server of Spark Connect runs the jobs of a
program in other threads, so that the number travels as a tag of the job.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import TaskContext

_NUMBER = "streaming.sql.batchId"
_TAGS = "spark.job.tags"
_TAG = "penstock-micro-batch-"


def tag_of_micro_batch(number: int) -> str:
    """Returns the tag for the jobs of a micro-batch.

    >>> tag_of_micro_batch(7)
    'penstock-micro-batch-7'
    """
    return f"{_TAG}{number}"


def number_of_micro_batch(task: TaskContext) -> int:
    """Returns the number of the micro-batch that a task belongs to."""
    number = task.getLocalProperty(_NUMBER)
    if number is None:
        # Spark puts its names of the user and the session before a tag.
        found = re.search(rf"{_TAG}(\d+)(?=,|$)", task.getLocalProperty(_TAGS) or "")
        assert found is not None, "only tasks of micro-batches ask for it"
        number = found[1]
    return int(number)
