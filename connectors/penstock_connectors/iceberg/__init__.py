"""Iceberg tables by the package ``pyiceberg``: rows read and added by the tasks, changes merged by the driver."""

from __future__ import annotations

from penstock_connectors.iceberg.scan import open_iceberg, schema_of_iceberg, type_of_iceberg
from penstock_connectors.iceberg.writer import plan_iceberg, prepare_iceberg
from penstock_connectors.packages import PYICEBERG
from penstock_spark.connecting.formats import Format

ICEBERG = Format(
    open_iceberg,
    element_type=type_of_iceberg,
    records=lambda source: source.elements,
    schema=schema_of_iceberg,
    plan=plan_iceberg,
    prepare=prepare_iceberg,
    packages=lambda table: (PYICEBERG,),
)
