"""Delta tables by the package ``deltalake``: rows read and added by the tasks, changes merged by the driver."""

from __future__ import annotations

from penstock_connectors.delta.scan import open_delta, schema_of_delta, type_of_delta
from penstock_connectors.delta.stream import open_changes, open_changes_stream, open_delta_stream
from penstock_connectors.delta.writer import plan_delta, prepare_delta
from penstock_connectors.packages import DELTALAKE
from penstock_spark.connecting.formats import Format

DELTA = Format(
    open_delta,
    open_delta_stream,
    element_type=type_of_delta,
    records=lambda source: source.elements,
    schema=schema_of_delta,
    plan=plan_delta,
    prepare=prepare_delta,
    packages=lambda table: (DELTALAKE,),
)

DELTA_CHANGES = Format(open_changes, open_changes_stream, packages=lambda table: (DELTALAKE,))
