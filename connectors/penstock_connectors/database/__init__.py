"""Tables of databases, through SQLAlchemy, and PostgreSQL through psycopg."""

from __future__ import annotations

from penstock_connectors.database.address import packages_of
from penstock_connectors.database.changes import open_changes, open_changes_stream, type_of_changes
from penstock_connectors.database.reader import open_database, type_of_database
from penstock_connectors.database.writer import check_database, plan_database
from penstock_spark.connecting.formats import Format

DATABASES = Format(
    open_database,
    element_type=type_of_database,
    plan=plan_database,
    check=check_database,
    packages=packages_of,
)

POSTGRES_CHANGES = Format(
    open_changes, open_changes_stream, element_type=type_of_changes, packages=packages_of
)
