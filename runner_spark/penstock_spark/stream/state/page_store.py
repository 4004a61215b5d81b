"""The pages of one grouping in Spark's state, asked for by the batch.

Spark answers one request for state at a time, over a socket, and to wait for each answer takes longer than to give it.
Therefore many requests are sent before the first answer is read. PySpark has no public way to do so. The first shard of
a process compares an answer of its private way with an answer of the public one; where they differ, or where a part is
missing, pages go one by one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from struct import Struct
from types import ModuleType
from typing import TYPE_CHECKING, Any

from penstock.error import RunnerError, refusal

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

_LOGGER = logging.getLogger(__name__)

_AT_ONCE = 64
# The version of the protocol, and the length of the message.
_PREFIX = Struct("!ii")


class PageStore:
    """The pages of one grouping in Spark's ``MapState`` from (grouping, page's number) to the page."""

    def __init__(self, pages: MapState, label: str) -> None:
        self._pages = pages
        self._label = label
        self._pipeline = pipeline_of(pages)

    def get_many(self, numbers: Sequence[int]) -> list[bytes | None]:
        keys = ((self._label, number) for number in numbers)
        ask = self._pipeline.get_many if self._pipeline else self._one_by_one
        return [None if row is None else bytes(row[0]) for row in ask(keys)]

    def _one_by_one(self, keys: Iterable[Any]) -> Iterator[Any]:
        return map(self._pages.getValue, keys)

    def put_many(self, items: Iterable[tuple[int, bytes | None]]) -> None:
        keyed = (((self._label, number), page) for number, page in items)
        if self._pipeline is not None:
            self._pipeline.put_many(keyed)
            return
        for key, page in keyed:
            if page is None:
                self._pages.removeKey(key)
            else:
                self._pages.updateValue(key, (page,))


class Pipeline:
    """A ``MapState``, with many requests at a time.

    Requests to get and to put never stand in one line together: one side of a line is always short, so that
    neither end waits for the other to read before it continues.
    """

    def __init__(self, messages: ModuleType, name: str, connection: Any) -> None:
        self._state = name
        self._request = messages.StateRequest
        self._variable = messages.StateVariableRequest
        self._call = messages.MapStateCall
        self._get = messages.GetValue
        self._update = messages.UpdateValue
        self._remove = messages.RemoveKey
        self._file = connection.sockfile
        self._answer: Callable[[], tuple[int, str, bytes]] = connection._receive_proto_message
        self._dumps: Callable[[Any], bytes] = connection.pickleSer.dumps
        self._loads: Callable[[bytes], Any] = connection.pickleSer.loads

    def get_many(self, keys: Iterable[Any]) -> Iterator[Any]:
        """Returns the values of keys, as rows; None for missing keys."""
        calls = ({"getValue": self._get(userKey=self._dumps(key))} for key in keys)
        return (self._loads(answer) if answer else None for answer in self._asked(calls))

    def put_many(self, items: Iterable[tuple[Any, bytes | None]]) -> None:
        for _ in self._asked(self._change(self._dumps(key), value) for key, value in items):
            pass

    def _change(self, key: bytes, value: bytes | None) -> dict[str, Any]:
        if value is None:
            return {"removeKey": self._remove(userKey=key)}
        return {"updateValue": self._update(userKey=key, value=self._dumps((value,)))}

    def _asked(self, calls: Iterable[dict[str, Any]]) -> Iterator[bytes]:
        calls = iter(calls)
        while sent := sum(map(self._send, islice(calls, _AT_ONCE))):
            self._file.flush()
            for _ in range(sent):
                status, error, value = self._answer()
                if status:
                    raise refusal(RuntimeError, f"Spark's state answers with an error: {error}")
                yield value

    def _send(self, call: dict[str, Any]) -> int:
        own = self._call(stateName=self._state, **call)
        message = self._request(stateVariableRequest=self._variable(mapStateCall=own)).SerializeToString()
        self._file.write(_PREFIX.pack(0, len(message)))
        self._file.write(message)
        return 1


_is_trusted: bool | None = None
"""True if this PySpark answers many requests at a time as expected; None before the first shard of a process."""


def prove_pipeline(pages: MapState, key: tuple[str, int], stored: object) -> None:
    """Compares, once in a process, an answer to many requests with an answer to a public one.

    Args:
        pages: The state.
        key: The key of a page.
        stored: The row of this key, from ``pages.getValue``.
    """
    global _is_trusted
    if _is_trusted is not None:
        return
    pipeline = pipeline_of(pages)
    try:
        _is_trusted = pipeline is not None and list(pipeline.get_many([key])) == [stored]
    except RunnerError:
        # Spark's state does not answer at all.
        raise
    except Exception as error:
        _LOGGER.debug("a private call of PySpark's state has failed", exc_info=error)
        _is_trusted = False
    if not _is_trusted:
        _LOGGER.warning(
            "the state of this PySpark takes one request at a time, so that groupings with many keys take longer"
        )


def pipeline_of(pages: MapState) -> Pipeline | None:
    """Returns a way to send Spark's state many requests at a time; None if this PySpark is not built as expected."""
    if _is_trusted is False:
        return None
    try:
        import pyspark.sql.streaming.proto.StateMessage_pb2 as messages

        return Pipeline(messages, pages._stateName, pages._mapStateClient._stateful_processor_api_client)
    except (ImportError, AttributeError):
        return None
