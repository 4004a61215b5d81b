"""Outputs that cannot be written, in three parts."""

from __future__ import annotations

import errno
import os

from penstock.error import three_parts
from penstock.io.files.object_stores import is_translated, with_step

_IN_THE_WAY = "write to another path, or move away what is in the way"
_HINTS = {
    errno.EISDIR: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTEMPTY: _IN_THE_WAY,
    errno.ENOSPC: "free space on that disk, or write to another",
    errno.EDQUOT: "free space on that disk, or write to another",
    errno.EROFS: "write to another path",
    errno.EACCES: "give the user that Spark runs as the permission to write there, or write to another path",
    errno.EPERM: "give the user that Spark runs as the permission to write there, or write to another path",
}


def make_unwritable_error(error: OSError, where: str) -> OSError:
    """Returns the error with the step and a hint; unchanged if it names the step already or does not come from
    the system.

    >>> print(make_unwritable_error(OSError(28, "No space left on device", "/out/a-1"), "at step 'Write' (game.py:9)"))
    [Errno 28] /out/a-1 cannot be written: No space left on device
      at step 'Write' (game.py:9)
      hint: free space on that disk, or write to another
    """
    if is_translated(error):
        return with_step(error, where)
    if error.errno is None or error.strerror is None or "\n" in error.strerror:
        return error
    # If a file could not be renamed, its final name says more than its temporary one.
    path = error.filename2 or error.filename
    name = os.fsdecode(path) if isinstance(path, str | bytes) else "the output"
    hint = _HINTS.get(error.errno, "check that path, or write to another")
    return OSError(
        error.errno, three_parts(f"{name} cannot be written: {error.strerror}", where=where, hint=hint)
    )
