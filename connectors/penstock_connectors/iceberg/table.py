"""An Iceberg table in its catalog: how it is found and made, what cannot be written to, and errors without secrets.

`pyiceberg` is an optional package: nothing here is imported from it before a table is used.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.checks.similar_names import hint_at_name
from penstock.error import RunnerError, UnsupportedByRunner, refusal
from penstock.io.iceberg import CatalogTable, IcebergSink, PartitionPart
from penstock_connectors.packages import PYICEBERG
from penstock_spark.connecting.running import CallTimeout, call_with_timeout, redact_secrets
from penstock_spark.connecting.tables import choose_columns, make_type_error

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata

_NEWEST_FORMAT = 2
"""The newest version of the format that pyiceberg writes."""

ANSWER_SECONDS = 120.0
"""The time limit for an answer of a catalog: pyiceberg waits for some answers without a limit."""

_NOT_COMPUTABLE = {("identity", "float"), ("identity", "double"), ("identity", "uuid"), ("bucket", "time")}
"""Transforms and types of columns."""

_NO_RETRY = {"commit.retry.num-retries": "0"}
"""We retry ourselves: before each try, we have to look at the content of the table."""


def load_module(name: str, where: str) -> ModuleType:
    """Returns a module of the package; ModuleNotFoundError in three parts if it is not installed."""
    return PYICEBERG.load(where, name)


@contextmanager
def open_catalog(place: CatalogTable, where: str) -> Iterator[Any]:
    """Yields the catalog, and closes it at the end of the block."""
    load = load_module("catalog", where).load_catalog
    with translate_errors(place, "cannot be opened: its catalog does not answer", where):
        catalog = call_catalog(partial(load, place.catalog, **dict(place.properties)))
    with closing(catalog):
        yield catalog


def call_catalog(call: Callable[[], Any]) -> Any:
    """Returns the result of a catalog's call; TimeoutError if it does not answer, though it may still take effect."""
    try:
        return call_with_timeout(call, "penstock iceberg", ANSWER_SECONDS)
    except CallTimeout:
        raise TimeoutError(f"no answer within {ANSWER_SECONDS:g} seconds") from None


@contextmanager
def translate_errors(place: CatalogTable, what: str, where: str) -> Iterator[None]:
    """Turns errors of the package into errors in three parts, without the properties of the catalog."""
    try:
        yield
    except RunnerError:
        raise
    except list_refused_commits(where):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # The runner knows what to say of full disks.
        shown = redact_secrets(f"{error}" or type(error).__name__, place.properties)
        raise refusal(
            RuntimeError,
            f"the Iceberg table {place.shown} {what}: {shown}",
            where=where,
            hint="check the name of the table, the properties of the catalog, and that it can be reached",
        ) from None


def list_refused_commits(where: str) -> tuple[type[Exception], ...]:
    """Returns the errors after which a commit is certainly not in the table, and may be retried on its newest state."""
    errors = load_module("exceptions", where)
    return (errors.CommitFailedException, errors.ValidationException, errors.TableAlreadyExistsError)


def find_table(catalog: Catalog, place: CatalogTable, where: str) -> Table | None:
    """Returns the current state of a table; None if the table does not exist."""
    with translate_errors(place, "cannot be opened", where):
        try:
            table = call_catalog(partial(catalog.load_table, place.name))
        except load_module("exceptions", where).NoSuchTableError:
            return None
    table.metadata.properties.update(_NO_RETRY)
    return table


def open_table(catalog: Catalog, place: CatalogTable, where: str) -> Table:
    """Returns the current state of a table; LookupError if the table does not exist."""
    table = find_table(catalog, place, where)
    if table is None:
        hint = "check the names of the catalog, the namespace and the table"
        raise refusal(LookupError, f"there is no Iceberg table {place.shown}", where=where, hint=hint)
    return table


def arrow_columns(schema: Schema, where: str) -> pa.Schema:
    """Returns the columns of a schema of Iceberg, without its identifiers."""
    arrow = load_module("io.pyarrow", where)
    small: pa.Schema = arrow._pyarrow_schema_ensure_small_types(
        arrow.schema_to_pyarrow(schema, include_field_ids=False)
    )
    return small


@dataclass(frozen=True)
class Target:
    """A table as tasks need it to write files."""

    columns: pa.Schema
    metadata: TableMetadata
    io: FileIO

    def has_layout_of(self, metadata: TableMetadata) -> bool:
        """True if files of these tasks are right for a table, with its identifiers of columns and partitions."""
        own = self.metadata
        return bool(
            own.schema().as_struct() == metadata.schema().as_struct()
            and own.default_spec_id == metadata.default_spec_id
            and own.spec() == metadata.spec()
        )


def target_of(sink: IcebergSink, catalog: Catalog, table: Table, where: str) -> Target:
    """Returns the target of a sink; ValueError if the elements do not fit, or if the columns are unknown."""
    place = sink.place
    if table is not None:
        check_writable(table, place, where)
        own = arrow_columns(table.schema(), where)
        columns = choose_columns(sink, own, _sources(sink), lambda wanted: wanted, where)
        _check_partitions(sink, table.metadata, where)
        _check_computable(table.metadata, place, where)
        return Target(columns, strip_history(table.metadata), table.io)
    staged: list[Any] = []

    def for_new_table(wanted: pa.Schema) -> pa.Schema:
        _check_types(wanted, where)
        _check_partition_columns(sink, wanted, where)
        staged.append(begin_table(sink, catalog, wanted, where))
        return arrow_columns(staged[0].table_metadata.schema(), where)

    with translate_errors(place, "cannot be made", where):
        namespace = tuple(place.name.split(".")[:-1])
        has_namespace = call_catalog(partial(catalog.namespace_exists, namespace))
    if not has_namespace:
        what = f"the catalog has no namespace for the table {place.shown}"
        hint = "check the name, or create it with load_catalog(...).create_namespace(...)"
        raise refusal(LookupError, what, where=where, hint=hint)
    columns = choose_columns(sink, None, _sources(sink), for_new_table, where)
    _check_computable(staged[0].table_metadata, place, where)
    with translate_errors(place, "cannot be made", where):
        return Target(columns, strip_history(staged[0].table_metadata), staged[0]._table.io)


def begin_table(
    sink: IcebergSink,
    catalog: Catalog,
    columns: pa.Schema | Schema,
    where: str,
    location: str | None = None,
) -> Transaction:
    """Returns a transaction that makes the table, which does not exist before the commit.

    The columns are a schema of Arrow or of Iceberg. Without a location, the catalog chooses one.
    """
    parse = load_module("transforms", where).parse_transform
    with translate_errors(sink.place, "cannot be made", where):
        transaction = call_catalog(
            partial(catalog.create_table_transaction, sink.place.name, columns, location)
        )
        if sink.partition_by:
            with transaction.update_spec() as spec:
                for part in sink.partition_by:
                    name = part.column if part.transform == "identity" else None
                    spec.add_field(part.column, parse(part.transform), name)
    return transaction


def strip_history(metadata: TableMetadata) -> TableMetadata:
    """Returns the metadata of a table without the snapshots, which may be very many, and which tasks do not need."""
    return metadata.model_copy(
        update={
            "snapshots": [],
            "snapshot_log": [],
            "metadata_log": [],
            "refs": {},
            "current_snapshot_id": None,
        }
    )


def _check_partition_columns(sink: IcebergSink, columns: pa.Schema, where: str) -> None:
    for part in sink.partition_by:
        if part.column not in columns.names:
            what = f"the table {sink.place.shown} has no column {part.column}"
            hint = hint_at_name(part.column, columns.names, f"its columns are {', '.join(columns.names)}")
            raise refusal(ValueError, what, where=where, hint=hint)


def _check_types(columns: pa.Schema, where: str) -> None:
    convert = load_module("io.pyarrow", where)._pyarrow_to_schema_without_ids
    for field in columns:
        try:
            convert(pa.schema([field]))
            is_known = not pa.types.is_null(field.type)
        except Exception:  # Only its class says that this error is about a type.
            is_known = False
        if not is_known:
            raise make_type_error("Iceberg", field, where)


def _sources(sink: IcebergSink) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.column for part in sink.partition_by))


def check_writable(table: Table, place: CatalogTable, where: str) -> None:
    if table.format_version > _NEWEST_FORMAT:
        raise UnsupportedByRunner(
            f"the Iceberg table {place.shown} has the format {table.format_version}, and pyiceberg writes "
            f"formats up to {_NEWEST_FORMAT}",
            where=where,
            hint="write to a table of format 2, or use WriteToSpark('iceberg', table) with Iceberg's own jar",
        )
    if table.properties.get("write.format.default", "parquet").lower() != "parquet":
        raise UnsupportedByRunner(
            f"the Iceberg table {place.shown} needs files of {table.properties['write.format.default']}",
            where=where,
            hint="set write.format.default to parquet",
        )


def _check_partitions(sink: IcebergSink, metadata: TableMetadata, where: str) -> None:
    schema = metadata.schema()
    own = tuple(
        PartitionPart(schema.find_column_name(field.source_id) or "", str(field.transform))
        for field in metadata.spec().fields
    )
    if sink.partition_by and own != sink.partition_by:
        are = f"is partitioned by {', '.join(map(str, own))}" if own else "is not partitioned"
        given = ", ".join(map(str, sink.partition_by))
        what = f"the table {sink.place.shown} {are}, but partition_by has {given}"
        raise refusal(ValueError, what, where=where, hint="leave partition_by out")


def _check_computable(metadata: TableMetadata, place: CatalogTable, where: str) -> None:
    """Refuses partitions of which pyiceberg loses or doubles rows, such as 0.0 and -0.0, or which it cannot write."""
    schema, fields = metadata.schema(), metadata.spec().fields
    sources = [field.source_id for field in fields]
    for field in fields:
        column = schema.find_column_name(field.source_id)
        if column is None or sources.count(field.source_id) > 1:
            why = "several partition fields of one column" if column else "a partition field without a column"
            raise UnsupportedByRunner(
                f"the Iceberg table {place.shown} has {why}, which pyiceberg does not write",
                where=where,
                hint="change its partitions, or use WriteToSpark('iceberg', table) with Iceberg's own jar",
            )
        part = PartitionPart(column, str(field.transform))
        kind = str(schema.find_type(field.source_id))
        if (part.transform.partition("[")[0], kind) in _NOT_COMPUTABLE:
            shown = f"{part}, which is {kind}"
            what = f"the Iceberg table {place.shown} is partitioned by {shown}, and pyiceberg writes that wrongly"
            raise refusal(ValueError, what, where=where, hint="partition it by another column, or not at all")
