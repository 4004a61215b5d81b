"""The messages of ``pgoutput``, PostgreSQL's plugin for logical replication, in version 1 of its protocol."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

FULL_IDENTITY = "f"


class Unchanged(enum.Enum):
    """A long value that an update has not changed, which the message leaves out."""

    UNCHANGED = "unchanged"


Values: TypeAlias = Sequence[bytes | Unchanged | None]
"""The values of a row, each as text, or None for null."""


@dataclass(frozen=True)
class Begin:
    """A transaction begins."""

    commit_lsn: int  # Where the record of its commit begins.


@dataclass(frozen=True)
class Relation:
    """The description of a table, for the messages that follow."""

    oid: int
    name: str  # With its schema.
    identity: str  # The part of an old row that a change has: `FULL_IDENTITY` for all of it.
    columns: tuple[tuple[str, int], ...]  # The name of each, and the number of its type.


@dataclass(frozen=True)
class Change:
    """A row comes if there is only a new one, goes if there is only an old one, or changes."""

    oid: int
    old: Values | None
    new: Values | None
    is_whole: bool  # Whether the old row has all columns, if one is needed.


@dataclass(frozen=True)
class Truncate:
    """A message that empties tables."""

    oids: tuple[int, ...]


Message: TypeAlias = Begin | Relation | Change | Truncate


def message_of(data: bytes) -> Message | None:
    """Parses a message; returns None for kinds that do not matter here. ValueError if its kind is unknown.

    >>> message_of(b"I" + bytes([0, 0, 0, 9]) + b"N" + bytes([0, 2]) + b"n" + b"t" + bytes([0, 0, 0, 2]) + b"42")
    Change(oid=9, old=None, new=[None, b'42'], is_whole=True)
    >>> message_of(b"D" + bytes([0, 0, 0, 9]) + b"K" + bytes([0, 1]) + b"n")
    Change(oid=9, old=[None], new=None, is_whole=False)
    >>> message_of(b"B" + bytes([0, 0, 0, 1, 0, 0, 0, 2]) + bytes(12))
    Begin(commit_lsn=4294967298)
    """
    kind = data[:1]
    if kind in (b"I", b"U", b"D"):
        return _change(kind, data)
    if kind == b"B":
        return Begin(int.from_bytes(data[1:9]))
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        count = int.from_bytes(data[1:5])
        return Truncate(tuple(int.from_bytes(data[at : at + 4]) for at in range(6, 6 + 4 * count, 4)))
    if kind in (b"C", b"O", b"Y"):
        # The end of a transaction, where it comes from, and the names of types.
        return None
    raise ValueError(f"the kind {kind!r} of a message is unknown")


def _change(kind: bytes, data: bytes) -> Change:
    oid = int.from_bytes(data[1:5])
    old, at = None, 5
    part = data[at : at + 1]
    if part in (b"O", b"K"):
        old, at = _values(data, at + 1)
    is_whole = kind == b"I" or part == b"O"
    new = None if kind == b"D" else _values(data, at + 1)[0]
    return Change(oid, old, new, is_whole)


def _values(data: bytes, at: int) -> tuple[list[bytes | Unchanged | None], int]:
    """Returns the values that begin at a place, and where they end."""
    count = int.from_bytes(data[at : at + 2])
    at += 2
    values: list[bytes | Unchanged | None] = []
    for _ in range(count):
        form = data[at]
        at += 1
        if form == 0x74:  # t
            end = at + 4 + int.from_bytes(data[at : at + 4])
            values.append(data[at + 4 : end])
            at = end
        elif form == 0x6E:  # n
            values.append(None)
        elif form == 0x75:  # u
            values.append(Unchanged.UNCHANGED)
        else:
            raise ValueError(f"the form {chr(form)!r} of a value is unknown")
    return values, at


def _relation(data: bytes) -> Relation:
    oid = int.from_bytes(data[1:5])
    end_of_schema = data.index(0, 5)
    end_of_name = data.index(0, end_of_schema + 1)
    # The schema pg_catalog is left out.
    schema, name = data[5:end_of_schema] or b"pg_catalog", data[end_of_schema + 1 : end_of_name]
    at = end_of_name + 1
    identity = chr(data[at])
    count = int.from_bytes(data[at + 1 : at + 3])
    at += 3
    columns = []
    for _ in range(count):
        end = data.index(0, at + 1)
        # A byte of flags precedes the name, and the modifier of the type follows its number.
        columns.append((data[at + 1 : end].decode(), int.from_bytes(data[end + 1 : end + 5])))
        at = end + 9
    return Relation(oid, f"{schema.decode()}.{name.decode()}", identity, tuple(columns))


def lsn_text(lsn: int) -> str:
    """Returns a place in the log of changes, as PostgreSQL writes it.

    >>> lsn_text(0x1_0000_00AB)
    '1/AB'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    """Returns the number of a place in the log.

    >>> lsn_of("1/AB") == 0x1_0000_00AB
    True
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)
