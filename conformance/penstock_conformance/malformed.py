"""The error about a transcript that does not say what it should."""

from __future__ import annotations

from penstock.error import three_parts


class Malformed(ValueError):
    """A transcript does not follow its format.

    >>> print(Malformed("'5' is not a window", hint="write [0, 10)").at("fixed.transcript:3"))
    '5' is not a window
      at fixed.transcript:3
      hint: write [0, 10)
    """

    def __init__(self, what: str, *, hint: str, place: str | None = None) -> None:
        super().__init__(three_parts(what, where=place and f"at {place}", hint=hint))
        self.what = what
        self.hint = hint
        self.place = place

    def at(self, place: str) -> Malformed:
        """Returns this error with its file and line, if it has none yet."""
        return self if self.place else Malformed(self.what, hint=self.hint, place=place)
