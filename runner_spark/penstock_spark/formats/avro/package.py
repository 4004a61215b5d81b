"""The optional package ``fastavro``, imported when an Avro file is used and not before."""

from __future__ import annotations

from typing import Any

from penstock.error import refusal


def fastavro(where: str) -> Any:
    """The package; ModuleNotFoundError in three parts if it is not installed."""
    try:
        import fastavro as package
    except ModuleNotFoundError:
        what = "Avro files need the package fastavro, which is not installed"
        raise refusal(ModuleNotFoundError, what, where=where, hint="pip install 'penstock[avro]'") from None
    return package
