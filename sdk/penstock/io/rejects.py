"""Records that a source cannot read: the one shape in which ``rejects=True`` keeps them, for all sources."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from penstock.error import split_hint

__all__ = [
    "ELEMENTS_REJECTED",
    "REJECTED",
    "UNKNOWN_POSITION",
    "Position",
    "Rejected",
    "RejectedRecord",
    "Unreadable",
    "from_dead_letter",
    "reject",
    "say_why",
]

REJECTED = "rejected"
"""The tag of the output for records that cannot be read."""

ELEMENTS_REJECTED = ("penstock", "elements_rejected")
"""The namespace and the name of the metric that counts them."""

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})|\\\\")


class RejectedRecord(NamedTuple):
    r"""A record that a source cannot read: where it is, why it cannot be read, and what it says (penstock's own).

    The second output of a source with ``rejects=True`` has elements of this type. Every sink of rows accepts them.

    Attributes:
        source: The file, as the pattern of the source names it; for Kafka the topic; otherwise the source itself.
        line: The number of the line at which the record begins; the first line is 1, and headers and empty lines count.
            None if the source does not have lines.
        partition: The number of a topic's partition; None if the source does not have numbered partitions.
        offset: The number of the record in its partition, or the byte of a file at which its block begins; or None.
        field: The column or field that is wrong; None if it is the whole record.
        reason: Why the record cannot be read, as a short clause without its values.
        error: The name of the exception's class.
        record: The record as text. For a damaged file it is empty, because the file itself is still there.
        is_escaped: Whether the record is not text in UTF-8. Then a byte that is not ASCII is written as ``\xe9``, and a
            backslash twice.

    >>> found = reject("/data/goals.csv", Position(line=7), b"caf\xe9,3", ValueError("the record is not UTF-8"))
    >>> found.record, found.is_escaped, found.content
    ('caf\\xe9,3', True, b'caf\xe9,3')
    >>> str(found)
    '/data/goals.csv, line 7: the record is not UTF-8'
    """

    source: str
    line: int | None
    partition: int | None
    offset: int | None
    field: str | None
    reason: str
    error: str
    record: str
    is_escaped: bool

    @property
    def content(self) -> bytes:
        """The bytes of the record; in UTF-8 if its source has another encoding."""
        if not self.is_escaped:
            return self.record.encode("utf-8", "surrogatepass")
        return _ESCAPED.sub(
            lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\", self.record.encode()
        )

    def __str__(self) -> str:
        return f"{Position(self.line, self.partition, self.offset).after(self.source)}: {self.reason}"


class Position(NamedTuple):
    """Says where a record begins in its source; see `RejectedRecord`.

    >>> Position(line=7).after("/a.csv"), Position(partition=0, offset=42).after("clicks"), Position().after("/a.orc")
    ('/a.csv, line 7', 'clicks, partition 0, offset 42', '/a.orc')
    """

    line: int | None = None
    partition: int | None = None
    offset: int | None = None

    def after(self, source: str) -> str:
        """Returns the name of a source with this position, for messages."""
        parts = (f"{name} {value}" for name, value in self._asdict().items() if value is not None)
        return ", ".join([source, *parts])


UNKNOWN_POSITION = Position()
"""The position of a record in a source that does not say where its records are."""


@dataclass(frozen=True)
class Rejected:
    """Takes the place of an element that a source cannot read, where elements have one output."""

    record: RejectedRecord


class Unreadable(ValueError):
    """Says why a record does not fit: a clause for people, the field that is wrong, and perhaps what to do."""

    def __init__(self, reason: str, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(reason)
        self.field = field
        self.hint = hint

    def __reduce__(self) -> tuple[type[Unreadable], tuple[str, str | None, str | None]]:
        return type(self), (str(self), self.field, self.hint)


def reject(source: str, position: Position, raw: object, error: BaseException) -> RejectedRecord:
    """Returns the record of what cannot be read.

    Args:
        source: The name of the file, the topic, or the source.
        position: Where the record begins.
        raw: The record: text, bytes, or an element that was read and has another fault.
        error: The exception that was raised; the first line of its text becomes the reason.
    """
    text, is_escaped = _as_text(raw)
    field = getattr(error, "field", None)
    name = "ValueError" if type(error) is Unreadable else type(error).__name__
    reason = say_why(error)
    if reason.startswith(f"{source} "):
        reason = f"the file {reason.removeprefix(f'{source} ')}"
    return RejectedRecord(source, *position, field, reason, name, text, is_escaped)


def from_dead_letter(letter: tuple[object, tuple[type, str, object]], source: str = "") -> RejectedRecord:
    """Returns a dead letter of ``with_exception_handling`` in the shape of a rejected record.

    A program can then write both into one place. The reason is the class and the message of the exception; its
    traceback is left out.

    Args:
        letter: An element, and the class, the ``repr`` and the traceback of its exception, as in Beam.
        source: The name to record as the source, such as the name of the step.

    >>> str(from_dead_letter(("x", (ValueError, "ValueError('no number')", ["ValueError: no number"])), "Parse"))
    'Parse: ValueError: no number'
    """
    element, (kind, shown, trace) = letter
    text, is_escaped = _as_text(element)
    name = kind.__name__
    reason = _name_failure(name, _message_in(trace, name), shown)
    return RejectedRecord(source, None, None, None, None, reason, name, text, is_escaped)


def _message_in(trace: object, name: str) -> str | None:
    """The first line of the message of an exception, by the lines of its traceback; None if they do not show it."""
    lines = "".join(map(str, trace)).splitlines() if isinstance(trace, Iterable) else []
    for line in reversed(lines):
        shown, colon, message = line.partition(": ")
        if shown.rpartition(".")[2] == name:
            return message.strip() if colon else ""
    return None


def _name_failure(name: str, message: str | None, otherwise: str = "") -> str:
    """The class of an exception and what it says."""
    if message is None:
        return otherwise
    return f"{name}: {message}" if message else name


def say_why(error: BaseException) -> str:
    r"""Returns the first part of an error, in one line; errors of decoders that show a record are said in other words.

    >>> try:
    ...     json.loads('{"secret": ')
    ... except ValueError as error:
    ...     say_why(error)
    'the record is not JSON (Expecting value at column 12)'
    >>> try:
    ...     b"secret \xff".decode("utf-8")
    ... except ValueError as error:
    ...     say_why(error)
    'the record is not utf-8 (byte 8)'
    """
    if isinstance(error, json.JSONDecodeError):
        return f"the record is not JSON ({error.msg} at column {error.colno})"
    if isinstance(error, UnicodeDecodeError):
        return f"the record is not {error.encoding} (byte {error.start + 1})"
    what, _ = split_hint(str(error))
    said = what.partition("\n")[0].strip()
    # The text of a KeyError is only the key.
    return said if said and not isinstance(error, KeyError) else _name_failure(type(error).__name__, said)


def _as_text(raw: object) -> tuple[str, bool]:
    """A record as text, and whether bytes in it are escaped."""
    match raw:
        case str():
            return raw, False
        case bytes():
            try:
                return raw.decode("utf-8"), False
            except UnicodeDecodeError:
                return raw.replace(b"\\", b"\\\\").decode("ascii", "backslashreplace"), True
    return _element_as_text(raw), False


def _element_as_text(element: object) -> str:
    """An element that was read: its fields as JSON if it has some, otherwise as Python shows it."""
    # Named tuples and rows have this method.
    as_dict = getattr(element, "_asdict", None)
    fields = element if as_dict is None else as_dict()
    if isinstance(fields, Mapping):
        try:
            return json.dumps(dict(fields), default=str, ensure_ascii=False)
        except (TypeError, ValueError):
            return repr(element)
    return repr(element)
