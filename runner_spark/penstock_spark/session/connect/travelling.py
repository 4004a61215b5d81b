"""Functions and operators of tasks that travel with their code, and find the archives of their session.

Spark plans the micro-batches of a stream without the session that they belong to. Their workers look for archives in
the folder of all sessions, but Spark brings the archives of a session to its own folder, one level below. And before
the first micro-batch, Spark asks an operator for its state in a Python that has no archive at all. So what is called
first needs nothing of this package.

A session that shares its files with all others gets no archive, since that would stay in the list of all others when
the session has ended, and no task of the server would start any more. There, functions carry the archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock_spark.session.backend import Function, MapOfState

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.stateful_processor import TimerValues

T = TypeVar("T")

_sent: dict[str, str] = {}
_carried: dict[str, bytes] = {}


def carry_archive(path: str) -> None:
    """Lets all functions that travel from now on carry an archive."""
    _carried[path.rpartition("/")[2]] = Path(path).read_bytes()


def note_archive(path: str) -> None:
    """Notes an archive that this program has sent to a session."""
    _sent[path.rpartition("/")[2]] = path


def sent_archives() -> tuple[str, ...]:
    """Returns the paths of the archives that this program has sent to any session."""
    return tuple(_sent.values())


def travelling_function(function: Function) -> Function:
    """Returns a function of tasks that travels with its code."""
    read = _reader(function)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read()(batches)

    return run


def travelling_operator(processor: StatefulProcessor, state: MapOfState) -> StatefulProcessor:
    """Returns a stateful operator that travels with its code.

    A Python that has no archive, and not this package, can read it and ask for its state.
    """
    read = _reader(processor)
    name, keys, values = state

    class Travelling(StatefulProcessor):
        """The operator, once it is read."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            self._own: StatefulProcessor | None = None
            try:
                self._own = read()
            except ModuleNotFoundError as error:
                self._missing = error
                handle.getMapState(name, keys, values)
            else:
                self._own.init(handle)

        def handleInputRows(
            self, key: tuple[int, ...], rows: Iterator[Any], timerValues: TimerValues
        ) -> Iterator[Any]:
            if self._own is None:
                raise self._missing
            return self._own.handleInputRows(key, rows, timerValues)

        def close(self) -> None:
            if self._own is not None:
                self._own.close()

    return Travelling()


def _reader(value: T) -> Callable[[], T]:
    """Returns a function that returns the value in a task; it uses nothing of this module."""
    pickled: bytes = CloudPickleSerializer().dumps(value)  # type: ignore[no-untyped-call]
    archives = {**dict.fromkeys(_sent), **_carried}

    def read() -> T:
        import contextlib
        import glob
        import os
        import pickle
        import shutil
        import sys
        import tempfile

        from pyspark import SparkFiles

        folder = ""
        with contextlib.suppress(Exception):
            folder = SparkFiles.getRootDirectory()
        if not folder and any(archives.values()):
            folder = tempfile.mkdtemp(prefix="penstock-")
        for name, content in archives.items() if folder else ():
            path = os.path.join(folder, name)
            own = [] if os.path.exists(path) else glob.glob(os.path.join(glob.escape(folder), "*", name))
            # A session's folder may go before this process does. The name says what is in the archive.
            for found in own[:1]:
                with contextlib.suppress(OSError):
                    shutil.copyfile(found, f"{path}.{os.getpid()}")
                    os.replace(f"{path}.{os.getpid()}", path)
            if content is not None and not os.path.exists(path):
                with open(f"{path}.{os.getpid()}", "wb") as file:
                    file.write(content)
                os.replace(f"{path}.{os.getpid()}", path)
            if os.path.exists(path):
                if path not in sys.path:
                    sys.path.insert(0, path)
                # Python remembers a path at which there was nothing.
                sys.path_importer_cache.pop(path, None)
        made: T = pickle.loads(pickled)
        return made

    return read
