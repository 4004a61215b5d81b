"""Plays the rows about servers of Spark Connect; as a program, since a process with a session takes no other server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from tests.bad_input.rows import PROGRAM, played
from tests.bad_input.rows_servers import SUBJECT
from tests.bad_input.stand_in import standing_in

_PORT = "15002"
"""The port in a row, which stands for that of the stand-in."""


def shown_for_rows() -> dict[str, str]:
    """What a user sees for each row, by its name; all in one new process."""
    command = [sys.executable, "-m", "tests.bad_input.on_servers"]
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=300, cwd=root, env=environment
    )
    shown: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return shown


def main() -> None:
    """Prints what is shown for the rows, as JSON."""
    sys.argv = [PROGRAM]
    shown = {}
    for row in SUBJECT.rows:
        with standing_in(row.server) as port, tempfile.TemporaryDirectory() as folder:
            text = played(replace(row, write=row.write.replace(_PORT, str(port))), Path(folder))
            shown[row.name] = text.replace(str(port), _PORT)
            # Else the next row finds its session.
            if (left := SparkSession.getActiveSession()) is not None:
                left.stop()
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
