"""The compiler from a penstock graph to Spark jobs, and the runtime inside Spark's Python workers.

Pipelines need no name of this package: they name a runner, or none. What is about Spark itself is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock_spark.session.spark_versions import check_package

check_package()

if TYPE_CHECKING:
    from penstock_spark.checkpoints.state_table import read_state, state_rows

__all__ = ["read_state", "state_rows"]


def __getattr__(name: str) -> Any:
    # Workers import this package before anything else, and have no use for these.
    if name in __all__:
        from penstock_spark.checkpoints import state_table

        return getattr(state_table, name)
    raise AttributeError(f"module 'penstock_spark' has no attribute {name!r}")
