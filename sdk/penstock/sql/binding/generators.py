"""Generators in a query: in FROM, behind LATERAL and LATERAL VIEW, and in SELECT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

from sqlglot import exp

from penstock.checks.similar_names import hint_at_name
from penstock.scalars.tree import Literal, Scalar, columns_of, shift_columns
from penstock.sql.binding.scopes import Grouping, Scope, Visible
from penstock.sql.binding.statement import Statement, text_of
from penstock.sql.generators.functions import NAMES, REFUSED
from penstock.sql.generators.generator import Generator
from penstock.sql.plan.generating import generate
from penstock.sql.plan.relations import ColumnDef, Columns, Generate, Relation, columns_as_scalars

IN_FROM = tuple(name for name in NAMES if " " not in name)
"""The names of generators that FROM may call."""
_SELECTED = tuple(name for name, (record, _) in NAMES.items() if not record.in_from_only)


class Expressions(Protocol):
    """Binds expressions of the rows of which a generator makes others."""

    def scalar(self, node: object) -> Scalar:
        """Returns the value of an expression."""

    def constant(self, node: exp.Expression) -> Literal:
        """Returns a value that depends on no row."""


@dataclass(frozen=True)
class Called:
    """A call of a generator in the tree of a query.

    Attributes:
        node: The call.
        record: The generator.
        is_outer: Whether it makes a row of NULLs where it would make none.
        arguments: Its arguments.
    """

    node: exp.Expression
    record: Generator
    is_outer: bool
    arguments: Sequence[Any]

    @property
    def name(self) -> str:
        """Its name for messages."""
        return f"{self.record.name.split()[0]}{'_OUTER' if self.is_outer else ''}"


@dataclass(frozen=True)
class Bound:
    """A generator whose arguments have a meaning.

    Attributes:
        called: The call.
        arguments: What it reads of a row.
        columns: The columns that it makes.
    """

    called: Called
    arguments: tuple[Scalar, ...]
    columns: Columns

    def over(self, relation: Relation, kind: str = "inner", condition: Scalar | None = None) -> Relation:
        """Returns rows with what it makes of each."""
        made = Generate(
            relation,
            self.called.record.name,
            self.arguments,
            self.columns,
            self.called.is_outer,
            kind,
            condition,
        )
        return generate(made)


def called_generator(statement: Statement, node: object) -> Called | None:
    """Returns the call of a generator that a part of the tree is; None if it is another."""
    if isinstance(node, exp.Unnest):
        name = "UNNEST WITH ORDINALITY" if node.args.get("offset") else "UNNEST"
        return Called(node, NAMES[name][0], False, node.expressions)
    if not isinstance(node, exp.Anonymous) or node.name.upper() in statement.tables.functions:
        return None
    name = node.name.upper()
    if name in REFUSED:
        statement.refuse(node, f"{name} is not supported", REFUSED[name])
    if name not in NAMES:
        return None
    return Called(node, *NAMES[name], node.expressions)


def bind_generator(statement: Statement, called: Called, expressions: Expressions) -> Bound:
    """Returns a generator whose arguments have a meaning for the rows of a scope."""
    inner = next((each for part in called.arguments for each in _generators_in(statement, part)), None)
    if inner is not None:
        refuse_inside(statement, inner)
    given = [each.expression if isinstance(each, exp.Kwarg) else each for each in called.arguments]
    count = called.record.constants
    for each in given[:count]:
        if each.find(exp.Column) is not None:
            what = f"{called.name} takes a constant here, but {each.sql()} is not a constant"
            statement.refuse(each, what, "EXPLODE(SEQUENCE(a, b)) makes numbers of columns")
    arguments: list[Scalar] = [
        *map(expressions.constant, given[:count]),
        *map(expressions.scalar, given[count:]),
    ]
    found, columns = statement.typed(called.node, lambda: called.record.bind(tuple(arguments)))
    return Bound(called, found, columns)


def _generators_in(statement: Statement, node: exp.Expression) -> list[Called]:
    parts = node.walk(prune=lambda each: isinstance(each, exp.Query))
    found = [called_generator(statement, each) for each in parts if isinstance(each, exp.Anonymous)]
    return [each for each in found if each is not None and each.record.name != "RANGE"]


def refuse_inside(statement: Statement, called: Called) -> NoReturn:
    """Refuses a generator inside an expression."""
    if called.record.in_from_only:
        hint = f"write FROM t, LATERAL {called.name}(…) AS x"
        statement.refuse(called.node, f"{called.name} belongs in FROM", hint)
    what = f"{called.name} makes rows, and is inside an expression"
    statement.refuse(called.node, what, "select it in a subquery of FROM, and name its column here")


# FROM


def visible_of(
    statement: Statement,
    bound: Bound,
    qualifier: str | None,
    names: Sequence[Any],
    width: int,
    is_outer: bool,
) -> list[Visible]:
    """Returns the names of the columns that a generator adds to rows of a number of columns.

    Args:
        statement: The query.
        bound: The generator.
        qualifier: The name of the rows, or None.
        names: The names of all columns; none for their own.
        width: The number of columns before them.
        is_outer: Whether NULL may stand in their place.
    """
    if names and len(names) != len(bound.columns):
        count = len(bound.columns)
        made = f"{bound.called.name} makes {count} column{'s' * (count != 1)}"
        what = f"{made}, and the number of names is {len(names)}"
        own_names = ", ".join(each.name for each in bound.columns)
        statement.refuse(bound.called.node, what, f"its columns in their order: {own_names}")
    columns = bound.columns
    if is_outer:
        columns = tuple(ColumnDef(each.name, each.type.or_null()) for each in columns)
    own = [text_of(name) for name in names] or [each.name for each in columns]
    return [
        Visible(qualifier, name, replace(scalar, name=name))
        for name, scalar in zip(own, columns_as_scalars(columns, width), strict=True)
    ]


def view_of(statement: Statement, node: exp.Expression, scope: Scope, expressions: Expressions) -> Scope:
    """Returns the rows of a scope behind one LATERAL VIEW."""
    called = called_generator(statement, node.this)
    if called is None or called.record.in_from_only:
        name = node.this.name.upper() if called is None else called.name
        what = f"LATERAL VIEW takes a generator that can be selected, but {name} is not one"
        hint = "write it in FROM" if called is not None else hint_at_name(name, _SELECTED)
        statement.refuse(node.this, what, hint)
    bound = bind_generator(statement, called, expressions)
    if node.args.get("outer"):
        bound = replace(bound, called=replace(called, is_outer=True))
    return joined(statement, scope, bound, node.args.get("alias"))


def names_of(alias: exp.Expression | None, node: exp.Expression) -> tuple[str | None, list[Any]]:
    """Returns the name that an alias has for rows, and those for columns."""
    if alias is None:
        return None, []
    names = list(alias.args.get("columns") or ())
    ordinality = node.args.get("offset") if isinstance(node, exp.Unnest) else None
    # The parser keeps the name of the number of a row apart.
    if isinstance(ordinality, exp.Identifier):
        names.append(ordinality)
    return alias.name or None, names


def joined(
    statement: Statement,
    scope: Scope,
    bound: Bound,
    alias: exp.Expression | None,
    kind: str = "inner",
    condition_of: Callable[[Scope], Scalar] | None = None,
) -> Scope:
    """Returns the rows of a scope with what a generator makes of each.

    Args:
        statement: The query.
        scope: The rows.
        bound: The generator.
        alias: The names of what it makes.
        kind: ``inner`` or ``left``.
        condition_of: Returns what must hold of a row and a generated row, given their names.
    """
    qualifier, names = names_of(alias, bound.called.node)
    width = len(scope.relation.columns)
    is_left = kind == "left"
    visible = visible_of(statement, bound, qualifier, names, width, bound.called.is_outer)
    condition = (
        None if condition_of is None else condition_of(Scope(scope.relation, [*scope.visible, *visible]))
    )
    if is_left and (condition is None or (isinstance(condition, Literal) and condition.value is True)):
        bound, kind, condition = replace(bound, called=replace(bound.called, is_outer=True)), "inner", None
    if is_left:
        visible = visible_of(statement, bound, qualifier, names, width, is_outer=True)
    relation = bound.over(scope.relation, kind, condition)
    return Scope(relation, [*scope.visible, *visible], scope.arrival)


# SELECT


@dataclass
class SelectedGenerators:
    """The generators of a SELECT, which make rows of its rows, or of its groups.

    Over groups, a column is numbered from `_FIRST` on, until `compute` knows how many columns a group has.

    Attributes:
        statement: The query.
        found: The generators over groups.
        columns: The columns of all generators, by the id of the part of the tree.
    """

    statement: Statement
    found: list[Bound] = field(default_factory=list)
    columns: dict[int, list[tuple[str, Scalar]]] = field(default_factory=dict)

    def bind(
        self, tree: exp.Expression, rows: Scope | Grouping, expressions_of: Callable[[Any], Any]
    ) -> None:
        """Binds the generators that are selected: over rows, they are part of the relation from then on."""
        for node in tree.expressions:
            inner = node.this if isinstance(node, (exp.Alias, exp.Aliases)) else node
            called = called_generator(self.statement, inner)
            if called is None or called.record.in_from_only:
                self._refuse_names(node)
                continue
            bound = bind_generator(self.statement, called, expressions_of(rows))
            names = _names_in(node)
            if isinstance(rows, Grouping):
                if self.found:
                    what = "two generators are in a query that groups"
                    self.statement.refuse(called.node, what, "group in a subquery of FROM")
                visible = visible_of(self.statement, bound, None, names, _FIRST, called.is_outer)
                self.found.append(bound)
            else:
                width = len(rows.relation.columns)
                visible = visible_of(self.statement, bound, None, names, width, called.is_outer)
                rows.relation = bound.over(rows.relation)
                # Items and clauses behind it may name its columns.
                rows.visible += [
                    replace(each, in_star=False) for each in visible if not rows.has(None, each.name)
                ]
            self.columns[id(node)] = [(each.name, each.scalar) for each in visible]

    def _refuse_names(self, node: exp.Expression) -> None:
        if isinstance(node, exp.Aliases):
            what = "several names follow an expression that makes one column"
            self.statement.refuse(node, what, "write one name, or a generator such as POSEXPLODE")

    def refuse_over(self, has_over: bool) -> None:
        """Refuses window functions beside a generator over groups."""
        if self.found and has_over:
            what = "a generator and a window function are in one query that groups"
            self.statement.refuse(self.found[0].called.node, what, "group in a subquery of FROM")

    def compute(
        self, relation: Relation, place: Callable[[Scalar], Scalar]
    ) -> tuple[Relation, Callable[[Scalar], Scalar]]:
        """Returns the groups with what generators make of each, and what moves an expression to their columns."""
        if not self.found:
            return relation, place
        [bound] = self.found
        width = len(relation.columns)
        placed = replace(bound, arguments=tuple(map(place, bound.arguments)))

        def place_all(scalar: Scalar) -> Scalar:
            moved = {at: at - _FIRST + width for at in columns_of(scalar) if at >= _FIRST}
            return place(scalar) if not moved else shift_columns(scalar, moved)

        return placed.over(relation), place_all


_FIRST = 1 << 24
"""The place of the first generated column, as long as the number of columns before it is not known."""


def _names_in(node: exp.Expression) -> list[Any]:
    if isinstance(node, exp.Aliases):
        return list(node.expressions)
    return [node.args["alias"]] if isinstance(node, exp.Alias) else []
