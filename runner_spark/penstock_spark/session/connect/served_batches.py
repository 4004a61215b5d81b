"""Calls a function of this program with each micro-batch of a query that a server of Spark Connect runs.

The server calls ``foreachBatch`` in a Python process of its own, which has neither this program's memory nor, perhaps,
its packages. So the function there only says in a folder that a micro-batch is ready, and waits. This program finds
that, reads and writes the micro-batch in the server's session for it, and says in the folder that this is done.

===============  =========================================================
``7.ready``      the micro-batch 7 waits: its frame and its session on the server
``7.done``       this program has written it; else the text of the error
``alive``        a number that rises every few seconds while this program runs
``closed``       no micro-batch is written any more
===============  =========================================================
"""

from __future__ import annotations

import copy
import json
import logging
import os
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.client.core import ChannelBuilder

from penstock.utils import clock
from penstock_spark.session.connect.opening import Patience
from penstock_spark.session.connect.server_life import client_of, end_without_retries
from penstock_spark.session.micro_batches import tag_of_micro_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_LOOK_SECONDS = 0.005
"""The time between two looks into the folder, of the server and of this program."""

_BEAT_SECONDS = 2.0
_SILENCE_SECONDS = 120.0
"""The time without a sign of this program after which the server ends the query."""

_GRACE_SECONDS = 1.0
"""The time in which Spark's own stop may end the server's function."""

_TRIES = 3
_TOO_LATE = "Python worker failed to connect back"
"""The words of Spark for a Python that has not started in time; then the query has not started."""

_LOGGER = logging.getLogger(__name__)


def make_announcer(folder: str) -> Callable[[DataFrame, int], None]:
    """Returns the function that the server calls with a micro-batch.

    It travels with its code, so it uses nothing of this module.
    """
    look_seconds, silence_seconds = _LOOK_SECONDS, _SILENCE_SECONDS

    def announce(frame: DataFrame, number: int) -> None:
        import json
        import os
        import threading

        def read(name: str) -> str:
            try:
                with open(os.path.join(folder, name)) as file:
                    return file.read()
            except FileNotFoundError:
                return ""

        ready, done = (os.path.join(folder, f"{number}.{kind}") for kind in ("ready", "done"))
        session, plan = vars(frame)["_session"], vars(frame)["_plan"]
        told = {"frame": plan._relation_id, "session": session.session_id}
        with open(f"{ready}.new", "w") as file:
            json.dump(told, file)
        os.replace(f"{ready}.new", ready)
        alive, silent_looks, pause = read("alive"), 0, threading.Event()
        while not os.path.exists(done):
            if os.path.exists(os.path.join(folder, "closed")) or not os.path.isdir(folder):
                raise RuntimeError("java.lang.InterruptedException: the run was stopped")
            pause.wait(look_seconds)
            silent_looks += 1
            if silent_looks % 20 == 0:
                if (now := read("alive")) != alive:
                    alive, silent_looks = now, 0
                elif silent_looks * look_seconds > silence_seconds:
                    raise RuntimeError(
                        f"the program that runs the stream is silent for {silence_seconds:g} s"
                    )
        error = read(f"{number}.done")
        for path in (ready, done):
            os.remove(path)
        if error:
            raise RuntimeError(error)

    return announce


class ServedQuery:
    """A query whose micro-batches this program writes; all else is the query's own.

    Args:
        spark: The session that starts the query.
        writer: What starts it.
        function: Called with each micro-batch and its number.
        folder: A folder that this program and the server share, for this run alone.
        archives: The paths of the archives from which the tasks of a micro-batch import.
    """

    def __init__(
        self,
        spark: SparkSession,
        writer: DataStreamWriter,
        function: Callable[[DataFrame, int], None],
        folder: Path,
        archives: tuple[str, ...] = (),
    ) -> None:
        self._spark = spark
        self._function = function
        self._archives = archives
        self._folder = folder
        self._sessions: dict[str, SparkSession] = {}
        self._closing, self._stopped = threading.Event(), threading.Event()
        self._at_work: tuple[SparkSession, str] | None = None
        folder.mkdir(parents=True)
        self._beat(0)
        self._query = self._started(writer.foreachBatch(make_announcer(str(folder))))
        self._threads = [
            threading.Thread(target=target, name=f"penstock {target.__name__}", daemon=True)
            for target in (self._serve, self._live)
        ]
        for thread in self._threads:
            thread.start()

    def _started(self, writer: DataStreamWriter) -> StreamingQuery:
        tries = _TRIES
        while True:
            tries -= 1
            try:
                return writer.start()
            except Exception as error:
                # Spark waits ten seconds for a new Python, and a machine at work may need longer.
                if not tries or _TOO_LATE not in str(error):
                    self._tidy_up()
                    raise

    def __getattr__(self, name: str) -> object:
        found: object = getattr(self._query, name)
        return found

    def stop(self) -> None:
        """Stops the query; a micro-batch that is being written is cut off."""
        self._closing.set()
        stopping = threading.Thread(target=self._close_late, name="penstock close", daemon=True)
        stopping.start()
        try:
            self._query.stop()
        finally:
            self._stopped.set()
            stopping.join()
            for thread in self._threads:
                while thread.is_alive():
                    self._interrupt()
                    thread.join(_BEAT_SECONDS)
            self._tidy_up()

    def _close_late(self) -> None:
        """Ends the server's function that waits; first Spark gets the time to end it, which is not an error."""
        self._stopped.wait(_GRACE_SECONDS)
        with suppress(FileNotFoundError):
            (self._folder / "closed").touch()

    def _interrupt(self) -> None:
        """Cancels the jobs of the micro-batch that is being written: they are not the query's own."""
        if (at_work := self._at_work) is not None:
            session, tag = at_work
            with suppress(Exception):
                session.interruptTag(tag)

    def _serve(self) -> None:
        done: set[str] = set()
        while not self._closing.wait(_LOOK_SECONDS):
            for name in self._names():
                if name.endswith(".ready") and name not in done:
                    done.add(name)
                    number = int(name.removesuffix(".ready"))
                    self._answer(number, self._written(number))

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except OSError:
            return []

    def _written(self, number: int) -> str:
        """Writes a micro-batch; returns the text of the error, if any."""
        tag = tag_of_micro_batch(number)
        try:
            told = json.loads((self._folder / f"{number}.ready").read_text())
            session = self._session(told["session"])
            frame: DataFrame = session._create_remote_dataframe(told["frame"])  # type: ignore[attr-defined]
            session.addTag(tag)
            self._at_work = session, tag
            try:
                self._function(frame, number)
            finally:
                self._at_work = None
                session.removeTag(tag)
        except Exception as error:
            return "".join(traceback.format_exception(error))
        return ""

    def _answer(self, number: int, text: str) -> None:
        new = self._folder / f"{number}.done.new"
        with suppress(FileNotFoundError):
            new.write_text(text)
            new.replace(self._folder / f"{number}.done")

    def _live(self) -> None:
        beats = 0
        while not self._closing.wait(_BEAT_SECONDS):
            beats += 1
            with suppress(OSError):
                self._beat(beats)

    def _beat(self, number: int) -> None:
        new = self._folder / "alive.new"
        new.write_text(str(number))
        new.replace(self._folder / "alive")

    def _session(self, number: str) -> SparkSession:
        """Returns a session of the server that is there already: micro-batches belong to a clone of this one."""
        if number == self._spark.session_id:  # type: ignore[attr-defined]
            return self._spark
        if number not in self._sessions:
            session = attach(self._spark, number)
            # A clone for micro-batches does not have what was sent to its session.
            for path in self._archives:
                session.addArtifacts(path, pyfile=True)
            self._sessions[number] = session
        return self._sessions[number]

    def _tidy_up(self) -> None:
        for session in self._sessions.values():
            with suppress(Exception):
                cast("Any", session)._client.close()
        for _ in range(100):
            try:
                for name in os.listdir(self._folder):
                    (self._folder / name).unlink(missing_ok=True)
                self._folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError as error:
                # The server may just be writing to it.
                _LOGGER.debug("cannot remove %s: %s", self._folder, error)
                clock.sleep(_LOOK_SECONDS)


def attach(spark: SparkSession, number: str) -> SparkSession:
    """Returns a session that exists on the server of another one, by its number."""
    client = cast("Any", spark)._client
    builder = copy.deepcopy(client._builder)
    builder.set(ChannelBuilder.PARAM_SESSION_ID, number)
    attached = object.__new__(type(spark))
    own = cast("Any", attached)
    own._client = SparkConnectClient(connection=builder, user_id=client._user_id)
    own._session_id = own._client._session_id
    # The query ends it.
    own.release_session_on_close = False
    client_of(attached).set_retry_policies([Patience()])
    end_without_retries()
    return attached
