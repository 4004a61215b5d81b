"""The interface of a Spark session for the runner; nothing else of it knows whether a session is classic or Connect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from py4j.java_gateway import JavaObject, JavaPackage
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType

Told = dict[tuple[str, int, Hashable], Any]
"""The reports of tasks, by run, stage and partition; in a stream, the partition is (micro-batch, producer)."""

MapOfState = tuple[str, "StructType", "StructType"]
"""A state of Spark that is a map: its name, and the types of its keys and values."""

Function = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
"""A function for Spark's ``mapInArrow``."""

TIME_ZONE = "spark.sql.session.timeZone"
"""The property of a session with the time zone of its expressions."""


class ReportSink(Protocol):
    """Takes the reports of a task to the driver; it travels to the task."""

    def add(self, term: Told) -> None:
        """Reports values by their keys; if a key is reported again, its later value counts."""


class TaskReports(ABC):
    """The way of reports from the tasks of runs to the driver.

    A task that Spark repeats reports the same keys again, so that its report counts once.
    """

    @property
    @abstractmethod
    def value(self) -> Told:
        """The reports that have come and were not taken out; the driver may add to them and take from them."""

    @abstractmethod
    def map_in_arrow(
        self, frame: DataFrame, make: Callable[[ReportSink], Function], schema: StructType | str
    ) -> DataFrame:
        """Returns the frame of a function of tasks that report; `make` receives the sink for their reports."""

    @abstractmethod
    def transform_with_state(
        self,
        frame: DataFrame,
        make: Callable[[ReportSink], StatefulProcessor],
        schema: str,
        state: MapOfState,
    ) -> DataFrame:
        """Returns the rows of a stateful operator, whose keys are shards, over the rows of a stream.

        Args:
            frame: The rows, with the columns of `schema`.
            make: Makes the operator; it receives the sink for its reports.
            schema: The columns ``level``, ``shard`` and ``payload`` of the result.
            state: The only state of the operator, a map: its name, and the types of its keys and values.
        """

    @abstractmethod
    def see(self, progress: Mapping[str, Any]) -> None:
        """Takes the reports that come with Spark's report of a micro-batch."""


class Pages(Protocol):
    """The pages of a side input, as they travel to tasks."""

    @property
    def value(self) -> list[bytes]:
        """The pages, in a list that belongs to the task's process."""


@dataclass(frozen=True)
class JobNow:
    """The state of a job of Spark."""

    number: int
    status: str
    stages: tuple[int, ...]


@dataclass(frozen=True)
class JobProgress:
    """The answers of Spark about the jobs of a batch.

    Attributes:
        jobs: Returns the jobs that have begun.
        stage: Returns the tasks, done tasks, rows and written rows of a stage that has begun; None for others.
    """

    jobs: Callable[[], Iterable[JobNow]]
    stage: Callable[[int], tuple[int, int, int, int] | None]


@dataclass(frozen=True)
class TaskActivity:
    """The work of Spark in a micro-batch: as long as two looks find the same, it makes no progress.

    Attributes:
        status: Spark's own words.
        stages: For each stage at work its number, its attempt, its tasks, its finished tasks, and the rows that have
            gone through its tasks.
    """

    status: str
    stages: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Backend(ABC):
    """A Spark session, and all that the runner does with it beside public methods that both kinds of session have.

    Attributes:
        spark: The session.
        look_seconds: The time between two looks at a query that runs.
    """

    spark: SparkSession
    look_seconds = 0.05

    # The session itself.

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of the session's Spark."""

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """True if this program's own Java runs the tasks."""

    @property
    @abstractmethod
    def shares_disk(self) -> bool:
        """True if the tasks certainly see the disks of this machine."""

    @property
    @abstractmethod
    def app_name(self) -> str:
        """The name of the program in Spark's user interface."""

    @property
    @abstractmethod
    def page(self) -> str:
        """The address of the page that Spark itself has; empty if there is none, or if that is not known."""

    @abstractmethod
    def parallelism(self) -> int:
        """Returns the number of tasks that run at the same time."""

    @abstractmethod
    def clone(self, conf: Mapping[str, str], is_fresh: bool = True) -> SparkSession:
        """Returns a clone of the session, with settings of its own.

        The clone has the settings that the session has now; if it is fresh, it also has its temporary views, functions
        and frames. The session does not see the clone's.
        """

    @abstractmethod
    def set(self, name: str, value: str) -> None:
        """Sets a property of the session; a server may refuse one, which changes no result."""

    @abstractmethod
    def hand_settings(self, settings: Mapping[str, str]) -> None:
        """Gives later tasks environment variables, which Spark shows nowhere."""

    # Frames.

    @abstractmethod
    def moved(self, frame: DataFrame) -> DataFrame:
        """Returns a frame of another session of the same Spark as a frame of this one, which runs by its settings."""

    @abstractmethod
    def empty_frame(self, schema: StructType) -> DataFrame:
        """Returns a frame without rows; the active session of the program stays."""

    @abstractmethod
    def frame_of_rows(self, rows: pa.Table, schema: StructType) -> DataFrame:
        """Returns a few rows as a frame."""

    @abstractmethod
    def select(self, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
        """Returns some columns of a frame."""

    @abstractmethod
    def repartition(self, frame: DataFrame, count: int, names: tuple[str, ...]) -> DataFrame:
        """Returns the rows in `count` partitions by the hash of some columns."""

    @abstractmethod
    def sort(self, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
        """Returns the rows of each partition in the order of some columns."""

    @abstractmethod
    def session_of_queries(self, settings: Mapping[str, str], where: str) -> SparkSession:
        """Returns a session for queries, which has some settings and no views.

        Raises:
            UnsupportedByRunner: if there is none; `where` is the step.
        """

    @abstractmethod
    def bind_in_utc(self, make: Callable[[], DataFrame]) -> DataFrame:
        """Returns the frame that `make` returns, whose expressions do not ask for the time zone of the session.

        Raises:
            UnsupportedByRunner: if they would.
        """

    @abstractmethod
    def frame_of_query(self, text: str, tables: Mapping[str, DataFrame]) -> DataFrame:
        """Returns the frame of a query over frames that have names; raises Spark's error if it has no meaning."""

    @abstractmethod
    def check_query(self, text: str) -> None:
        """Raises Spark's error if a text is not a query: Spark would carry out a command at once."""

    @abstractmethod
    def analysed_plan(self, frame: DataFrame) -> str:
        """Returns Spark's analysed plan of a frame, as text."""

    @abstractmethod
    def order_of(self, frame: DataFrame) -> tuple[tuple[str, bool, bool], ...]:
        """Returns the columns by which a query orders its rows, each with whether it descends, and nulls come first."""

    # Tasks.

    @abstractmethod
    def check_workers(self) -> None:
        """Checks, once for each Spark, that its workers can run what this program sends them."""

    @abstractmethod
    def check_workers_see(self, file: str, folder: str) -> None:
        """Refuses a checkpoint on a disk that a worker does not share; `file` is a file in it, with its scheme."""

    @abstractmethod
    def workers_python(self) -> AbstractContextManager[None]:
        """Within the block, functions that are made for Spark's workers run in the Python that the check chose."""

    @abstractmethod
    def has_shipped(self, name: str) -> bool:
        """True if `ship_archive` has sent an archive of this name."""

    @abstractmethod
    def ship_archive(self, path: str) -> None:
        """Lets all later tasks import what is in an archive."""

    @abstractmethod
    def ship_pages(self, name: str, pages: list[bytes]) -> tuple[Pages, Callable[[], None]]:
        """Sends the pages of a side input to the workers; returns their form in tasks, and what frees them."""

    @abstractmethod
    def reports(self) -> TaskReports:
        """Returns what takes the reports of the tasks of a run."""

    # Jobs and queries.

    @abstractmethod
    def described(self, text: str) -> AbstractContextManager[None]:
        """Within the block, Spark's user interface describes every job with `text`."""

    @abstractmethod
    def tagged(self, tag: str) -> AbstractContextManager[None]:
        """Within the block, all jobs that this thread starts have a tag."""

    @abstractmethod
    def cancel(self, tag: str) -> None:
        """Cancels the jobs with a tag, and waits a little for their end."""

    @abstractmethod
    def progress(self, tag: str) -> JobProgress:
        """Returns what Spark reports about the jobs with a tag."""

    @abstractmethod
    def watch_for_waiting(self) -> AbstractContextManager[None]:
        """Within the block, warns if the program's tasks wait for a core, and ends a wait that would have no end."""

    @abstractmethod
    def start(
        self, writer: DataStreamWriter, function: Callable[[DataFrame, int], None] | None, folder: str
    ) -> StreamingQuery:
        """Starts a query.

        Args:
            writer: What starts it.
            function: Called in this program with each micro-batch and its number; None if no one takes the rows.
            folder: A folder of the checkpoint that may be made for this run, and which goes with its end.
        """

    @abstractmethod
    def last_report(self, query: StreamingQuery) -> tuple[int, str] | None:
        """Returns the number of the micro-batch and the time of the last report of a query, if any."""

    @abstractmethod
    def activity(self, query: StreamingQuery) -> TaskActivity | None:
        """Returns what Spark does for a query; None while it is idle, and if Spark does not say."""

    @abstractmethod
    def longest_task(self, activity: TaskActivity) -> str | None:
        """Returns the words for the task that has been at work for the longest time; None without one."""

    @abstractmethod
    def leaves_of_batch(self, frame: DataFrame) -> JavaObject | None:
        """Returns the leaves of the plan of a micro-batch, in Spark's order; None if Spark does not show them."""

    # Files.

    @abstractmethod
    def reaches(self, scheme: str) -> bool:
        """True if Spark itself reads and writes files with this scheme."""

    @abstractmethod
    def hadoop(self) -> Hadoop | None:
        """Returns Hadoop's file systems; None if this program does not reach them."""

    @abstractmethod
    def reads_state_at(self, location: str) -> bool:
        """True if Spark's reader of state finds a checkpoint at a path: it escapes names twice."""

    @abstractmethod
    def process(self) -> int:
        """Returns the number of the process that ends with the run."""


@dataclass(frozen=True)
class Hadoop:
    """Hadoop's file systems, through Java.

    Attributes:
        package: Java's package ``org.apache.hadoop.fs``.
        configuration: Hadoop's configuration.
    """

    package: JavaPackage
    configuration: JavaObject
