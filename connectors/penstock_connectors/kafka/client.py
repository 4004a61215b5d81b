"""Clients of Kafka: how they are made, and their errors in three parts."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.error import refusal
from penstock.utils import clock
from penstock_connectors.packages import CONFLUENT_KAFKA
from penstock_spark.connecting.running import CallTimeout, call_with_timeout

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_LOGGER = logging.getLogger("penstock_connectors.kafka")
_Answer = TypeVar("_Answer")

THREAD = "penstock kafka"

REQUEST_SECONDS = 10.0
"""The time that the driver waits for an answer."""

_LATE_SECONDS = 15.0
"""The time that a client may wait longer than it was asked to."""

_FAREWELL_SECONDS = 1.0

_AWAY = {
    "_ALL_BROKERS_DOWN",
    "_TRANSPORT",
    "_TIMED_OUT",
    "_RESOLVE",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
}
_AWAY |= {"LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}
_AWAY |= {"COORDINATOR_LOAD_IN_PROGRESS", "_MSG_TIMED_OUT"}
# While partitions get another leader; the first is what the client says if none of them has one.
_AWAY |= {"_NOENT", "BROKER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE", "OFFSET_NOT_AVAILABLE"}
_AWAY |= {"FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "KAFKA_STORAGE_ERROR"}
_DENIED = {"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL"}
_DENIED |= {"TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"}

_heard: dict[str, Any] = {}
"""Why a client could not reach its brokers, as its callback last said, by the brokers."""

FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
"""The errors of a producer once another one uses its transactional identifier."""


def load_package(where: str | None = None) -> ModuleType:
    """The client's package; ModuleNotFoundError in three parts if it is not installed."""
    return CONFLUENT_KAFKA.load(where)


def make_client(kind: str, config: Mapping[str, Any], **more: object) -> Any:
    """A client such as ``"Consumer"``; what librdkafka says of its options becomes a ValueError without values."""
    package = load_package()
    inside = importlib.import_module("confluent_kafka.admin") if kind == "AdminClient" else package
    # Its own lines on the console would repeat for as long as a broker is away.
    hear = partial(_hear, config["bootstrap.servers"])
    options = {"log_level": 2, "error_cb": hear, **config, **more}
    try:
        return getattr(inside, kind)(options, logger=_LOGGER)
    except package.KafkaException as error:
        what = f"Kafka's client refuses an option: {error.args[0].str()}"
        for value in map(str, config.values()):
            what = what.replace(f'"{value}"', "...")
        hint = "see librdkafka's list of options for names and values"
        raise refusal(ValueError, what, hint=hint) from None


def _hear(brokers: str, error: KafkaError) -> None:
    if error.name() != "_ALL_BROKERS_DOWN":
        _heard[brokers] = error


class ClientStalled(ConnectionError):
    """A client waits for much longer than it was asked to, and will not be asked again."""


def call_in_time(call: Callable[[], _Answer], seconds: float) -> _Answer:
    """The result of a call that waits for `seconds` at most; ClientStalled if it waits for much longer.

    The client waits until a time of day. Where a clock has been set back since, all of its threads wait for as much
    longer, even if the brokers have answered. Such a client is left behind, with the thread that has asked it.
    """
    try:
        return call_with_timeout(call, THREAD, seconds + _LATE_SECONDS)
    except CallTimeout:
        what = f"Kafka's client was to wait for {seconds:g} seconds, and waits for {_LATE_SECONDS:g} seconds longer"
        hint = "a new client replaces it; check whether this machine's clock has been set back"
        raise refusal(ClientStalled, what, hint=hint) from None


def abandon(*clients: object) -> None:
    """Gives clients up. Their last holder waits for the end of their threads, which may take long (`call_in_time`)."""
    Thread(target=_hold, args=(clients,), name=THREAD, daemon=True).start()


def _hold(clients: object) -> None:
    """Holds clients until the caller has let go of them."""
    clock.sleep(_FAREWELL_SECONDS)


def ask_brokers(
    question: Callable[[], _Answer],
    what: str,
    brokers: str,
    seconds: float = REQUEST_SECONDS,
    asker: Any = None,
) -> _Answer:
    """The brokers' answer to a question, or an error in three parts: a ConnectionError if they are away.

    The question waits for `seconds` at most. Its error only says that there was no answer; the client that has
    asked, `asker`, knows why.
    """
    package = load_package()
    _heard.pop(brokers, None)
    try:
        return call_in_time(question, seconds)
    except package.KafkaException as error:
        if asker is not None:
            call_in_time(partial(asker.poll, 0), 0)
        raise explain_error(error.args[0], what, brokers, _heard.get(brokers)) from None


def topic_of(partition: str) -> str:
    """The topic of a partition by its name.

    >>> topic_of("clicks/3")
    'clicks'
    """
    return partition.rpartition("/")[0]


def topic_partition(name: str, *offset: int) -> Any:
    """A partition by its name, such as ``clicks/3``, and an offset in it if there is one."""
    topic, _, number = name.rpartition("/")
    return load_package().TopicPartition(topic, int(number), *offset)


def explain_error(error: KafkaError, what: str, brokers: str, cause: KafkaError | None = None) -> Exception:
    """An error from Kafka: what could not be done, and why.

    A broker that goes away while it checks who asks looks like one that refuses access, so a refusal that is only the
    `cause` of a missing answer is a ConnectionError.
    """
    name, why = error.name(), error.str()
    if name in _AWAY:
        hint = "check that the brokers run, and that this machine can reach the addresses that they advertise"
        if cause is not None:
            why = cause.str()
            hint = (
                "check the options security.protocol, sasl.* and ssl.*" if cause.name() in _DENIED else hint
            )
        return refusal(ConnectionError, f"{what}: the brokers {brokers} cannot be reached ({why})", hint=hint)
    if name in _DENIED:
        hint = "check the options security.protocol, sasl.* and ssl.*, and what this user may do"
        return refusal(PermissionError, f"{what}: {brokers} refuses access ({why})", hint=hint)
    if name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
        hint = "check the names, and create the topic first"
        return refusal(LookupError, f"{what}: that topic or partition does not exist at {brokers}", hint=hint)
    if name == "MSG_SIZE_TOO_LARGE":
        hint = "raise message.max.bytes in producer_config and in the topic, or write less in one record"
        return refusal(ValueError, f"{what}: a record is too large", hint=hint)
    if name in FENCED:
        hint = "run only one pipeline with this checkpoint"
        return refusal(RuntimeError, f"{what}: another run writes with the same transactions", hint=hint)
    return refusal(RuntimeError, f"{what}: {why} ({name})", hint="see Kafka's documentation of this error")
