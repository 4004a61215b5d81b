"""Where the code of a step is in the user's program: Beam does not note which line applied a transform."""

from __future__ import annotations

import os

import apache_beam

from penstock.where import Location

_BEAM = os.path.dirname(apache_beam.__file__)


def location_of(function: object) -> Location | None:
    """The first line of a function, or of the class of an object; None if it is not the user's."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or code.co_filename.startswith((_BEAM, "<")):
        return None
    return Location(code.co_filename, code.co_firstlineno)
