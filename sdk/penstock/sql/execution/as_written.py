"""Queries that go to the engine as the user wrote them, since it knows more of SQL than the transforms do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.graph import Read
from penstock.io.query_source import QuerySource
from penstock.scalars.spark_forms import NotForSpark
from penstock.sql.execution.spark_over import IN_ANY_ORDER
from penstock.sql.plan.relations import Aggregate, Over, Relation, Top, walk_plan
from penstock.windows.windowing import Windowing, default_windowing

_PART = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`((?:[^`]|``)*)`|(\w+)|\S", re.DOTALL
)
_RENDERED = frozenset(["STREAM", "TVR", "TABLE"])
_NO_OPERAND = frozenset([",", ".", "AS", "FROM", ")", ""]) | frozenset("+-*/%=<>|&^")
_EMITS = frozenset(["STREAM", "CHANGES", "FINAL", "ON", "WHEN", "AFTER", "PERIODIC"])
_WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION", "VALIDITY_WINDOW", "WINDOW_START", "WINDOW_END")
_QUERY_BEGINS = frozenset(["SELECT", "WITH", "FROM", "TABLE", "VALUES", "("])
_FINAL = re.compile(
    r"there is no table '[^']*'$|there is no query$|there are \d+ statements|this is \w+, not a query$|.* reads itself$"
    r"|the query has [\d,]+ characters|the query is nested too deeply$|a query is text"
)
_NO_COLUMN = re.compile(r"there is no column '([^']*)'$")


@dataclass(frozen=True)
class AsWritten:
    """A query that means in Spark what it means here.

    Attributes:
        text: Its text, of the same length, without the rendering ``TABLE``.
        tables: The names of the tables that it or a view of it may read.
        views: The names and queries of the views that it may read; each reads only tables, and views before it.
    """

    text: str
    tables: tuple[str, ...]
    views: tuple[tuple[str, str], ...]


def read_as_written(
    query: str, tables: Iterable[str], views: Mapping[str, str], functions: Collection[str]
) -> AsWritten:
    """Returns a query for Spark.

    Args:
        query: Its text.
        tables: The names of the tables that are there.
        views: The queries of the views that are there.
        functions: The names of the user's functions, in capitals.

    Raises:
        NotForSpark: It has something that Spark lacks, or that has another meaning there.

    >>> read_as_written("SELECT TABLE RANK() OVER (ORDER BY a) FROM `b c`", ["a", "b c", "c"], {}, ()).text
    'SELECT       RANK() OVER (ORDER BY a) FROM `b c`'
    """
    known = {name.lower(): (name, text) for name, text in views.items()}
    found: dict[str, tuple[str, str]] = {}
    named: set[str] = set()

    def visit(text: str) -> str:
        words = [*_words(text)]
        text = _without_rendering(text, words)
        _refuse_own(words, functions)
        for _, name, _ in words:
            named.add(name.lower())
            if name.lower() in known and name.lower() not in found:
                view, of = known[name.lower()]
                # A view that reads itself is refused by Spark, which then finds no such table.
                found[name.lower()] = (view, of)
                read = visit(of)
                del found[name.lower()]
                found[name.lower()] = (view, read)
        return text

    text = visit(query)
    return AsWritten(text, tuple(name for name in tables if name.lower() in named), tuple(found.values()))


def _words(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yields the words, names in backticks and signs of a text: the place, the text, and whether it is a bare word."""
    for match in _PART.finditer(text):
        whole = match[0]
        if whole.startswith(("--", "/*")):
            continue
        if whole[0] in "'\"":
            yield match.start(), "''", False
        elif match[1] is not None:
            yield match.start(), match[1].replace("``", "`"), False
        else:
            yield match.start(), whole, match[2] is not None


def _without_rendering(text: str, words: list[tuple[int, str, bool]]) -> str:
    """The text without the word TABLE after its first SELECT; other renderings are not Spark's."""
    for at, (_, word, is_word) in enumerate(words):
        if is_word and word.upper() == "SELECT" and at + 2 < len(words):
            place, rendering, is_bare = words[at + 1]
            following = words[at + 2]
            is_star = (
                following[1] == "*"
                and at + 3 < len(words)
                and words[at + 3][1].upper() in ("FROM", ",", "EXCEPT")
            )
            is_one = is_star or following[1].upper() not in _NO_OPERAND
            if not (is_bare and rendering.upper() in _RENDERED and is_one):
                return text
            if rendering.upper() != "TABLE":
                raise NotForSpark(f"Spark has no rendering {rendering.upper()}")
            return text[:place] + " " * len(rendering) + text[place + len(rendering) :]
    return text


def _refuse_own(words: list[tuple[int, str, bool]], functions: Collection[str]) -> None:
    """Refuses what is not Spark's SQL, or means something else in it."""
    spelled = [word.upper() if is_word else word for _, word, is_word in words] + [""] * 3
    for at, (_, _, is_word) in enumerate(words):
        if not is_word:
            continue
        word, following, before = spelled[at], spelled[at + 1 : at + 4], spelled[at - 1] if at else ""
        if word == "EMIT" and following[0] in _EMITS and before not in ("AS", ",", "."):
            raise NotForSpark("Spark has no EMIT")
        if (word == "AS" and following == ["OF", "SYSTEM", "TIME"]) or word == "SYSTEM_TIME":
            raise NotForSpark("Spark has no relations that change in system time")
        if word == "SYS" and following[0] == ".":
            raise NotForSpark("Spark has no system columns")
        if word == "ANTI" and before not in ("LEFT", "AS", ",", ".") and following[0] == "JOIN":
            raise NotForSpark("Spark's anti join returns the rows of the left side only")
        if following[0] == "(" and before != "." and (word in _WINDOWS or word in functions):
            raise NotForSpark(f"Spark has no function {word}")


def means_the_same(written: AsWritten, plan: Relation) -> bool:
    """True if Spark has only one result for a query that the binder knows, and it is the plan's.

    Spark chooses freely among rows that are equal in an order, where the plan compares all their columns. And
    ``x NOT IN (query)`` as a value is NULL in a plan where Spark says FALSE.
    """
    if any(_has_not_in(text) for text in (written.text, *(text for _, text in written.views))):
        return False
    return not any(map(_depends_on_order, walk_plan(plan)))


def _has_not_in(text: str) -> bool:
    words = [word.upper() for _, word, _ in _words(text)]
    return any(
        words[at : at + 3] == ["NOT", "IN", "("] and words[at + 3] in _QUERY_BEGINS
        for at in range(len(words) - 3)
    )


def _depends_on_order(relation: Relation) -> bool:
    if isinstance(relation, Aggregate):
        return not all(call.name in IN_ANY_ORDER for call in relation.calls)
    return isinstance(relation, Over | Top)


def is_final(what: str, hint: str, query: str) -> bool:
    """True if an error of the binder is about a mistake, which the engine would also find.

    >>> is_final("there is no column 'tem'", "did you mean 'team'?", "SELECT tem FROM goals")
    True
    >>> is_final("there is no column 'x'", "did you mean 'x1'?", "SELECT TRANSFORM(x1, x -> x + 1) AS y FROM goals")
    False
    """
    if _FINAL.match(what):
        return True
    found = _NO_COLUMN.match(what)
    if found is None or not hint.startswith("did you mean"):
        return False
    # A query that names it once does not define it.
    return sum(word.lower() == found[1].lower() for _, word, _ in _words(query)) == 1


class ComputeQuery(PTransform[Any, Any]):
    """Lets the engine compute a query over the rows of PCollections.

    Args:
        source: The query.
        label: The label.
        element_type: The type of the result's rows.
    """

    def __init__(self, source: QuerySource, label: str, element_type: object) -> None:
        super().__init__(label)
        self._source = source
        self._element_type = element_type

    def _extract_input_pvalues(self, pvalueish: object) -> tuple[Any, tuple[Any, ...]]:
        assert isinstance(pvalueish, tuple)
        return pvalueish, pvalueish

    def expand(self, pcolls: tuple[PCollection[Any], ...]) -> PCollection[Any]:
        """Returns the rows of the result."""
        return PCollection(pcolls[0].pipeline, element_type=self._element_type, is_bounded=True)

    def get_windowing(self, inputs: object) -> Windowing:
        """Returns the windowing of a source: the global window."""
        return default_windowing()

    def to_primitive(self) -> Read:
        return Read(self._source)
