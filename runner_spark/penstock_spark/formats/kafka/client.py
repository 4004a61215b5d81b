"""Clients of Kafka: how they are made, and their errors in three parts."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from penstock.error import RunnerError, refusal

_LOGGER = logging.getLogger("penstock_spark.kafka")
_Answer = TypeVar("_Answer")

REQUEST_SECONDS = 10.0
"""How long the driver waits for an answer."""

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
_DENIED = {"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL"}
_DENIED |= {"TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"}

FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
"""What a producer hears once another one uses its transactional identifier."""


def client(where: str | None = None) -> Any:
    """The client's package; a RunnerError if it is not installed."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise RunnerError(
            "Kafka needs the package confluent-kafka, which is not installed",
            where=where,
            hint="run pip install 'penstock[kafka]' here and on the workers",
        )
    return importlib.import_module("confluent_kafka")


def make(kind: str, config: Mapping[str, Any], **more: Any) -> Any:
    """A client such as ``"Consumer"``; what librdkafka says of its options becomes a ValueError without values."""
    package = client()
    inside = importlib.import_module("confluent_kafka.admin") if kind == "AdminClient" else package
    # Its own lines on the console would repeat for as long as a broker is away.
    options = {"log_level": 2, **config, **more}
    try:
        return getattr(inside, kind)(options, logger=_LOGGER)
    except package.KafkaException as error:
        what = f"Kafka's client refuses an option: {error.args[0].str()}"
        for value in map(str, config.values()):
            what = what.replace(f'"{value}"', "...")
        hint = "see librdkafka's list of options for names and values"
        raise refusal(ValueError, what, hint=hint) from None


def asked(question: Callable[[], _Answer], what: str, brokers: str) -> _Answer:
    """The brokers' answer to a question, or an error in three parts: a ConnectionError if they are away."""
    package = client()
    try:
        return question()
    except package.KafkaException as error:
        raise explained(error.args[0], what, brokers) from None


def topic_partition(name: str, *offset: int) -> Any:
    """A partition by its name, such as ``clicks/3``, and an offset in it if there is one."""
    topic, _, number = name.rpartition("/")
    return client().TopicPartition(topic, int(number), *offset)


def explained(error: Any, what: str, brokers: str) -> Exception:
    """An error of Kafka's: what could not be done, and why."""
    name, why = error.name(), error.str()
    if name in _AWAY:
        hint = "check that the brokers run, and that this machine reaches the addresses that they advertise"
        return refusal(ConnectionError, f"{what}: the brokers {brokers} cannot be reached ({why})", hint=hint)
    if name in _DENIED:
        hint = "check the options security.protocol, sasl.* and ssl.*, and what this user may do"
        return refusal(PermissionError, f"{what}: {brokers} refuses access ({why})", hint=hint)
    if name in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
        hint = "check the names, and make the topic first"
        return refusal(LookupError, f"{what}: there is no such topic or partition at {brokers}", hint=hint)
    if name == "MSG_SIZE_TOO_LARGE":
        hint = "raise message.max.bytes in producer_config and in the topic, or write less in one record"
        return refusal(ValueError, f"{what}: a record is too large", hint=hint)
    if name in FENCED:
        hint = "run only one pipeline with this checkpoint"
        return refusal(RuntimeError, f"{what}: another run writes with the same transactions", hint=hint)
    return refusal(RuntimeError, f"{what}: {why} ({name})", hint="see Kafka's documentation of this error")
