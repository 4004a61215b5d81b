"""The table of commits: which micro-batch of each stream is in a database, and which driver may write the next."""

from __future__ import annotations

import hashlib

from penstock_spark.formats.database.address import Address
from penstock_spark.formats.database.errors import failure

COMMITS = "penstock_commits"


def digest(stream: str) -> str:
    """The name of a stream in the table of commits."""
    return hashlib.sha256(stream.encode()).hexdigest()[:32]


def displaced(address: Address, is_other: bool) -> Exception:
    if is_other:
        said = "another run has taken over this stream"
        return failure(address, said, "let the other one run, or stop it and start this one again")
    said = f"the row of this stream in {COMMITS} has been deleted"
    return failure(address, said, "never delete rows of streams that run")
