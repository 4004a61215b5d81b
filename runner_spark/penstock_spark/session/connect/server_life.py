"""Explains the errors of a Spark Connect server that cannot be reached, refuses a program, or has ended its session."""

from __future__ import annotations

import atexit
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from pyspark.errors import PySparkException

from penstock.error import RunnerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AGAIN = "then run the program again (a stream continues from its checkpoint)"

_BY_STATUS: Mapping[str, tuple[str, str]] = {
    "UNAVAILABLE": (
        "no Spark Connect server answers",
        f"check the address, that the server runs, and the network between; {_AGAIN}",
    ),
    "DEADLINE_EXCEEDED": (
        "the Spark Connect server has not answered in time",
        f"check the server's log and its load, and the network between; {_AGAIN}",
    ),
    "UNAUTHENTICATED": (
        "the Spark Connect server does not know who this program is",
        "give the address a valid token, as in sc://host:443/;token=..., or set SPARK_CONNECT_AUTHENTICATE_TOKEN",
    ),
    "PERMISSION_DENIED": (
        "the Spark Connect server does not permit what the pipeline requests",
        "ask the operator of the server for the permission, or run the pipeline with another server",
    ),
    "RESOURCE_EXHAUSTED": (
        "what the program sends to the Spark Connect server, or gets from it, is larger than one message may be "
        "(128 MB, unless the server has another limit)",
        "read large values from files instead of Create or a side input, or have the server start with a larger "
        "spark.connect.grpc.maxInboundMessageSize",
    ),
    "UNIMPLEMENTED": (
        "the program at this address is not a Spark Connect server, or has a different version of Spark",
        "check the host and the port, which is 15002 for most servers",
    ),
}
"""The meaning of a status of gRPC, and what to do."""


class Client(Protocol):
    """PySpark's client of a session."""

    host: str
    is_closed: bool

    def get_retry_policies(self) -> Sequence[object]:
        """Returns how the client tries again."""

    def set_retry_policies(self, policies: Sequence[object]) -> None:
        """Says how the client tries again."""


_clients: weakref.WeakSet[Client] = weakref.WeakSet()
"""PySpark's clients of the sessions that pipelines have run in."""

_at_loss: list[Callable[[], None]] = []

_CODE = re.compile(r"status = StatusCode\.([A-Z_]+)")

_SESSION_ENDED = re.compile(
    r"(?:<[^\n]*\n[^\n]*\n\s*details = \")?\[?(?:INVALID_HANDLE\.)?"
    r"(?:NO_ACTIVE_SESSION|SESSION_(?:CLOSED|CHANGED|NOT_FOUND|NOT_SAME))\b"
    r"|Cannot invoke RPC"
)


def explain_server_loss(error: BaseException, where: str | None = None) -> RunnerError | None:
    """Returns the error to raise instead of one that a server has caused; None for other errors.

    >>> class RpcError(Exception): __module__ = "grpc"
    >>> print(explain_server_loss(RpcError("status = StatusCode.UNAVAILABLE"), "in the session of host:15002"))
    no Spark Connect server answers
      in the session of host:15002
      hint: check the address, that the server runs, and the network between; then run the program again (a stream
      continues from its checkpoint)
    """
    for each in _with_causes(error):
        if not is_of_connect(each):
            continue
        text = str(each)
        if _SESSION_ENDED.match(_condition(each)) or _SESSION_ENDED.match(text):
            _forget()
            return RunnerError(
                "the session of the Spark Connect server has ended: the server was restarted, or has closed it",
                where=where,
                hint=f"stop the session that the program has made (spark.stop()) and make a new one, {_AGAIN}",
            )
        found = _BY_STATUS.get(_status(each, text))
        if found is not None:
            what, hint = found
            _forget()
            end_without_retries()
            return RunnerError(what, where=where, hint=hint)
    return None


def end_without_retries() -> None:
    """Lets the program end at once although a server has gone: PySpark asks the server of each client at the end.

    Python calls what was registered last first, so this comes after the last client was made.
    """
    atexit.unregister(_end_without_retries)
    atexit.register(_end_without_retries)


def client_of(spark: SparkSession) -> Client:
    """Returns the client of a session, and notes it, so that the program ends at once if its server is lost."""
    client = cast("Client", spark.client)
    _clients.add(client)
    return client


def _end_without_retries() -> None:
    """Keeps PySpark from looking for a lost server for ten minutes when the program ends.

    PySpark's clients say to their servers that they end. What is registered last, as this is, runs first.
    """
    for client in _clients:
        with suppress(Exception):
            client.set_retry_policies([])


def at_loss(forget: Callable[[], None]) -> None:
    """Registers a function that is called whenever a server or a session is lost."""
    _at_loss.append(forget)


def _forget() -> None:
    for forget in _at_loss:
        forget()


def is_of_connect(error: BaseException) -> bool:
    """True if PySpark's client of Spark Connect has raised an error, or gRPC below it."""
    return any(
        kind.__module__.partition(".")[0] == "grpc" or kind.__module__ == "pyspark.errors.exceptions.connect"
        for kind in type(error).__mro__
    ) or (isinstance(error, ValueError) and str(error).startswith("Cannot invoke RPC"))


def name_of_server(spark: SparkSession) -> str:
    """Returns the host and the port of a session's server; without the port where PySpark does not say it."""
    client = client_of(spark)
    return str(getattr(getattr(client, "_builder", client), "endpoint", client.host))


def _status(error: BaseException, text: str) -> str:
    """Returns the name of gRPC's status of an error; empty without one."""
    ask = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    code = ask() if callable(ask) else None
    name = str(getattr(code, "name", ""))
    if name not in ("", "UNKNOWN", "INTERNAL"):
        return name
    # A worker's error may quote the status of another service.
    found = _CODE.search(text) if text.startswith("<") or not isinstance(error, PySparkException) else None
    return found[1] if found else ""


def _condition(error: BaseException) -> str:
    ask = getattr(error, "getCondition", None)
    return str(ask()) if callable(ask) else ""


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
