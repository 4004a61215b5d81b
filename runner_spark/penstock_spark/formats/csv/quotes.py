"""The lines of CSV without their comments, and quotes that are still open where a line or a file ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.error import refusal


def ends_in_quote(options: dict[str, Any]) -> str:
    """Returns the pattern of all of a text that begins outside of quotes and ends within them; it has no comment.

    >>> bool(re.fullmatch(ends_in_quote({}), 'a,"b')), bool(re.fullmatch(ends_in_quote({}), 'a,"b"'))
    (True, False)
    """
    parts = _Parts.of(options)
    rest = f"[^{parts.separator}{parts.quote}][^{parts.separator}]*+"
    field = f"(?:{parts.quoted}{parts.quote}(?:{rest})?+|{rest}|)"
    return f"(?:{parts.space}{field}{parts.separator})*+{parts.space}{parts.quoted}"


def ends_in_comment(options: dict[str, Any]) -> str:
    r"""Returns the pattern of a line that begins outside of quotes and has a comment; the first group precedes it.

    As in pandas, a comment begins anywhere but within quotes, and right behind a quote that closes.

    >>> found = re.fullmatch(ends_in_comment({"comment": "#"}), '1,"a#b",2 # note\n')
    >>> found[1]
    '1,"a#b",2 '
    """
    parts, comment = _Parts.of(options), re.escape(options["comment"])
    plain = f"[^{parts.separator}{comment}{parts.escape}]"
    if parts.escape:
        # An escape character still keeps the next character from beginning a comment.
        plain = f"(?:{plain}|{parts.escape}{comment}?+)"
    first = plain.replace(f"[^{parts.separator}", f"[^{parts.separator}{parts.quote}", 1)
    behind = f"[^{parts.separator}{parts.quote}]{plain}*+"
    field = f"(?:{parts.quoted}{parts.quote}(?:{behind})?+|{first}{plain}*+|)"
    return f"(?s)((?:{parts.space}{field}{parts.separator})*+{parts.space}{field}){comment}.*"


@dataclass(frozen=True)
class _Parts:
    """Patterns of the parts of a CSV line."""

    quote: str
    separator: str
    escape: str  # Empty if quotes are written twice.
    quoted: str  # A quoted text without the quote that closes it.
    space: str

    @staticmethod
    def of(options: dict[str, Any]) -> _Parts:
        quote, separator = (
            re.escape(options.get(name) or default)
            for name, default in (("quotechar", '"'), ("sep", options.get("delimiter") or ","))
        )
        escape = re.escape(options.get("escapechar") or "")
        within = (
            f"[^{quote}{escape}]++|{escape}[{quote}{escape}]|{escape}"
            if escape
            else f"[^{quote}]++|{quote}{quote}"
        )
        space = "[ \\t]*+" if options.get("skipinitialspace") else ""
        return _Parts(quote, separator, escape, f"{quote}(?:{within})*+", space)


def lines_and_quotes(lines: Iterable[str], options: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    r"""Yields lines with their ends, without comments, and whether each ends within quotes, which may have line ends.

    >>> list(lines_and_quotes(['1,"a#\n', 'b" # note\n'], {"comment": "#"}))
    [('1,"a#\n', True), ('b" \n', False)]
    """
    ends_within = re.compile(ends_in_quote(options)).fullmatch
    quote, uncommented = options.get("quotechar") or '"', comment_remover(options)
    is_open = False
    for line in lines:
        # Within quotes, a line continues as if it began with one.
        text = uncommented(quote + line if is_open else line)
        rest = text[len(quote) :] if is_open else text
        if quote in text:
            is_open = ends_within(text) is not None
        yield rest, is_open


def comment_remover(options: dict[str, Any]) -> Callable[[str], str]:
    r"""Returns the function that takes the comment out of a line, which begins outside of quotes.

    >>> comment_remover({"comment": "#"})('1,"a#b" # note\n')
    '1,"a#b" \n'
    """
    comment = options.get("comment")
    if not comment:
        return str
    find = re.compile(ends_in_comment(options)).fullmatch

    def uncommented(line: str) -> str:
        found = find(line) if comment in line else None
        return line if found is None else found[1] + line[len(line.rstrip("\r\n")) :]

    return uncommented


def left_open(file: str, where: str) -> ValueError:
    """Returns the error for a file that ends within quotes: its last field has everything that follows the quote."""
    what = f"{file} ends within quotes: one of its quotes is never closed"
    return refusal(ValueError, what, where=where, hint="close the quote, or name another quotechar")


def without_mark(lines: Iterable[str]) -> Iterator[str]:
    """Yields the lines of a file without the mark of its byte order."""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix("\ufeff")
