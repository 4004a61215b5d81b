"""Looks at a database before a run starts: whether it is there, and whether the table takes the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Inspector, inspect
from sqlalchemy.exc import NoSuchTableError, SQLAlchemyError

from penstock.error import RunnerError, refusal
from penstock_connectors.database.address import Address
from penstock_connectors.database.errors import mask_passwords
from penstock_connectors.database.layout import Layout
from penstock_connectors.database.types import choose_type, explain_mismatch

if TYPE_CHECKING:
    import pyarrow as pa


def check_table(address: Address, layout: Layout, create: bool) -> None:
    """Refuses what would fail later; writes nothing."""
    engine = address.engine()
    try:
        inspector = inspect(engine)
        schema, name = address.parts
        if inspector.has_table(name, schema=schema):
            _check_columns(inspector, address, layout, engine.dialect.name)
        elif not create:
            raise refusal(
                ValueError,
                f"there is no table {address.table} in {address.shown}",
                where=address.where,
                hint="create it, pass create=True, or check the name",
            )
        else:
            _check_new(address, layout, engine.dialect.name)
    except NoSuchTableError:
        raise refusal(
            ValueError, f"there is no table {address.table}", where=address.where, hint="create it"
        ) from None
    except SQLAlchemyError as error:
        raise make_unreachable_error(error, address) from None
    finally:
        engine.dispose()


def make_unreachable_error(error: object, address: Address) -> RunnerError:
    """Returns the error for a failed connection; its text comes from the client library, and may name the user."""
    # Without the client library's exception, SQLAlchemy's own text says little.
    original = getattr(error, "orig", None) or (
        type(error).__name__ if isinstance(error, SQLAlchemyError) else error
    )
    said = mask_passwords(str(original), address)
    what = f"cannot connect to {address.shown}: {said}"
    hint = "check whether the database runs, and at the url, the user and the password"
    return RunnerError(what, where=address.where, hint=hint)


def _check_new(address: Address, layout: Layout, dialect: str) -> None:
    for field in layout.schema:
        why = explain_mismatch(field.type, choose_type(field.type, field.name in layout.key), dialect)
        if why is not None and dialect != "postgresql":
            raise _misfit(address, field, why)


def _check_columns(inspector: Inspector, address: Address, layout: Layout, dialect: str) -> None:
    schema, name = address.parts
    columns = {column["name"]: column for column in inspector.get_columns(name, schema=schema)}
    for field in layout.schema:
        if field.name not in columns:
            what = f"the table {address.table} has no column {field.name}"
            hint = f"add it, or leave out the field; the columns are {', '.join(columns)}"
            raise refusal(ValueError, what, where=address.where, hint=hint)
        column = columns[field.name]
        if column.get("computed"):
            raise _misfit(address, field, "the database computes it")
        why = explain_mismatch(field.type, column["type"], dialect)
        if why is not None:
            raise _misfit(address, field, why)
    primary = list(inspector.get_pk_constraint(name, schema=schema).get("constrained_columns") or ())
    # A database numbers the rows in such a column itself.
    numbered = {*primary} if len(primary) == 1 and dialect != "postgresql" else set()
    for column_name, column in columns.items():
        has_default = column.get("default") is not None or column.get("identity") or column.get("computed")
        is_filled = column_name in layout.names or column_name in numbered or has_default
        if not is_filled and not column["nullable"]:
            what = f"the column {column_name} of the table {address.table} must not be null, and rows lack it"
            hint = "add the field, or give the column a default"
            raise refusal(ValueError, what, where=address.where, hint=hint)
    if layout.mode == "upsert":
        _check_key(inspector, address, layout, primary)


def _check_key(inspector: Inspector, address: Address, layout: Layout, primary: list[str]) -> None:
    schema, name = address.parts
    unique: list[list[Any]] = [
        each["column_names"] for each in inspector.get_unique_constraints(name, schema=schema)
    ]
    unique += [
        list(index["column_names"])
        for index in inspector.get_indexes(name, schema=schema)
        if index.get("unique") and not (index.get("dialect_options") or {}).get("postgresql_where")
    ]
    if not any(set(columns) == set(layout.key) for columns in (primary, *unique)):
        key = ", ".join(layout.key)
        what = f"the table {address.table} has no primary key or unique index over exactly {key}"
        hint = f"ALTER TABLE {address.table} ADD PRIMARY KEY ({key}), or pass the columns of its key"
        raise refusal(ValueError, what, where=address.where, hint=hint)


def _misfit(address: Address, field: pa.Field, why: str) -> ValueError:
    what = f"the column {field.name} of the table {address.table} does not fit the type {field.type}: {why}"
    return refusal(ValueError, what, where=address.where, hint="change the column, or the type of the field")
