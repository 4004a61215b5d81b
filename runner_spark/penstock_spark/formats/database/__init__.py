"""Tables of databases, through SQLAlchemy, and PostgreSQL through psycopg."""

from __future__ import annotations

from penstock_spark.formats.database.writer import check_database, plan_database
from penstock_spark.formats.format import Format

DATABASES = Format(plan=plan_database, check=check_database)
