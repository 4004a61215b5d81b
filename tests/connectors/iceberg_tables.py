"""A catalog of Iceberg tables on a disk, for tests and for the program that they kill."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog

TABLE = "lake.scores"


def properties(folder: Path | str) -> dict[str, str]:
    """A catalog in a file of SQLite, and its tables beside it."""
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/tables"}


def make_namespace(folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(load_catalog("default", **properties(folder))) as catalog:
        catalog.create_namespace_if_not_exists("lake")
    return properties(folder)


def table_of(folder: Path | str, name: str = TABLE) -> Any:
    """The current state of a table."""
    with closing(load_catalog("default", **properties(folder))) as catalog:
        return catalog.load_table(name)


def rows_of(folder: Path | str, name: str = TABLE) -> list[dict[str, Any]]:
    """The rows that pyiceberg reads, sorted."""
    return sorted(table_of(folder, name).scan().to_arrow().to_pylist(), key=repr)
