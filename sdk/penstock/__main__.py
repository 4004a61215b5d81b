"""The command ``python -m penstock``: the same as ``penstock``."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

from penstock.error import three_parts


def main() -> int:
    """Runs the command ``penstock`` of the installed distribution, which the model does not know.

    Returns:
        The process's exit status.
    """
    for script in entry_points(group="console_scripts", name="penstock"):
        return int(script.load()())
    print(three_parts("the command penstock is not installed", hint="pip install penstock"), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
