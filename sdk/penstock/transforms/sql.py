"""SQL over PCollections that change (Beam's path); it needs ``pip install 'penstock[sql]'``."""

from penstock.absent import hint_at_absent_names
from penstock.sql.catalog import Catalog
from penstock.sql.errors import SqlError
from penstock.sql.execution.rendering import Snapshot
from penstock.sql.plan.relations import Period
from penstock.sql.tables.connectors import TableConnector
from penstock.sql.transform import SqlTransform

__all__ = ["Catalog", "Period", "Snapshot", "SqlError", "SqlTransform", "TableConnector"]

hint_at_absent_names(globals())
