"""The Spark session that every contender on streams has, set up as somebody would who knows Structured Streaming."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent
_STREAMING = "org.apache.spark.sql.execution.streaming"


def start_session(cores: int) -> SparkSession:
    """Starts Spark on this machine, with a partition and a state store for each core."""
    from pyspark.sql import SparkSession

    from penstock_spark.java import ensure_java

    os.environ["JAVA_HOME"] = ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Spark's processes have to find the processors by the names of their modules.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_HERE), os.environ.get("PYTHONPATH"))))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        # The default of 200 partitions is 200 state stores to commit with every micro-batch.
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
        # Writes what has changed with every micro-batch, rather than whole files of the store.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # The default one starts programs of the system for each file.
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
