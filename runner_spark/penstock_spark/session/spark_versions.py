"""The versions of Spark that pipelines run on, and the differences between them.

Workers import this with the package, so it imports nothing that takes long.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

OLDEST = (4, 0)
NEWEST = (4, 3)
_CLONES = (4, 1)
"""The first version whose servers clone a session."""

_INSTALL = f"run pip install 'pyspark>={OLDEST[0]}.{OLDEST[1]},<{NEWEST[0]}.{NEWEST[1] + 1}'"
_INSTALL_ONE = (
    "run pip install 'penstock[java]' for Spark and a Java, or 'penstock[spark]' with your own Java, or "
    "'penstock[client]' if a server of Spark Connect runs your pipelines"
)


def version_of(text: str) -> tuple[int, int]:
    """Returns the major and the minor number of a version.

    >>> version_of("4.1.4"), version_of("4.0.0+databricks.16"), version_of("4.4.0.dev1")
    ((4, 1), (4, 0), (4, 4))
    """
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def check_version(text: str, whose: str) -> None:
    """Refuses a Spark that is older or newer than the versions that penstock is tested with."""
    if OLDEST <= version_of(text) <= NEWEST:
        return
    from penstock.error import UnsupportedByRunner

    oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
    raise UnsupportedByRunner(
        f"penstock runs on Spark {oldest} to {newest}, but this is Spark {text}",
        where=f"in {whose}",
        hint=_INSTALL if "pyspark" in whose else f"use a cluster with one of these versions, and {_INSTALL}",
    )


def check_clones(server: str, client: str) -> None:
    """Refuses a server or a client of Spark Connect that cannot clone a session: those before Spark 4.1."""
    for version, whose in ((server, "the Spark Connect server"), (client, "the installed PySpark")):
        if version_of(version) < _CLONES:
            from penstock.error import UnsupportedByRunner

            needed = ".".join(map(str, _CLONES))
            raise UnsupportedByRunner(
                f"with Spark Connect, penstock needs Spark {needed} or newer on both sides, but {whose} is {version}",
                where="in the Spark Connect session that the pipeline would run in",
                hint=f"use a server and a PySpark of Spark {needed} or newer, or run without Spark Connect",
            )


def check_package() -> None:
    """Refuses a PySpark that pipelines do not run on, before anything imports a part that it may lack."""
    try:
        import pyspark
    except ImportError as error:
        from penstock.error import UnsupportedByRunner

        raise UnsupportedByRunner(
            "penstock needs PySpark, which is not installed", where="in this Python", hint=_INSTALL_ONE
        ) from error
    check_version(pyspark.__version__, "the installed package pyspark")


def describe_package() -> str:
    """Returns the version of the installed PySpark, and its kind; the errors are those of `check_package`."""
    check_package()
    import pyspark

    kind = ", which needs a server of Spark Connect" if is_client_only() else ""
    return f"pyspark {pyspark.__version__}{kind}"


def is_client_only() -> bool:
    """True if the installed PySpark can only talk to servers of Spark Connect, as the package pyspark-client can."""
    from pyspark.util import is_remote_only

    return is_remote_only()


def unpacks_zstandard() -> bool:
    """True if Spark reads Zstandard on its own: Spark 4.0 needs Hadoop libraries that are mostly missing."""
    return _read_installed() > (4, 0)


def newest_java() -> int | None:
    """Returns the newest version of Java that the installed Spark runs on; None if no Java is known to be too new.

    Before Spark 4.2, Hadoop asks Java for the user in a way that Java 23 refuses.
    """
    return 22 if _read_installed() < (4, 2) else None


def checkpoint_file_manager() -> str:
    """Returns the Java class that writes the files of a checkpoint to a local disk."""
    package = "" if _read_installed() == (4, 0) else "checkpointing."
    return f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"


def _read_installed() -> tuple[int, int]:
    import pyspark

    return version_of(pyspark.__version__)


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """Returns a Spark schema as an Arrow schema, with timestamps in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema as convert

    # Since 4.2, the caller names the zone of timestamps; before, it is UTC unless that was switched off.
    if "timezone" in inspect.signature(convert).parameters:
        return convert(schema, timezone="UTC")
    return convert(schema)


def from_arrow_schema(schema: StructType) -> StructType:
    """Returns an Arrow schema as a Spark schema, in which timestamps without a zone have none."""
    from pyspark.sql.pandas.types import from_arrow_schema as convert

    # Before 4.2, they would be in the session's zone without this argument.
    return convert(schema, prefer_timestamp_ntz=True)


def repartition_by_number(frame: DataFrame, count: int, number: Column) -> DataFrame:
    """Puts each row into the partition that its column `number` names, from 0."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, number)
    # Spark 4.0 only partitions by a hash, so each row gets a number whose hash is right.
    from pyspark.sql import functions as F

    from penstock_spark.session.shard_keys import shard_keys

    return frame.repartition(count, F.get(F.array(*map(F.lit, shard_keys(count))), number % count))


def transform_with_state(grouped: Any, processor: Any, schema: str) -> Any:
    """Returns a stateful operator without timers, over a frame that is grouped by its key."""
    if hasattr(grouped, "transformWithState"):
        return grouped.transformWithState(processor, schema, "Append", "None")
    names = [column.split()[0] for column in schema.split(",")]
    return grouped.transformWithStateInPandas(InPandas(processor, names), schema, "Append", "None")


class InPandas:
    """Adapts a processor of rows to pandas frames, the only kind that Spark 4.0 has."""

    def __init__(self, processor: Any, names: list[str]) -> None:
        self._processor = processor
        self._names = names

    def init(self, handle: object) -> None:
        self._processor.init(handle)

    def handleInputRows(
        self, key: Iterable[int], frames: Iterator[Any], timerValues: object
    ) -> Iterator[Any]:
        import pandas as pd

        rows = (row for frame in frames for row in frame.itertuples(index=False, name=None))
        made = list(self._processor.handleInputRows(tuple(map(int, key)), rows, timerValues))
        if made:
            yield pd.DataFrame(dict(zip(self._names, zip(*made, strict=True), strict=True)))

    def handleExpiredTimer(self, key: object, timerValues: object, expiredTimerInfo: object) -> Iterator[Any]:
        return iter(())

    def close(self) -> None:
        self._processor.close()
