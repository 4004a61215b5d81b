"""Keeps a checkpoint of this version, half-way through the program `tests/spark/lasting.py`, for later versions.

Run it once for each release: ``python -m tests.golden.checkpoints.keep``. It makes the folder of the version beside it,
with an archive of the checkpoint, the input and the output so far, and with what the program writes in the end.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from pathlib import Path

import penstock
from penstock_spark.session.session import SessionOptions, session_for
from tests.spark import lasting

HERE = Path(__file__).parent
ARCHIVE, EXPECTED = "kept.tar.xz", "expected.json"
SHARDS = 2
LAST = 2
"""The last micro-batch that is kept."""

PLACE = b"/the/kept/folder"
"""Stands in Spark's logs for the folder in which the program ran: Spark keeps whole paths of files and of state."""

_LOGS = ("offsets", "commits")


def main() -> None:
    """Makes the folder."""
    session_for(SessionOptions(master="local[2]", conf={"spark.ui.enabled": "false"}))
    target = HERE / penstock.__version__
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        alone, half = Path(name) / "alone", Path(name) / "half"
        for folder in (alone, half):
            lasting.write_scores(folder / "in")
        assert lasting.start(alone / "in", alone, SHARDS).wait_until_finish() == "DONE"
        content = json.dumps(lasting.content_of(alone), indent=1)
        (target / EXPECTED).write_text(f"{content}\n")
        lasting.run_until(lasting.start(half / "in", half, SHARDS), half, LAST)
        pack(half, target / ARCHIVE)


def pack(folder: Path, archive: Path) -> None:
    """Packs a folder without what Spark reads no more, and with another name for it in Spark's logs."""
    with tarfile.open(archive, "w:xz") as packed:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and _is_kept(file):
                content = file.read_bytes()
                if _names_places(file):
                    content = content.replace(str(folder).encode(), PLACE)
                if file.parent.name == "holders" and content:
                    content = _elsewhere(content)
                entry = tarfile.TarInfo(str(file.relative_to(folder)))
                entry.size = len(content)
                packed.addfile(entry, io.BytesIO(content))


def _is_kept(file: Path) -> bool:
    """True if Spark reads a file: of its logs, the last two micro-batches; and no checksums of Hadoop's."""
    if file.parent.name in _LOGS and file.name.isdecimal():
        return int(file.name) >= LAST - 1
    return not file.name.endswith(".crc")


def _elsewhere(claim: bytes) -> bytes:
    """A claim that was made on another machine."""
    fields = json.loads(claim)
    processes = [{**process, "machine": "far-away 1"} for process in fields["processes"]]
    return json.dumps({**fields, "processes": processes}).encode()


def _names_places(file: Path) -> bool:
    """True if a file is text that may have the path of the checkpoint, or of the input."""
    return file.match("plan-*.json") or not {"sources", "_metadata"}.isdisjoint(file.parts)


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks a kept folder to another place."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    for file in folder.rglob("*"):
        if file.is_file() and _names_places(file):
            file.write_bytes(file.read_bytes().replace(PLACE, str(folder).encode()))
    lasting.set_times(folder / "in")


if __name__ == "__main__":
    main()
