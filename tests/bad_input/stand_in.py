"""A stand-in for a server of Spark Connect, which answers as a server that a pipeline cannot run on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

_ENDED = "[INVALID_HANDLE.SESSION_CLOSED] The handle is invalid. Session was closed. SQLSTATE: HY000"

_SETTINGS = {"spark.master": "local[2]", "spark.sql.session.timeZone": "UTC"}


class _Service(base_pb2_grpc.SparkConnectServiceServicer):
    """A server that says its version and its settings, and refuses all else.

    Args:
        version: Its version.
        refuses: The status with which it refuses, and what it says of it; the version too if `at_once`.
    """

    def __init__(self, version: str, refuses: tuple[grpc.StatusCode, str], at_once: bool) -> None:
        self._version, self._refuses, self._at_once = version, refuses, at_once

    def AnalyzePlan(self, request: Any, context: Any) -> Any:
        if self._at_once or not request.HasField("spark_version"):
            context.abort(*self._refuses)
        version = base_pb2.AnalyzePlanResponse.SparkVersion(version=self._version)
        return base_pb2.AnalyzePlanResponse(session_id=request.session_id, spark_version=version)

    def Config(self, request: Any, context: Any) -> Any:
        kind = request.operation.WhichOneof("op_type")
        if self._at_once or kind == "set":
            context.abort(*self._refuses)
        operation = getattr(request.operation, kind)
        keys = [each.key for each in getattr(operation, "pairs", ())] or getattr(operation, "keys", ())
        found = [base_pb2.KeyValue(key=key, value=_SETTINGS.get(key, "true")) for key in keys]
        return base_pb2.ConfigResponse(session_id=request.session_id, pairs=found)

    def ReleaseSession(self, request: Any, context: Any) -> Any:
        return base_pb2.ReleaseSessionResponse(session_id=request.session_id)

    def _refuse(self, request: Any, context: Any) -> None:
        context.abort(*self._refuses)

    ExecutePlan = AddArtifacts = ArtifactStatus = Interrupt = CloneSession = ReattachExecute = _refuse


SERVERS = {
    "Spark 3.5.6": ("3.5.6", (grpc.StatusCode.UNIMPLEMENTED, ""), False),
    "Spark 4.0.5": ("4.0.5", (grpc.StatusCode.UNIMPLEMENTED, ""), False),
    "asks for a token": ("4.3.0", (grpc.StatusCode.UNAUTHENTICATED, "Invalid token"), True),
    "does not permit it": ("4.3.0", (grpc.StatusCode.PERMISSION_DENIED, "no"), True),
    "has closed the session": ("4.3.0", (grpc.StatusCode.INTERNAL, _ENDED), False),
    "takes small messages": ("4.3.0", (grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger"), False),
    "is no server of Spark": ("", (grpc.StatusCode.UNIMPLEMENTED, "unknown service"), True),
}
"""What servers do, by what a row of the table says of them."""


@contextmanager
def standing_in(kind: str) -> Iterator[int]:
    """The port of a server of a kind of `SERVERS` within the block; without one of them, nothing listens there."""
    if kind not in SERVERS:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            yield bound.getsockname()[1]
        return
    server = grpc.server(ThreadPoolExecutor(4))
    base_pb2_grpc.add_SparkConnectServiceServicer_to_server(_Service(*SERVERS[kind]), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()
