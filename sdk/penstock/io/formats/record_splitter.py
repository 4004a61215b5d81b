r"""Cutting bytes into records at a delimiter, as Beam's text source does it: escapes, ``\r\n``, headers.

>>> list(split_records([b"a\r\nb\\\nc", b"\n\nd"], escapechar=b"\\"))
[b'a', b'b\\\nc', b'', b'd']
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from itertools import chain

from penstock.checks.whole_numbers import check_whole_number
from penstock.error import refusal


def check_delimiters(delimiter: object, escapechar: object, skip_header_lines: int) -> None:
    r"""Raises a ValueError for arguments that Beam's text source refuses.

    These are: a delimiter that is not bytes, is empty, or begins as it ends; an escape that is not one byte; a negative
    number of header lines.

    >>> check_delimiters(b"||", b"\\", 0)
    Traceback (most recent call last):
        ...
    ValueError: Delimiter must not self-overlap.
      at ...
      hint: use a delimiter whose beginning is not also its end
    """
    # Programs say True for one line, as Beam lets them.
    if not isinstance(skip_header_lines, bool):
        check_whole_number("skip_header_lines", skip_header_lines)
    if skip_header_lines < 0:
        what = f"Cannot skip negative number of header lines: {skip_header_lines}"
        raise refusal(ValueError, what, hint="pass 0 or more")
    if delimiter is not None:
        if not isinstance(delimiter, bytes) or not delimiter:
            what = "Delimiter must be a non-empty bytes sequence."
            raise refusal(ValueError, what, hint=f"write delimiter=b'|', not {delimiter!r}")
        if any(delimiter.startswith(delimiter[-size:]) for size in range(1, len(delimiter))):
            what = "Delimiter must not self-overlap."
            raise refusal(ValueError, what, hint="use a delimiter whose beginning is not also its end")
    if escapechar is not None and not (isinstance(escapechar, bytes) and len(escapechar) == 1):
        what = f"escapechar must be bytes of size 1: {escapechar!r}"
        raise refusal(ValueError, what, hint="write, e.g., escapechar=b'\\\\'")


def split_records(
    chunks: Iterable[bytes],
    *,
    delimiter: bytes | None = None,
    escapechar: bytes | None = None,
    strip: bool = True,
    skip: int = 0,
) -> Iterator[bytes]:
    r"""Yields the records of one file, whose bytes may be cut anywhere into chunks.

    Args:
        chunks: The file's bytes, in order.
        delimiter: The end of a record; None means ``\n``, or ``\r\n`` if the return is present (and not escaped).
        escapechar: A byte that makes a delimiter right after it part of the record (and also itself).
        strip: Whether the delimiter is removed.
        skip: How many records at the beginning to leave out.

    Yields:
        Each record, but not an empty rest after the last delimiter.
    """
    for number, (record, end) in enumerate(_cut(_without_mark(chunks), delimiter or b"\n", escapechar)):
        if number < skip:
            continue
        if not strip:
            yield record + end
        elif (
            delimiter is None
            and end
            and record.endswith(b"\r")
            and not _is_escaped(record, len(record) - 1, escapechar)
        ):
            yield record[:-1]
        else:
            yield record


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the chunks, without a byte order mark at the beginning of the file."""
    rest = iter(chunks)
    begun = b""
    for chunk in rest:
        begun += chunk
        if len(begun) >= len(BOM_UTF8):
            break
    yield begun.removeprefix(BOM_UTF8)
    yield from rest


def _cut(
    chunks: Iterable[bytes], delimiter: bytes, escapechar: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    """Yields records with the delimiter that ended them; b"" for the last one if the file ends without a delimiter."""
    pending = b""
    more: list[bytes] = []
    size = 0
    for chunk in chain(chunks, (None,)):
        if chunk is not None:
            more.append(chunk)
            size += len(chunk)
            if size < len(pending):
                # To join each chunk of a long record at once would copy the record again and again.
                continue
        # A delimiter may straddle two chunks: the search starts again at most its length before the chunk.
        search_from = max(0, len(pending) - len(delimiter) + 1)
        pending = b"".join((pending, *more))
        more.clear()
        size = 0
        start = 0
        while (found := pending.find(delimiter, search_from)) >= 0:
            search_from = found + len(delimiter)
            if _is_escaped(pending, found, escapechar, start):
                continue
            yield pending[start:found], delimiter
            start = search_from
        pending = pending[start:]
    if pending:
        yield pending, b""


def _is_escaped(data: bytes, position: int, escapechar: bytes | None, start: int = 0) -> bool:
    """True if the position follows an odd number of escapes."""
    if escapechar is None:
        return False
    before = data[start:position]
    return (len(before) - len(before.rstrip(escapechar))) % 2 == 1
