"""Which step sends something that a worker cannot read, although the driver could write it."""

from __future__ import annotations

import pickle
import traceback

from penstock.graph import Graph
from penstock_spark.worker.batch import dumps_with_code


def unreadable_step(graph: Graph | None, said: str) -> str | None:
    """Returns the place of the first step that cannot be read again, for the same reason as in the worker.

    A worker reads a whole stage, so it does not know the step. Each step is written and read here, one by one, which
    is only worth its time once a worker has failed.

    Args:
        graph: The pipeline, if it is known.
        said: The last line of the worker's traceback.
    """
    for step in graph.steps if graph else ():
        try:
            pickle.loads(dumps_with_code(step.primitive))
        except Exception as error:
            if traceback.format_exception_only(error)[0].strip() == said.strip():
                return step.where
    return None
