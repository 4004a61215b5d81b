"""The Spark session that every contender on streams has: penstock's, set up by one who knows Structured Streaming."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent
_STREAMING = "org.apache.spark.sql.execution.streaming"


SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    # Writes what has changed with every micro-batch, rather than whole files of the store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # The default one starts programs of the system for each file.
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
"""The properties of every session."""


def share_modules() -> None:
    """Lets the processes of Spark find the modules of this folder by their names."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_HERE), os.environ.get("PYTHONPATH"))))


def start_session(cores: int) -> SparkSession:
    """Starts Spark on this machine, with a partition and a state store for each core."""
    from penstock_spark.session.session import SessionOptions, session_for

    share_modules()
    spark = session_for(SessionOptions(master=f"local[{cores}]", conf=SETTINGS))
    spark.sparkContext.setLogLevel("ERROR")
    return spark
