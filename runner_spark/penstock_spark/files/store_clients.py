"""The optional packages that reach object stores, imported when a URL of one is used and not before."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

_settings_of: dict[Any, dict[str, str]] = {}
"""The settings with which the clients of a package were made."""


def require(package: str) -> None:
    """Raises ModuleNotFoundError if fsspec, or its package for a store, is not installed."""
    for name in ("fsspec", package):
        importlib.import_module(name)


def client(scheme: str, arguments: Mapping[str, str], settings: dict[str, str]) -> object:
    """Returns the fsspec file system of a scheme.

    It takes its settings from the environment, which also has the given ones, and from fsspec's configuration.
    """
    import fsspec

    kind = fsspec.get_filesystem_class(scheme)
    if _settings_of.setdefault(kind, settings) != settings:
        # A program may correct its credentials, and try again.
        kind.clear_instance_cache()
        _settings_of[kind] = settings
    system = fsspec.filesystem(scheme, **arguments)
    # Somebody else may write at any time.
    system.invalidate_cache()
    return system
