"""Finds the format of a description among the connectors that are installed, and imports no other connector.

A connector is a package whose metadata has entry points in the group ``penstock.connectors``. The name of each is a
class that derives from `penstock.graph.Source` or `penstock.graph.Sink`, and its value is a `Format`. Penstock's own
connectors are found in no other way.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from penstock.error import RunnerError
from penstock.where import OUR_PACKAGES
from penstock_spark.formats.format import Format

GROUP = "penstock.connectors"


def connector_of(kinds: Sequence[type[Any]]) -> Format | None:
    """The format of the first of some classes that a connector claims; None if none does.

    Raises:
        RunnerError: Two connectors claim the class, the connector cannot be imported, or the class belongs to penstock
            and the installation does not know its connector.
    """
    return _format_of(tuple(map(_name_of, kinds)))


def _name_of(kind: type[Any]) -> str:
    """The name of the entry point for a class.

    >>> _name_of(Format)
    'penstock_spark.formats.format.Format'
    """
    return f"{kind.__module__}.{kind.__qualname__}"


@functools.cache
def _format_of(names: tuple[str, ...]) -> Format | None:
    # Each new class asks again: its package may have been installed while this process runs.
    points = entry_points(group=GROUP)
    for name in names:
        match [point for point in points if point.name == name]:
            case [point]:
                return _load(point)
            case [first, second, *_]:
                raise RunnerError(
                    f"two connectors claim {name}: {_describe(first)} and {_describe(second)}",
                    where=f"in the entry points {GROUP}",
                    hint=f"uninstall {_package_of(first)} or {_package_of(second)}",
                )
    if own := next((name for name in names if name.startswith(f"{OUR_PACKAGES[0]}.io.")), None):
        raise RunnerError(
            f"the installed penstock does not know its own connector for {own}",
            where=f"in the entry points {GROUP}",
            hint="install penstock again (pip install -e . for a checkout): its metadata is older than its code",
        )
    return None


def _load(point: EntryPoint) -> Format:
    try:
        found = point.load()
    except Exception as error:
        raise RunnerError(
            f"the connector for {point.name} cannot be imported: {type(error).__name__}: {error}",
            where=f"in {_describe(point)}",
            hint=f"install another version of {_package_of(point)}, and what it needs",
        ) from error
    if not isinstance(found, Format):
        raise RunnerError(
            f"the connector for {point.name} is not a Format, but {type(found).__name__}",
            where=f"in {_describe(point)}",
            hint="let the entry point name a penstock_spark.connecting.formats.Format",
        )
    return found


def _describe(point: EntryPoint) -> str:
    return f"{point.value} of {_package_of(point)}"


def _package_of(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module
