"""Iceberg tables by the package ``pyiceberg``: rows read and added by the tasks, changes merged by the driver."""

from __future__ import annotations

from penstock_spark.formats.format import Format
from penstock_spark.formats.iceberg.scan import open_iceberg, schema_of_iceberg, type_of_iceberg
from penstock_spark.formats.iceberg.writer import plan_iceberg, prepare_iceberg
from penstock_spark.formats.packages import PYICEBERG

ICEBERG = Format(
    open_iceberg,
    element_type=type_of_iceberg,
    records=lambda source: source.elements,
    schema=schema_of_iceberg,
    plan=plan_iceberg,
    prepare=prepare_iceberg,
    packages=lambda table: (PYICEBERG,),
)
