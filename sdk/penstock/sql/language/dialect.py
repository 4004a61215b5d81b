"""Spark's SQL with the clauses of time-varying relations: the one module that knows how sqlglot parses.

Clauses that sqlglot lacks are recognised among the tokens, by a few words that are unmistakable together, and
become one token each for the parser: the rendering after ``SELECT``, ``EMIT …``, and ``AS OF SYSTEM TIME``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.error import noun_for
from penstock.sql.errors import make_sql_error

QUERY_CHARACTERS_MAX = 1_000_000

RENDERINGS = ("STREAM", "TABLE", "TVR")
_PERIODS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
_KEYS_BEFORE = re.compile(r"\bGROUP\s+BY\b(?:(?!\bSELECT\b).)*$", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_SPANNED = ("DAY", "HOUR", "MINUTE", "SECOND")
_SPANNED_MAX = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}
# Tokens with which no clause of Spark SQL begins.
_EMIT, _AS_OF = TokenType.PRAGMA, TokenType.KILL
_RENDERING_MARK = " RENDERING"
_EMIT_FOLLOWS = frozenset(["STREAM", "CHANGES", "FINAL", "ON", "WHEN", "AFTER", "PERIODIC"])
# Functions for which the parser has classes, although an ordinary call says the same.
_PLAIN_FUNCTIONS = frozenset(
    [
        *("APPROX_PERCENTILE", "ARGMAX", "ARGMIN", "ARG_MAX", "ARG_MIN", "CHAR", "CHR", "DECODE", "INITCAP"),
        *("JSON_OBJECT", "JSON_OBJECTAGG", "LISTAGG", "MAX_BY", "MIN_BY", "NORMALIZE"),
        *("PERCENTILE", "PERCENTILE_APPROX", "STRING_AGG"),
    ]
)
SPARK_FUNCTIONS = frozenset(SparkParser.FUNCTIONS) | _PLAIN_FUNCTIONS
"""Names that are never typing errors, whether penstock has them or not."""
_COMPARISONS = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
_BITS = (
    (TokenType.PIPE, exp.BitwiseOr),
    (TokenType.CARET, exp.BitwiseXor),
    (TokenType.AMP, exp.BitwiseAnd),
)
"""The operators of bits, from the one that binds least."""
_OF_SUFFIXES = frozenset([TokenType.TINYINT, TokenType.SMALLINT, TokenType.BIGINT])
_NO_OPERAND = frozenset(
    [TokenType.COMMA, TokenType.FROM, TokenType.DOT, TokenType.ALIAS, TokenType.R_PAREN, TokenType.SEMICOLON]
)


@dataclass(frozen=True)
class Delay:
    """The time from the first change since the last emission to the next emission.

    Attributes:
        micros: The delay; 0 emits each change.
        aligned: Whether emissions come at multiples of the delay, the same for all rows.
    """

    micros: int
    aligned: bool = False


@dataclass(frozen=True)
class Emit:
    """An ``EMIT`` clause as written.

    Attributes:
        watermark: Whether rows are emitted when the watermark passes.
        past: What it passes; None means the end of the window.
        before: The delay of emissions before, or without, the watermark; None if there are none.
        after: The delay of emissions after the watermark; None drops later changes.
        as_stream: Whether the changes are rows of their own, with the columns ``undo``, ``ptime`` and ``ver``.
    """

    watermark: bool = False
    past: Any = None
    before: Delay | None = None
    after: Delay | None = None
    as_stream: bool = False


class EmitClause(exp.Expression):
    """An ``EMIT`` clause in the tree of a query."""

    arg_types = {"clause": True}


def _trim(position: str) -> Callable[[list[Any]], exp.Expression]:
    """Returns the reader of LTRIM, RTRIM or BTRIM: in the first two, the characters precede the text."""
    name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(position, "BTRIM")

    def read(arguments: list[Any]) -> exp.Expression:
        if len(arguments) not in (1, 2):
            return exp.Anonymous(this=name, expressions=arguments)
        text, *characters = arguments if position == "BOTH" else arguments[::-1]
        return exp.Trim(this=text, expression=characters[0] if characters else None, position=position)

    return read


def _typed_literal(parser: _Parser, this: exp.Expression, kind: exp.DataType) -> exp.Expression:
    """Returns a literal such as ``DATE '2026-01-01'``, which is one value: a cast behind it is a cast of the date."""
    text = this
    while not isinstance(text, exp.Literal):
        text = text.this
    literal = exp.Cast(this=text.copy(), to=kind)
    if text is this:
        return literal
    text.replace(literal)
    return this


def _any_of(operand: exp.Expression) -> exp.Expression:
    """Returns ``ANY (SELECT …)`` as what it is, and ``ANY(x)`` as a call of the aggregate."""
    if isinstance(operand, exp.Paren) and not isinstance(operand.this, (exp.Subquery, exp.Query)):
        return exp.Anonymous(this="ANY", expressions=[operand.this])
    return exp.Any(this=operand)


def _of_query(kind: type[exp.Expression], name: str) -> Callable[[list[Any]], exp.Expression]:
    """Reads a predicate of a query in brackets of its own, as of a set operation; other calls are functions."""

    def read(arguments: list[Any]) -> exp.Expression:
        match arguments:
            case [exp.Query() | exp.Values() as query]:
                return kind(this=query)
        return exp.Anonymous(this=name, expressions=arguments)

    return read


class _Parser(SparkParser):
    # A function keeps the name and the arguments of the query, instead of becoming a class of its own.
    FUNCTIONS: ClassVar[dict[str, Any]] = {
        "LTRIM": _trim("LEADING"),
        "RTRIM": _trim("TRAILING"),
        "BTRIM": _trim("BOTH"),
        "EXISTS": _of_query(exp.Exists, "EXISTS"),
        "ALL": _of_query(exp.All, "ALL"),
        "SOME": _of_query(exp.Any, "SOME"),
    }
    # Brackets after a call of ARRAY are an index, as after any other value.
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **SparkParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: exp.Anonymous(this="POSITIVE", expressions=[self._parse_unary()]),
        TokenType.DASH: lambda self: self._parse_negative(),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        **SparkParser.NO_PAREN_FUNCTION_PARSERS,
        "ANY": lambda self: _any_of(self._parse_bitwise()),
    }
    TERM: ClassVar[dict[Any, Any]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
    # So does one with a special syntax in other dialects only; a catalog may also have a STRING_AGG.
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name not in _PLAIN_FUNCTIONS
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = dict.fromkeys(
        (
            exp.DType.DATE,
            exp.DType.TIMESTAMP,
            exp.DType.TIMESTAMPTZ,
            exp.DType.TIMESTAMPLTZ,
            exp.DType.TIMESTAMPNTZ,
        ),
        _typed_literal,
    )
    STRICT_CAST = True
    OPERATION_MODIFIERS = {f"{name}{_RENDERING_MARK}" for name in RENDERINGS}
    TABLE_ALIAS_TOKENS = SparkParser.TABLE_ALIAS_TOKENS - {_EMIT, _AS_OF}
    ALIAS_TOKENS = SparkParser.ALIAS_TOKENS - {_EMIT, _AS_OF}
    ID_VAR_TOKENS = SparkParser.ID_VAR_TOKENS - {_EMIT, _AS_OF}
    SET_OP_MODIFIERS = SparkParser.SET_OP_MODIFIERS | {"emit", "as_of"}
    QUERY_MODIFIER_PARSERS = {
        **SparkParser.QUERY_MODIFIER_PARSERS,
        _EMIT: lambda self: ("emit", self._parse_emit()),
        _AS_OF: lambda self: ("as_of", self._parse_as_of()),
    }
    QUERY_MODIFIER_TOKENS = set(QUERY_MODIFIER_PARSERS)

    def _parse_negative(self) -> exp.Expression:
        """Returns the negative of what follows a minus; a number is negative before ``::`` casts it."""
        is_number = self._curr is not None and self._curr.token_type is TokenType.NUMBER
        sign = self._next
        # The tokenizer also makes a cast of a suffix, as in -0.0D, which is a literal whose zero has a sign.
        is_cast = is_number and sign is not None and self.sql[sign.start : sign.end + 1] == "::"
        operand = cast(exp.Expression, self._parse_unary())
        if not is_cast:
            return exp.Neg(this=operand)
        innermost = operand
        while isinstance(innermost, exp.Cast) and isinstance(innermost.this, exp.Cast):
            innermost = innermost.this
        innermost.set("this", exp.Neg(this=innermost.this))
        return operand

    def _parse_value(self, values: bool = True) -> exp.Tuple | None:
        """Parses a row of VALUES; a name behind one without brackets names the table."""
        if self._match(TokenType.L_PAREN, advance=False):
            return super()._parse_value(values)
        only = self._parse_disjunction()
        return None if only is None else self.expression(exp.Tuple(expressions=[only]))

    def _parse_equality(self, parse_is: bool = True) -> Any:
        """Parses comparisons, which have one precedence in Spark, and predicates such as BETWEEN on all before them."""
        this = self._parse_bitwise()
        while this is not None and self._match_set(_COMPARISONS):
            this = self._build_predicate(_COMPARISONS[self._prev.token_type], this, self._parse_bitwise())
        return self._parse_range(this, parse_is=True) if parse_is and this is not None else this

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._parse_bits(0)

    def _parse_bits(self, level: int) -> exp.Expr | None:
        """Parses operators of bits, each of which binds closer than the previous one: |, ^, & and shifts."""
        if level == len(_BITS):
            return self._parse_shifts()
        token_type, kind = _BITS[level]
        this = self._parse_bits(level + 1)
        while this is not None and self._match(token_type):
            this = self.expression(kind(this=this, expression=self._parse_bits(level + 1)))
        return this

    def _parse_shifts(self) -> exp.Expr | None:
        this = self._parse_term()
        while this is not None:
            if self._match_pair(TokenType.LT, TokenType.LT):
                this = self.expression(exp.BitwiseLeftShift(this=this, expression=self._parse_term()))
            elif self._match_pair(TokenType.GT, TokenType.GT):
                is_unsigned = self._match(TokenType.GT)
                amount = self._parse_term()
                if is_unsigned:
                    this = exp.Anonymous(this=">>>", expressions=[this, amount])
                else:
                    this = self.expression(exp.BitwiseRightShift(this=this, expression=amount))
            else:
                break
        return this

    def _parse_emit(self) -> EmitClause:
        start = self._curr.start
        self._advance()
        found: dict[str, Any] = {}
        if self._match_text_seq("STREAM"):
            found["as_stream"] = True
        if self._match_text_seq("CHANGES"):
            found["before"] = Delay(0)
        elif self._match_text_seq("FINAL") or self._match_text_seq("ON", "WINDOW", "CLOSE"):
            found["watermark"] = True
        else:
            while self._parse_emission(found) and self._match_text_seq("AND"):
                pass
        if not found:
            self.raise_error("EMIT must say when, such as AFTER WATERMARK")
        found.setdefault("before", None if found.get("watermark") else Delay(0))
        clause = EmitClause(clause=Emit(**found))
        clause.meta["start"] = start
        return clause

    def _parse_emission(self, found: dict[str, Any]) -> bool:
        """Parses one of the times at which rows are emitted; returns whether there is one."""
        if self._match_text_seq("THEN"):
            self._match_text_seq("AFTER")
            self._match_text_seq("DELAY")
            found["after"] = Delay(self._parse_micros())
        elif self._match_text_seq("PERIODIC"):
            found["before"] = Delay(self._parse_micros(), aligned=True)
        elif self._match_text_seq("WHEN"):
            if not self._match_text_seq("WATERMARK", "PAST"):
                self.raise_error(
                    "EMIT WHEN takes WATERMARK PAST a column; a condition on values belongs in HAVING"
                )
            found.update(watermark=True, past=self._parse_bitwise())
        elif self._match_text_seq("AFTER"):
            if self._match_text_seq("WATERMARK"):
                found["watermark"] = True
            else:
                aligned = bool(self._match_text_seq("ALIGNED"))
                self._match_text_seq("DELAY")
                found["before"] = Delay(self._parse_micros(), aligned)
        elif not found:
            return False
        elif set(found) - {"as_stream"}:
            self.raise_error("after AND, EMIT takes AFTER WATERMARK, AFTER DELAY or THEN AFTER")
        return True

    def _parse_micros(self) -> int:
        """Parses an interval, with or without the word INTERVAL."""
        self._match_text_seq("INTERVAL")
        token = self._curr
        if token is None or token.token_type not in (TokenType.NUMBER, TokenType.STRING):
            self.raise_error("a delay is a number and a unit, such as 1 MINUTE or INTERVAL '1' MINUTE")
        self._advance()
        words = token.text.split()
        if len(words) == 1 and self._curr is not None:
            words.append(self._curr.text)
            self._advance()
        micros = micros_of(words)
        if micros is None or micros < 0:
            self.raise_error("a delay is a number and a unit, such as 1 MINUTE or INTERVAL '1' MINUTE", token)
        return micros or 0

    def _parse_as_of(self) -> object:
        self._advance()
        return self._parse_primary()


class PenstockDialect(Spark):
    """Spark's dialect, with the clauses of `penstock.sql`."""

    Parser = _Parser


def micros_of(words: list[str]) -> int | None:
    """Returns the microseconds of numbers and units; None if they are none.

    >>> micros_of(["10", "minutes"]), micros_of(["1", "day", "2.5", "SECONDS"]), micros_of(["1", "month"])
    (600000000, 86402500000, None)
    """
    micros = 0
    for number, unit in zip(words[::2], words[1::2], strict=False):
        length = _PERIODS.get(unit.upper().removesuffix("S"))
        if length is None or not _NUMBER.fullmatch(number):
            return None
        micros += round(Fraction(number) * length)
    return micros if words and len(words) % 2 == 0 else None


def parse_span_micros(text: str, first: str, last: str) -> int | None:
    """Returns the microseconds of a text such as ``1 02:03:04.5``, from one unit to another; None if it is none.

    >>> parse_span_micros("1 02:03:04.5", "DAY", "SECOND"), parse_span_micros("-2:30", "HOUR", "MINUTE")
    (93784500000, -9000000000)
    >>> parse_span_micros("1 24:00", "DAY", "MINUTE") is None
    True
    """
    if first not in _SPANNED or last not in _SPANNED:
        return None
    units = _SPANNED[_SPANNED.index(first) : _SPANNED.index(last) + 1]
    shape = (
        "".join(f"([0-9]+){' ' if unit == 'DAY' else ':'}" for unit in units[:-1])
        + r"([0-9]+(?:\.[0-9]{1,6})?)"
    )
    found = re.fullmatch(rf"\s*([+-]?)\s*{shape}\s*", text)
    if found is None or len(units) < 2:
        return None
    sign, *numbers = found.groups()
    # Only the first unit may have more than the next larger one has.
    if any(
        Fraction(number) >= _SPANNED_MAX[unit] for number, unit in zip(numbers[1:], units[1:], strict=True)
    ):
        return None
    if "." in numbers[-1] and last != "SECOND":
        return None
    micros = sum(
        round(Fraction(number) * _PERIODS[unit]) for number, unit in zip(numbers, units, strict=True)
    )
    return -micros if sign == "-" else micros


def parse_query(query: str) -> exp.Expression:
    """Returns the tree of one query.

    Raises:
        SqlError: It is not one query, or breaks the grammar; the message shows where.

    >>> tree = parse_query("SELECT STREAM a FROM t EMIT AFTER WATERMARK")
    >>> tree.args["emit"].args["clause"]
    Emit(watermark=True, past=None, before=None, after=None, as_stream=False)
    """
    return _only(parse_statements(query), query)


def _only(trees: list[Any], query: str) -> exp.Expression:
    if len(trees) != 1:
        what = (
            "there is no query"
            if not trees
            else f"there are {len(trees)} statements, but a single query was expected"
        )
        raise make_sql_error(what, query, 0, "pass one SELECT")
    tree: exp.Expression = trees[0]
    return tree


def parse_statements(query: str) -> list[Any]:
    """Returns the trees of statements that semicolons separate.

    Raises:
        SqlError: One breaks the grammar.
    """
    if not isinstance(query, str):
        raise make_sql_error(f"a query is a string, not {noun_for(query)}", hint="pass a string")
    if len(query) > QUERY_CHARACTERS_MAX:
        what = f"the query has {len(query):,} characters; at most {QUERY_CHARACTERS_MAX:,} are taken"
        raise make_sql_error(
            what, hint="keep values in a table and join it, instead of writing them into the query"
        )
    dialect = PenstockDialect()
    try:
        tokens = _with_suffixes(_with_quotes(dialect.tokenize(query), query), query)
        _refuse_clauses(tokens, query)
        tokens = list(_marked(tokens))
        # Behind the last semicolon may be a comment.
        trees = dialect.parser().parse(tokens, query)
        return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        what = first.get("description") or str(error)
        at = _offset(query, first)
        raise make_sql_error(_plain(what), query, at, _hint_at(query, at or 0)) from None
    except TokenError as error:
        raise make_sql_error("a quoted string or a comment does not end", query, hint="close it") from error
    except RecursionError:
        raise make_sql_error("the query is nested too deeply", hint="divide it with WITH") from None


def _found(match: re.Match[str]) -> str:
    return "the query ends" if match[1] == "SENTINEL" else f"got {match[1]}"


def _hint_at(query: str, at: int) -> str:
    """Returns the hint for an error of the grammar at a place of a query."""
    if _KEYS_BEFORE.search(query[:at]) and re.match(r"AS\b", query[at:], re.IGNORECASE):
        return "name a key in SELECT: SELECT TUMBLE(t, INTERVAL '1' MINUTE) AS w … GROUP BY w"
    return "correct the query here"


def _plain(what: str) -> str:
    """Returns a message of the parser as a clause."""
    what = what.splitlines()[0].rstrip(". ")
    if what.startswith("Required keyword"):
        return "an expression is missing"
    if "Unexpected token" in what:
        return "unexpected word"
    # The parser shows a token as the object that it is.
    what = re.sub(r"\bgot <Token .*?text: (.*?), line: .*", _found, what)
    return what if what.startswith("EMIT") else what[:1].lower() + what[1:]


def _offset(query: str, error: dict[str, Any]) -> int | None:
    """Returns the offset of a parser's error, which has a line, and the column of its token's end, from 1."""
    if not error.get("line"):
        return None
    lines = query.splitlines(keepends=True)[: error["line"] - 1]
    return sum(map(len, lines)) + max(0, int(error["col"]) - len(error.get("highlight") or " "))


def _with_quotes(tokens: list[Token], query: str) -> list[Token]:
    """Returns the tokens, where a quote that is written twice inside a text stands for itself, as in standard SQL."""
    found: list[Token] = []
    for token in tokens:
        before = found[-1] if found else None
        quote = query[token.start : token.start + 1]
        if (
            before is not None
            and before.token_type is token.token_type is TokenType.STRING
            and before.end + 1 == token.start
            and query[before.end : before.end + 1] == quote
        ):
            text = f"{before.text}{quote}{token.text}"
            found[-1] = Token(
                token.token_type, text, token.line, token.col, before.start, token.end, before.comments
            )
        else:
            found.append(token)
    return found


def _with_suffixes(tokens: list[Token], query: str) -> list[Token]:
    """Returns the tokens, where an integer keeps the suffix that names its type, instead of becoming a cast.

    The tokenizer makes three tokens of ``5S``: ``5``, ``::`` and ``S``, all at one place.
    """
    found: list[Token] = []
    for token in tokens:
        number = found[-2] if len(found) > 1 else None
        if (
            token.token_type in _OF_SUFFIXES
            and number is not None
            and (number.start, number.end) == (token.start, token.end)
        ):
            del found[-2:]
            token = _as(number, TokenType.NUMBER, query[number.start : number.end + 1])
        found.append(token)
    return found


def _refuse_clauses(tokens: list[Token], query: str) -> None:
    """Refuses clauses that the parser would read as a name, or pass on as a command with a line in the log."""
    if tokens and tokens[0].token_type is TokenType.COMMAND:
        what = f"this is {tokens[0].text.upper()}, not a query"
        raise make_sql_error(what, query, tokens[0].start, "write SELECT")
    for token, following in itertools.pairwise(tokens):
        if token.token_type is TokenType.IDENTIFIER or token.token_type is TokenType.STRING:
            continue
        text, after = token.text.upper(), following.text.upper()
        if text == "MATCH_RECOGNIZE" and after == "(":
            hint = "write a stateful DoFn over the rows of each key"
            raise make_sql_error("MATCH_RECOGNIZE is not supported", query, token.start, hint)
        if text == "WINDOW" and after in ("(", "TUMBLING", "HOPPING", "SESSION"):
            hint = "write TUMBLE(time, INTERVAL '10' MINUTES), HOP or SESSION in GROUP BY"
            name = "the function WINDOW" if after == "(" else f"WINDOW {after}"
            raise make_sql_error(f"{name} is not supported", query, token.start, hint)


def _marked(tokens: list[Token]) -> Iterator[Token]:
    """Yields the tokens, with one for each word that opens one of our clauses."""
    at = 0
    while at < len(tokens):
        token, following = tokens[at], tokens[at + 1 : at + 4]
        words = [each.text.upper() for each in following]
        text = token.text.upper() if token.token_type is not TokenType.IDENTIFIER else ""
        before = tokens[at - 1].token_type if at else None
        if text in RENDERINGS and before is TokenType.SELECT and _is_rendering(tokens, at):
            if following[0].token_type in (TokenType.DISTINCT, TokenType.ALL):
                # The parser takes what describes a SELECT after these.
                yield following[0]
                at += 1
            yield _as(token, TokenType.VAR, f"{text}{_RENDERING_MARK}")
        elif text == "EMIT" and words and words[0] in _EMIT_FOLLOWS and before is not TokenType.ALIAS:
            yield _as(token, _EMIT, "EMIT")
        elif text == "AS" and words[:3] == ["OF", "SYSTEM", "TIME"]:
            yield _as(token, _AS_OF, "AS OF SYSTEM TIME")
            at += 3
        elif text == "TABLE" and before in (TokenType.L_PAREN, TokenType.FARROW):
            # In a call, `TABLE bid` means the table, and `TABLE (SELECT ...)` the result of the query.
            end = _table_end(tokens, at + 1)
            if end < len(tokens) and tokens[end].token_type is TokenType.PARTITION_BY:
                yield from _marked(tokens[at + 1 : end])
                yield from _partitions(tokens, end + 1)
                at = end
                while at + 2 < len(tokens) and not _ends_partitions(tokens, at + 1):
                    at += 1
            elif words[:1] == ["("]:
                yield token
        elif token.token_type is TokenType.SESSION:
            yield _as(token, TokenType.VAR, token.text)
        else:
            yield token
        at += 1


def _table_end(tokens: list[Token], at: int) -> int:
    """Returns the place after a name, or after a query in parentheses."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += tokens[end].token_type is TokenType.L_PAREN
        depth -= tokens[end].token_type is TokenType.R_PAREN
        if depth <= 0:
            return end + 1
    return len(tokens)


def _partitions(tokens: list[Token], at: int) -> Iterator[Token]:
    """Yields the columns after ``PARTITION BY``, as an argument with a name."""
    start = tokens[at - 1]
    for token_type, text in (
        (TokenType.COMMA, ","),
        (TokenType.VAR, "partition_by"),
        (TokenType.FARROW, "=>"),
        (TokenType.VAR, "DESCRIPTOR"),
        (TokenType.L_PAREN, "("),
    ):
        yield _as(start, token_type, text)
    while at < len(tokens) and not _ends_partitions(tokens, at):
        yield tokens[at]
        at += 1
    yield _as(start, TokenType.R_PAREN, ")")


def _ends_partitions(tokens: list[Token], at: int) -> bool:
    return tokens[at].token_type is TokenType.R_PAREN or (
        tokens[at].token_type is TokenType.COMMA and tokens[at + 1].text.upper() == "DESCRIPTOR"
    )


def _is_rendering(tokens: list[Token], at: int) -> bool:
    """True if the word after SELECT is a rendering, and not a column of that name."""
    if at + 1 >= len(tokens):
        return False
    following = tokens[at + 1]
    if following.token_type is TokenType.STAR:
        return at + 2 < len(tokens) and tokens[at + 2].token_type in (
            TokenType.FROM,
            TokenType.COMMA,
            TokenType.EXCEPT,
        )
    if following.token_type in _NO_OPERAND:
        return False
    return (
        following.token_type
        in (
            *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN),
            *(TokenType.DISTINCT, TokenType.ALL, TokenType.CASE, TokenType.DASH),
        )
        or following.text.isidentifier()
    )


def find_outermost_select(tree: exp.Expression) -> exp.Expression:
    """Returns the SELECT whose words stand for the whole query: the first one."""
    while isinstance(tree, (exp.Subquery, exp.SetOperation)):
        tree = tree.this
    return tree


def rendering_of(select: exp.Expression) -> str | None:
    """Returns the rendering after the word SELECT; None if there is none.

    >>> rendering_of(parse_query("SELECT STREAM a FROM t"))
    'STREAM'
    """
    modifiers = select.args.get("operation_modifiers")
    return str(modifiers[0].this).removesuffix(_RENDERING_MARK) if modifiers else None


def _as(token: Token, token_type: TokenType, text: str) -> Token:
    return Token(token_type, text, token.line, token.col, token.start, token.end, token.comments)


def position_of(node: object) -> int | None:
    """Returns the offset of a part of a tree in its query; None if none of its tokens knows."""
    for each in node.walk() if isinstance(node, exp.Expression) else ():
        # A query is shown by its first words, and not by its EMIT.
        if "start" in each.meta and (each is node or not isinstance(each, EmitClause)):
            return int(each.meta["start"])
    return None
