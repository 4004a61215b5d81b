"""The type of the object to which each module adds its commands."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Protocol


class Commands(Protocol):
    """The result of ``ArgumentParser.add_subparsers``, whose class argparse hides."""

    def add_parser(
        self, name: str, *, help: str | None = None, description: str | None = None, epilog: str | None = None
    ) -> ArgumentParser:
        """Adds the parser of a command."""
