"""Reads a table or a query: the driver divides the rows into parts, and each task asks the database for its own.

On PostgreSQL, the driver holds a transaction open whose snapshot all tasks share, until everything is read.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import itertools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from penstock.checks.similar_names import hint_at_name
from penstock.elements.row import make_row_class
from penstock.error import RunnerError, refusal
from penstock.io.database import DatabaseSource
from penstock.typehints import typehints
from penstock.typehints.column_types import LOCAL_DATETIME, decimal_of
from penstock.typehints.row_type import RowTypeConstraint
from penstock.values.types import DECIMAL_DIGITS, TYPES
from penstock_connectors.database.address import Address
from penstock_connectors.database.columns import POSTGRES
from penstock_connectors.database.errors import mask_passwords
from penstock_spark.connecting.reading import PartsReader, Scan, parallelism_of, scan_of_parts
from penstock_spark.connecting.running import current_reporting, fail_step

if TYPE_CHECKING:
    import sqlalchemy as sa
    from sqlalchemy import Connection, Select

_ALIAS = "penstock_query"
WITHOUT_TIME_LIMITS = (
    "SELECT set_config(name, '0', false) FROM pg_settings "
    "WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')"
)

_POSTGRES_TYPES = {name: value.hint for value, names in POSTGRES.items() for name in names}


@dataclass(frozen=True)
class Column:
    """A column of what is read."""

    name: str
    type: Any  # SQLAlchemy's type; None if only the driver of the database knows it.
    hint: object


@dataclass(frozen=True)
class Part:
    """The rows of one task: by a condition in SQL, or by the values of a column."""

    predicate: str | None = None
    start: object = None
    end: object = None
    has_nulls: bool = True


def open_database(source: DatabaseSource, spark: SparkSession, where: str) -> Scan:
    """Rows, in the database's order."""
    address = Address.of(source, where)
    with _planning(address, source) as connection:
        found = _columns(connection, source, address)
        parts = _parts(connection, source, found, address, parallelism_of(spark))
    snapshot = Snapshot.of(address, source) if address.is_postgres and len(parts) > 1 else None
    name = None if snapshot is None else snapshot.name
    reader = RowsReader(source, address, _choose_columns(source, found), [[part] for part in parts], name)
    # The scan lives as long as the run, and with it the snapshot.
    return scan_of_parts(spark, reader) if snapshot is None else scan_of_parts(spark, reader, snapshot.close)


def type_of_database(source: DatabaseSource, spark: SparkSession | None, where: str) -> object:
    """By the columns, for which the database is asked when the transform is applied; None if that fails."""
    address = Address.of(source, where)
    address.parse()  # Refuses a package that is missing.
    with contextlib.suppress(Exception), _planning(address, source) as connection:
        columns = _choose_columns(source, _columns(connection, source, address))
        return RowTypeConstraint.from_fields([(column.name, column.hint) for column in columns])
    return None


@contextlib.contextmanager
def _planning(address: Address, source: DatabaseSource) -> Iterator[Connection]:
    """A connection of the driver; what the database says of the user's names and SQL is shown."""
    from sqlalchemy.exc import SQLAlchemyError

    engine = address.engine()
    try:
        with engine.connect() as connection:
            yield _prepare(connection, address)
    except SQLAlchemyError as error:
        if address.is_postgres and (found := _unholdable(error, (), source, address)):
            raise found from None
        # The whole text would repeat the query.
        said = mask_passwords(str(getattr(error, "orig", None) or error).partition("\n")[0], address)
        what = f"cannot read {source.describe()}: {said}"
        hint = "check the names of tables and columns, the url, the user and the password"
        raise RunnerError(what, where=address.where, hint=hint) from None
    finally:
        engine.dispose()


def _prepare(connection: Connection, address: Address) -> Connection:
    if not address.is_postgres:
        return connection
    return connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


# Columns


def _columns(connection: Connection, source: DatabaseSource, address: Address) -> dict[str, Column]:
    """All columns by their names; ValueError if one is missing, or two have the same name."""
    found = _of_query(connection, source, address) if source.table is None else _of_table(connection, address)
    by_name = {column.name: column for column in found}
    partition = () if source.partition_column is None else (source.partition_column,)
    for name in (*(source.columns or ()), *partition):
        if name not in by_name:
            whose = source.describe() if source.table is None else f"the {source.describe()}"
            hint = hint_at_name(name, by_name, f"it has {', '.join(column.name for column in found)}")
            raise refusal(ValueError, f"{whose} has no column {name}", where=address.where, hint=hint)
    if len(by_name) < len(found):
        what = f"two columns of {source.describe()} have the same name"
        raise refusal(ValueError, what, where=address.where, hint="name each column with AS")
    return by_name


def _choose_columns(source: DatabaseSource, found: Mapping[str, Column]) -> tuple[Column, ...]:
    return tuple(found[name] for name in source.columns or found)


def _of_table(connection: Connection, address: Address) -> list[Column]:
    import sqlalchemy as sa

    schema, name = address.parts
    inspector = sa.inspect(connection)
    try:
        described = inspector.get_columns(name, schema=schema)
    except sa.exc.NoSuchTableError:
        what = f"there is no table {address.table} in {address.shown}"
        known = inspector.get_table_names(schema=schema)
        hint = hint_at_name(name, known, "check its name and its schema")
        raise refusal(ValueError, what, where=address.where, hint=hint) from None
    kinds = [_readable(column["type"], connection.dialect.name) for column in described]
    return [
        Column(column["name"], kind, _nullable(_hint(kind)) if column["nullable"] else _hint(kind))
        for column, kind in zip(described, kinds, strict=True)
    ]


def _nullable(hint: object) -> object:
    return hint if hint is Any else typehints.Optional[hint]


def _readable(kind: object, dialect: str) -> object:
    """The type as which to read a column."""
    import sqlalchemy as sa

    if isinstance(kind, sa.Uuid):
        return sa.Uuid(as_uuid=False)
    if dialect == "sqlite" and isinstance(kind, sa.Numeric) and not isinstance(kind, sa.Float):
        # SQLite has no other numbers with fractions.
        return sa.Float()
    return kind


def _hint(kind: Any) -> object:
    """The type of a column's values in Python, without null."""
    import sqlalchemy as sa

    if isinstance(kind, sa.Uuid):
        return str
    if isinstance(kind, sa.Numeric) and not isinstance(kind, sa.Float):
        precision, scale = kind.precision, kind.scale or 0
        # PostgreSQL has longer numbers, and scales below zero, than a column of Spark can hold.
        if precision is None or not 0 <= scale <= precision <= DECIMAL_DIGITS:
            return decimal.Decimal
        return decimal_of(precision, scale)
    if isinstance(kind, sa.DateTime):
        return datetime.datetime if kind.timezone else LOCAL_DATETIME
    try:
        found = kind.python_type
    except NotImplementedError:
        return Any
    return found if found in _CLASSES else Any


_CLASSES = frozenset(each.python for each in TYPES)


def _of_query(connection: Connection, source: DatabaseSource, address: Address) -> list[Column]:
    import sqlalchemy as sa

    result = connection.execute(_rows_of(source, ()).where(sa.false()))
    names = list(result.keys())
    if not address.is_postgres:
        return [Column(name, None, Any) for name in names]
    assert result.cursor is not None
    described: Sequence[Any] = result.cursor.description
    found = [_type_name(each.type_code) for each in described]
    return [
        Column(
            name,
            sa.Uuid(as_uuid=False) if kind == "uuid" else None,
            _nullable(_POSTGRES_TYPES.get(kind, Any)),
        )
        for name, kind in zip(names, found, strict=True)
    ]


def kind_of_type(oid: int) -> object:
    """The Python type for PostgreSQL's type of this number; its name or its number if that is unknown."""
    name = _type_name(oid)
    return _POSTGRES_TYPES.get(name, name or oid)


def _type_name(oid: int) -> str:
    """The name of PostgreSQL's type of a number; an empty text if it is not one of its own."""
    from psycopg import adapters

    info = adapters.types.get(oid)
    if info is None:
        return ""
    # psycopg also finds the type of the elements by the number of an array.
    return info.name if info.oid == oid else f"{info.name}[]"


def _rows_of(source: DatabaseSource, columns: Sequence[Column]) -> Select[Any]:
    """The statement that reads all rows; without columns, all of them."""
    import sqlalchemy as sa

    selected: list[Any] = [
        sa.column(column.name) if column.type is None else sa.column(column.name, column.type)
        for column in columns
    ] or [sa.text("*")]
    if source.table is not None:
        schema, _, name = source.table.rpartition(".")
        return sa.select(*selected).select_from(sa.table(name, schema=schema or None))
    return sa.select(*selected).select_from(sa.text(f"{_in_parentheses(str(source.query))} {_ALIAS}"))


def _in_parentheses(sql: str) -> str:
    """The user's SQL as SQLAlchemy reads it, for which a colon begins the name of a parameter."""
    # A comment at the end must not hide the parenthesis.
    return "(" + sql.replace(":", "\\:") + "\n)"


# Parts


def _parts(
    connection: Connection,
    source: DatabaseSource,
    found: Mapping[str, Column],
    address: Address,
    parallelism: int,
) -> tuple[Part, ...]:
    import sqlalchemy as sa

    if source.predicates:
        return tuple(Part(predicate) for predicate in source.predicates)
    if source.partition_column is None:
        return (Part(),)
    number = source.num_partitions or parallelism
    first, last = source.lower_bound, source.upper_bound
    if number > 1 and (first is None or last is None):
        column = sa.column(source.partition_column, found[source.partition_column].type)
        statement = _rows_of(source, ()).with_only_columns(sa.func.min(column), sa.func.max(column))
        smallest, largest = connection.execute(statement).one()
        first = smallest if first is None else first
        last = largest if last is None else last
    cuts = (
        []
        if number == 1 or first is None or last is None
        else cuts_between(first, last, number, address.where)
    )
    edges = [None, *cuts, None]
    return tuple(
        Part(None, start, end, number == 0) for number, (start, end) in enumerate(itertools.pairwise(edges))
    )


def cuts_between(first: Any, last: Any, number: int, where: str) -> list[Any]:
    """Values at which to cut, so that there are at most `number` parts of about the same width.

    >>> cuts_between(0, 99, 4, ""), cuts_between(3, 3, 4, "")
    ([25, 50, 75], [])
    >>> cuts_between(datetime.date(2026, 1, 1), datetime.date(2026, 1, 10), 2, "")
    [datetime.date(2026, 1, 6)]
    """
    one: Any
    if isinstance(first, datetime.datetime):
        one = datetime.timedelta(microseconds=1)
    elif isinstance(first, datetime.date):
        one = datetime.timedelta(days=1)
    elif _is_number(first) and _is_number(last):
        one, first, last = 1, int(first), int(last)
    else:
        what = (
            f"partition_column has values of the type {type(first).__name__}, which cannot be divided evenly"
        )
        hint = "choose a column of integers, dates or times, or pass predicates=[...]"
        raise refusal(ValueError, what, where=where, hint=hint)
    try:
        width = (last - first) // one + 1
    except TypeError:
        what = "the bounds and the values of partition_column are of different types"
        hint = "pass bounds of the type of the column, with a time zone if it has one"
        raise refusal(ValueError, what, where=where, hint=hint) from None
    places = [width * place // number for place in range(1, number)]
    return [first + place * one for place in dict.fromkeys(places) if place > 0]


def _is_number(value: object) -> bool:
    """True if it is a number other than a float, NaN or an infinity."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole or (isinstance(value, decimal.Decimal) and value.is_finite())


def _literal(value: Any) -> sa.BindParameter[Any]:
    """A cut in SQL, with the type of the value and not of the column."""
    import sqlalchemy as sa

    is_long = isinstance(value, int) and value.bit_length() > 63
    return sa.literal(decimal.Decimal(value) if is_long else value)


class Snapshot:
    """A state of the database that other transactions can see, as long as this one is open."""

    def __init__(self, name: str, connection: Connection) -> None:
        self.name = name
        self._close = weakref.finalize(self, connection.close)

    @staticmethod
    def of(address: Address, source: DatabaseSource) -> Snapshot:
        from sqlalchemy.exc import SQLAlchemyError

        with contextlib.ExitStack() as opened:
            try:
                connection = opened.enter_context(address.engine().connect())
                connection = _prepare(connection, address)
                # The transaction has nothing to do until all is read, and the server must not end it for that.
                connection.exec_driver_sql(WITHOUT_TIME_LIMITS)
                name = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
            except SQLAlchemyError as error:
                raise _unreadable(error, source, address) from None
            # Only a snapshot that exists keeps its connection.
            opened.pop_all()
        return Snapshot(str(name), connection)

    def close(self) -> None:
        self._close()


# In tasks


@dataclass(frozen=True)
class RowsReader(PartsReader):
    source: DatabaseSource
    address: Address
    columns: tuple[Column, ...]
    parts: Sequence[Sequence[Part]]
    snapshot: str | None

    def __reduce__(self) -> tuple[Any, ...]:
        # The description has the user's URL, which may be a function of the main program; the address has its text.
        source = replace(self.source, url="")
        return RowsReader, (source, self.address, self.columns, self.parts, self.snapshot)

    def read(self, part: Part) -> Iterator[list[Any]]:
        try:
            yield from self._rows(part)
        except GeneratorExit:
            raise
        except BaseException as error:
            fail_step(self._explained(error), self.address.where)

    def _rows(self, part: Part) -> Iterator[list[Any]]:
        engine = self.address.engine()
        try:
            with engine.connect() as connection:
                prepared = _prepare(connection, self.address)
                if self.snapshot is not None:
                    prepared.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{self.snapshot}'")
                streaming = prepared.execution_options(
                    stream_results=True, max_row_buffer=self.source.fetch_size
                )
                names = tuple(column.name for column in self.columns)
                make = make_row_class(names)
                in_utc = [place for place, column in enumerate(self.columns) if _is_instant(column)]
                for page in streaming.execute(self._statement(part)).partitions(self.source.fetch_size):
                    yield [make(**dict(zip(names, _with_utc(row, in_utc), strict=True))) for row in page]
        finally:
            engine.dispose()

    def _statement(self, part: Part) -> Select[Any]:
        import sqlalchemy as sa

        statement = _rows_of(self.source, self.columns)
        if part.predicate is not None:
            return statement.where(sa.text(_in_parentheses(part.predicate)))
        if part.start is None and part.end is None:
            return statement
        column: sa.ColumnClause[Any] = sa.column(str(self.source.partition_column))
        start = None if part.start is None else column >= _literal(part.start)
        end = None if part.end is None else column < _literal(part.end)
        within = sa.and_(*(each for each in (start, end) if each is not None))
        return statement.where(sa.or_(within, column.is_(None)) if part.has_nulls else within)

    def _explained(self, error: BaseException) -> BaseException:
        from sqlalchemy.exc import SQLAlchemyError

        if self.address.is_postgres and (
            found := _unholdable(error, self.columns, self.source, self.address)
        ):
            return found
        if isinstance(error, SQLAlchemyError):
            return _unreadable(error, self.source, self.address)
        return error


def _unholdable(
    error: BaseException, columns: Sequence[Column], source: DatabaseSource, address: Address
) -> ValueError | None:
    """The refusal of a value of PostgreSQL that Python's class does not hold; None for another error."""
    from penstock_connectors.database.postgres_values import make_unrepresentable_error

    whose = f"the {source.what}" if source.table is not None else source.what
    hints = {column.name: column.hint for column in columns}
    return make_unrepresentable_error(getattr(error, "orig", None) or error, hints, whose, address.where)


def _is_instant(column: Column) -> bool:
    return datetime.datetime in (column.hint, *getattr(column.hint, "union_types", ()))


def _with_utc(row: Sequence[Any], places: Sequence[int]) -> Sequence[Any]:
    """The values of a row, with the instants at these places in UTC."""
    if not places:
        return row
    values = list(row)
    for place in places:
        if values[place] is not None:
            values[place] = values[place].astimezone(datetime.UTC)
    return values


def _unreadable(error: object, source: DatabaseSource, address: Address) -> RunnerError:
    """The database's error while it was read, which may quote values: only if the user wants to see elements."""
    original = getattr(error, "orig", None) or error
    state = getattr(original, "sqlstate", None)
    said = f"the database stopped with {type(original).__name__}" + (f" {state}" if state else "")
    if current_reporting().show_elements:
        said += f": {mask_passwords(str(original), address)}"
    what = f"cannot read {source.what} of {address.shown}: {said}"
    return RunnerError(what, where=address.where, hint="check whether the database runs, and its log")
