"""All generators, by the names that a query may use: the records of `elements` and its like.

To add a generator, write its record (`penstock.sql.generators.generator.Generator`) in the module of its subject, and a
query with its rows in ``tests/sql/queries/generators.txt``.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.sql.generators import elements, json_tuple, listed
from penstock.sql.generators.generator import Generator

RECORDS: Mapping[str, Generator] = {
    record.name: record for each in (elements, json_tuple, listed) for record in each.GENERATORS
}
"""The record of each generator, by its name."""

NAMES: Mapping[str, tuple[Generator, bool]] = {
    **{record.name: (record, False) for record in RECORDS.values()},
    **{f"{record.name}_OUTER": (record, True) for record in RECORDS.values() if record.has_outer},
}
"""The records by all names that a query may use, and whether the name asks for a row of NULLs instead of none."""

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        ("VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER"),
        "there are no values of type VARIANT in streams: read the JSON with FROM_JSON, and write EXPLODE",
    ),
}
"""Generators of Spark that queries do not support, and what to write instead."""
