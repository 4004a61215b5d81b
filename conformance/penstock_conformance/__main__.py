"""The command ``python -m penstock_conformance``: the same as ``penstock conformance``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from penstock_conformance import command


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays transcripts, as `penstock_conformance.command.main` does, and returns the exit status."""
    return command.main(["conformance", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
