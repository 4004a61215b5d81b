"""The Dataflow Model for PySpark: Apache Beam's Python names over one engine, Spark.

>>> import penstock as beam
>>> scores = beam.Create([("blue", 3), ("red", 5), ("blue", 1)]) | beam.CombinePerKey(sum)
>>> scores.label
'Create|CombinePerKey(sum)'
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

# The names that every pipeline needs load at once; inputs, outputs and runners load on first use.
from penstock import coders, pvalue, transforms, typehints
from penstock.absent import install, make_attribute_error
from penstock.coders import RowCoder
from penstock.construction.applied import transform_annotations
from penstock.construction.pipeline import Pipeline
from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.elements.tagged_output import TaggedOutput
from penstock.tracebacks import install_hook
from penstock.transforms import *  # noqa: F403
from penstock.transforms import combiners, trigger, window
from penstock.typehints import WithTypeHints

if TYPE_CHECKING:
    from penstock import io, metrics, options, runners
    from penstock.io import Read, Write
    from penstock.sql.query import query as query

__version__ = "0.1.0"

__all__ = [
    "PCollection",
    "Pipeline",
    "Read",
    "Row",
    "RowCoder",
    "TaggedOutput",
    "WithTypeHints",
    "Write",
    "coders",
    "combiners",
    "io",
    "metrics",
    "options",
    "pvalue",
    "runners",
    "transform_annotations",
    "transforms",
    "trigger",
    "typehints",
    "window",
]
__all__ += transforms.__all__
# By name, the folder of the module. Beam shows the inner ones as its own, since it imports everything from them.
_MODULES = {
    **dict.fromkeys(("io", "metrics", "options", "pipeline", "runners", "testing", "utils"), ""),
    **dict.fromkeys(("core", "display", "ptransform", "resources", "sideinputs", "stats"), "transforms."),
    **dict.fromkeys(("timeutil", "userstate", "util"), "transforms."),
    **dict.fromkeys(("native_type_compatibility", "row_type"), "typehints."),
    "pipeline_options": "options.",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"penstock.{_MODULES[name]}{name}")
    if name == "query":
        return getattr(importlib.import_module("penstock.sql.query"), name)
    if name in ("Read", "Write"):
        return getattr(importlib.import_module("penstock.io"), name)
    raise make_attribute_error("penstock", name)


def load_ipython_extension(shell: object) -> None:
    """Runs for ``%load_ext penstock`` in a notebook: errors as `penstock.notebooks` shows them, and cells in SQL.

    An import of penstock also shortens errors, unless another extension shows them.
    """
    importlib.import_module("penstock.notebooks").load_extension(shell)


install()
install_hook()
if "IPython" in sys.modules:
    importlib.import_module("penstock.notebooks").shorten_errors_here()
