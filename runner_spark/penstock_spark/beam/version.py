"""The versions of Beam whose pipelines the runner reads."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from penstock.error import refusal

OLDEST = (2, 77)
NEWEST = (2,)


def check_version() -> None:
    """Refuses a Beam that is missing or unknown.

    Raises:
        ImportError: Beam is not installed, or has a version whose inside the runner does not know.
    """
    hint = "run pip install 'penstock[beam]' here and on the workers"
    try:
        found = version("apache-beam")
    except PackageNotFoundError:
        raise refusal(
            ImportError, "BeamRunner needs apache-beam, which is not installed", hint=hint
        ) from None
    numbers = tuple(map(int, re.findall(r"\d+", found)[:2]))
    if numbers < OLDEST or numbers[:1] > NEWEST:
        what = (
            f"BeamRunner runs pipelines of apache-beam 2.77 and later versions of Beam 2, and not of {found}"
        )
        raise refusal(ImportError, what, hint=hint)
