"""The words of a file of statements, and the position of each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from penstock.sql.errors import make_sql_error, place
from penstock.where import Location, find_caller, stated

_WORD = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<number>[0-9]+(?:\.[0-9]+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<symbol>.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


@dataclass(frozen=True)
class Word:
    """A word, a quoted text, a number or a sign.

    Attributes:
        kind: ``word``, ``name`` (in backticks), ``string``, ``number`` or ``symbol``.
        text: What it says, without quotes.
        start: The offset of its first character.
        end: The offset behind its last one.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in capitals; empty if it is quoted."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""


UNNAMED = "the statements"
"""The name that errors give a text which has none."""


@dataclass(frozen=True)
class Script:
    """A text of statements.

    Attributes:
        text: The text.
        name: What errors call it: the name of its file.
        folder: The folder of its file, where functions of Python are looked for; None if there is no file.
    """

    text: str
    name: str = UNNAMED
    folder: Path | None = None

    def refuse(self, what: str, at: int | None, hint: str) -> NoReturn:
        """Raises the error of a place."""
        raise make_sql_error(what, self.text, at, hint, self.name)

    def steps_of(self, at: int) -> AbstractContextManager[None]:
        """Returns a context within which steps are of the statement at an offset, and not of a line of Python.

        The statements of a text without a name stay with the line of the program that has the text, if there is one.
        """
        if self.name == UNNAMED and find_caller() is not None:
            return nullcontext()
        return stated(Location(self.name, self.text.count("\n", 0, at) + 1))

    def place(self, at: int) -> str:
        """Returns the line of an offset with a caret, for the second part of an error."""
        return place(self.text, at, self.name)

    def only(self, start: int, end: int) -> str:
        """Returns a part of the text at its position: spaces replace the text before it, to keep line numbers."""
        return re.sub(r"[^\n]", " ", self.text[:start]) + self.text[start:end]


def split_words(script: Script) -> list[Word]:
    """Returns the words of a text, without comments.

    Raises:
        SqlError: A quoted text or a comment does not end.

    >>> [word.text for word in split_words(Script("SELECT 'it''s; so' /* ; */ -- ;"))]
    ['SELECT', "it's; so"]
    """
    return list(_words(script))


def _words(script: Script) -> Iterator[Word]:
    text, at = script.text, 0
    while at < len(text):
        if text.startswith("/*", at):
            at = _comment_end(script, at)
            continue
        found = _WORD.match(text, at)
        assert found is not None
        kind = str(found.lastgroup)
        if kind == "symbol" and found[0] in "'\"`":
            script.refuse("a quoted string does not end", at, f"close it with {found[0]}")
        if kind != "space":
            yield Word(kind, _unquoted(kind, found[0]), at, found.end())
        at = found.end()


def _comment_end(script: Script, start: int) -> int:
    """The offset behind a comment, which may have others inside."""
    depth = 0
    for found in _COMMENT.finditer(script.text, start):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return script.refuse("a comment does not end", start, "close it with */")


def _unquoted(kind: str, text: str) -> str:
    r"""Returns the text that a word stands for.

    >>> _unquoted("string", r"'a\tb'"), _unquoted("string", r"r'a\tb'"), _unquoted("name", "`a``b`")
    ('a\tb', 'a\\tb', 'a`b')
    """
    if kind not in ("name", "string"):
        return text
    if text[0] in "rR":
        return text[2:-1]
    quote, text = text[0], text[1:-1].replace(text[0] * 2, text[0])
    if quote == "`":
        return text
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text)


class Cursor:
    """Reads the words of one statement one after another.

    Args:
        script: The text.
        words: The words of the statement, at least one.
    """

    def __init__(self, script: Script, words: list[Word]) -> None:
        self.script = script
        self._words = words
        self._at = 0

    @property
    def next(self) -> Word | None:
        """The next word; None at the end."""
        return self._words[self._at] if self._at < len(self._words) else None

    @property
    def start(self) -> int:
        """The offset of the next word, or of the end."""
        return self._words[self._at].start if self._at < len(self._words) else self.end

    @property
    def end(self) -> int:
        """The offset behind the statement."""
        return self._words[-1].end

    def take(self) -> Word:
        """Returns the next word, which is read with that."""
        word = self.next
        if word is None:
            self.refuse("the statement ends too early", "complete it")
        self._at += 1
        return word

    def accept(self, *keywords: str) -> bool:
        """Reads keywords if they come next."""
        coming = [word.keyword for word in self._words[self._at : self._at + len(keywords)]]
        found = coming == list(keywords)
        self._at += len(keywords) if found else 0
        return found

    def expect(self, *keywords: str, hint: str) -> None:
        """Reads keywords, which must come next."""
        if not self.accept(*keywords):
            found = "the statement ends" if self.next is None else f"found {self._shown()}"
            self.refuse(f"expected {' '.join(keywords)}, but {found}", hint)

    def name(self, whose: str) -> str:
        """Reads a name.

        Args:
            whose: What has the name, for the error.
        """
        word = self.next
        if word is None or word.kind not in ("word", "name") or not word.text:
            self.refuse(f"expected the name of {whose}", "write a name; put other characters in backticks")
        return self.take().text

    def string(self, what: str, example: str) -> Word:
        """Reads a quoted text.

        Args:
            what: What it says, for the error.
            example: One.
        """
        word = self.next
        if word is None or word.kind != "string":
            self.refuse(f"expected {what} in quotes", f"write {example}")
        return self.take()

    def names(self, whose: str) -> tuple[str, ...]:
        """Reads names in parentheses."""
        self.expect("(", hint=f"write the {whose} in parentheses, such as (team, day)")
        found = [self.name(f"a column of the {whose}")]
        while self.accept(","):
            found.append(self.name(f"a column of the {whose}"))
        self.expect(")", hint="close the parentheses")
        return tuple(found)

    def finish(self) -> None:
        """Refuses what is left."""
        if self.next is not None:
            self.refuse(f"unexpected {self._shown()}", "end the statement before it with a semicolon")

    def skip_rest(self) -> None:
        """Reads all that is left."""
        self._at = len(self._words)

    def refuse(self, what: str, hint: str, at: int | None = None) -> NoReturn:
        """Raises the error of the next word, or of an offset."""
        self.script.refuse(what, self.start if at is None else at, hint)

    def _shown(self) -> str:
        word = self.next
        assert word is not None
        return repr(self.script.text[word.start : word.end])


def split_statements(script: Script) -> list[Cursor]:
    r"""Returns the statements of a text, which semicolons end.

    >>> [cursor.next.text for cursor in split_statements(Script("SET a = ';'; -- ;\n SELECT 2;"))]
    ['SET', 'SELECT']
    """
    found: list[list[Word]] = [[]]
    for word in split_words(script):
        if word.keyword == ";":
            found.append([])
        else:
            found[-1].append(word)
    return [Cursor(script, words) for words in found if words]


def without_rendering(query: str) -> str:
    """Returns a query without the word TABLE after its outermost SELECT, so that its result are changes.

    >>> without_rendering("WITH t AS (SELECT 1 AS a) SELECT TABLE a FROM t")
    'WITH t AS (SELECT 1 AS a) SELECT  a FROM t'
    """
    depth = 0
    words = split_words(Script(query))
    for word, following in itertools.pairwise(words):
        depth += word.keyword == "("
        depth -= word.keyword == ")"
        if depth == 0 and word.keyword == "SELECT" and following.keyword == "TABLE":
            return query[: following.start] + query[following.end :]
    return query
