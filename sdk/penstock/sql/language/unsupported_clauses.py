"""Refuses clauses that the parser accepts and the binder does not support, and which would be ignored silently."""

from __future__ import annotations

from sqlglot import exp

from penstock.scalars.functions import IN_PYTHON
from penstock.sql.errors import make_sql_error
from penstock.sql.language.dialect import position_of

_SET_OPERATION = frozenset(
    ["this", "expression", "distinct", "with_", "order", "limit", "offset", "emit", "as_of"]
)
# The arguments that the binder reads, or refuses on its own, by the class of a part.
_READ: dict[type, frozenset[str]] = {
    exp.Select: frozenset(
        [
            *("expressions", "from_", "joins", "where", "group", "having", "qualify", "distinct", "order"),
            *("limit", "offset", "with_", "hint", "emit", "as_of", "operation_modifiers"),
            # The binder refuses these.
            *("match", "laterals", "cluster", "distribute", "sort", "sample", "windows", "pivots", "connect"),
        ]
    ),
    exp.Union: _SET_OPERATION,
    exp.Except: _SET_OPERATION,
    exp.Intersect: _SET_OPERATION,
    exp.Subquery: frozenset(["this", "alias", "with_", "joins", "order", "limit", "offset", "emit", "as_of"]),
    exp.Table: frozenset(["this", "alias", "joins", "db", "catalog", "version"]),
    exp.Values: frozenset(["expressions", "alias", "order", "limit", "offset", "emit", "as_of"]),
    exp.Join: frozenset(["this", "kind", "side", "method", "on", "using", "hint"]),
    exp.Limit: frozenset(["expression", "limit_options"]),
    exp.Fetch: frozenset(["direction", "count", "limit_options"]),
    exp.LimitOptions: frozenset(["rows"]),
    exp.Offset: frozenset(["expression"]),
    exp.Ordered: frozenset(["this", "desc", "nulls_first"]),
    exp.Star: frozenset(["except_"]),
    exp.Like: frozenset(["this", "expression", "negate"]),
    exp.ILike: frozenset(["this", "expression", "negate"]),
    exp.RegexpLike: frozenset(["this", "expression"]),
    exp.Between: frozenset(["this", "low", "high"]),
    exp.In: frozenset(["this", "expressions", "query"]),
    exp.Cast: frozenset(["this", "to", "safe"]),
    exp.TryCast: frozenset(["this", "to", "safe"]),
    exp.Case: frozenset(["this", "ifs", "default"]),
    exp.Trim: frozenset(["this", "expression", "position"]),
}
_NAMES = {
    "by_name": "BY NAME",
    "expressions": "LIMIT ... BY",
    "format": "CAST with FORMAT",
    "limit_options": "LIMIT with options",
    "locks": "FOR UPDATE",
    "percent": "PERCENT",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "unnest": "IN UNNEST",
    "unpivots": "UNPIVOT",
    "with_ties": "WITH TIES",
}
_HINTS = {
    "by_name": "list the columns of both sides in the same order",
    "format": IN_PYTHON,
    "into": "write the result with a sink",
    "pivots": "write a CASE in an aggregate for each column",
    "unpivots": "write UNION ALL of a SELECT for each column",
    "with_ties": "write QUALIFY ROW_NUMBER() OVER (...) <= n",
}


def refuse_unsupported_clauses(tree: exp.Expression, query: str) -> None:
    """Refuses what would be lost.

    Args:
        tree: The tree of the query.
        query: Its text.

    Raises:
        SqlError: A part of the query has an argument that nothing reads.

    >>> from penstock.sql.language.dialect import parse_query
    >>> query = "SELECT a FROM t TABLESAMPLE (1 ROWS)"
    >>> refuse_unsupported_clauses(parse_query(query), query)
    Traceback (most recent call last):
    ...
    penstock.sql.errors.SqlError: TABLESAMPLE is not supported
      line 1, column 15 of the query
        SELECT a FROM t TABLESAMPLE (1 ROWS)
                      ^
      hint: see the page about SQL for what is
    """
    for node in tree.walk():
        read = _READ.get(type(node))
        if read is None:
            continue
        for key, value in node.args.items():
            if key not in read and value not in (None, False, [], ""):
                if key == "pivots" and value[0].args.get("unpivot"):
                    key = "unpivots"
                name = _NAMES.get(key) or key.strip("_").replace("_", " ").upper()
                hint = _HINTS.get(key, "see the page about SQL for what is")
                raise make_sql_error(f"{name} is not supported", query, position_of(node), hint)
