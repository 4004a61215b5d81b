"""The errors penstock raises, each with three parts: what is wrong, where, and what to do.

Beam documents some errors as plain ``ValueError`` or ``TypeError``; `refusal` makes those with the same three parts.
The others derive from `BeamError` (Beam's name, so that ``except`` clauses work unchanged).
"""

from __future__ import annotations

from typing import TypeVar

from penstock.where import here

ErrorT = TypeVar("ErrorT", bound=Exception)


def three_parts(what: str, *, where: str | None = None, hint: str | None = None) -> str:
    """Returns the message of an error: what is wrong, where, and what to do.

    `what` is a short clause; `where` comes from `penstock.where`.

    >>> print(three_parts("the label 'A' is used twice", where="at step 'A' (game.py:41)", hint="give it a label"))
    the label 'A' is used twice
      at step 'A' (game.py:41)
      hint: give it a label
    """
    lines = [what]
    if where:
        lines.append(f"  {where}")
    if hint:
        lines.append(f"  hint: {hint}")
    return "\n".join(lines)


def noun_for(value: object) -> str:
    """Returns a noun for the type of a value, for an error.

    >>> noun_for(7), noun_for([]), noun_for(None)
    ('an int', 'a list', 'None')
    """
    name = "None" if value is None else type(value).__name__
    if name in ("None", "bytes"):
        return name
    lowered = name.lower()
    # The article follows the sound: a UUID, a Union, but an Upsert.
    sounds_open = lowered.startswith(("a", "e", "i", "o", "u")) and not lowered.startswith(
        ("uni", "use", "uu")
    )
    return f"{'an' if sounds_open else 'a'} {name}"


def split_hint(text: str) -> tuple[str, str]:
    r"""Returns a message without its hint, and the hint, which is empty if there is none.

    >>> split_hint("mode is 'turbo'\n  hint: use batch")
    ("mode is 'turbo'", 'use batch')
    """
    what, _, hint = text.partition("\n  hint: ")
    return what, hint


def add_location(text: str, where: str | None) -> str:
    r"""Adds the middle part to a message of two parts; a message that has one stays unchanged.

    >>> print(add_location("mode is 'turbo'\n  hint: use batch", "at game.py:41"))
    mode is 'turbo'
      at game.py:41
      hint: use batch
    """
    what, hint = split_hint(text)
    return text if "\n" in what else three_parts(what, where=where, hint=hint)


def refusal(kind: type[ErrorT], what: str, *, where: str | None = None, hint: str | None = None) -> ErrorT:
    """Returns an exception of a type of Python, with a message in three parts.

    Args:
        kind: The type of the error.
        what: What is wrong.
        where: The place; by default the line of the user's program that is being executed, if there is one. An empty
            string means that a caller will add the place.
        hint: What the user can do about it.
    """
    return kind(three_parts(what, where=here() if where is None else where, hint=hint))


def make_value_error(what: str, hint: str) -> ValueError:
    """Returns the ValueError about a wrong argument: what is wrong, and what the user can do about it."""
    return refusal(ValueError, what, hint=hint)


class BeamError(Exception):
    """The base class for all errors of penstock (Beam's ``apache_beam.error.BeamError``)."""

    def __init__(self, what: str = "", *, where: str | None = None, hint: str | None = None) -> None:
        if where is None and hint is not None:
            # An error that is unpickled gets its whole text as `what`, and no hint.
            where = here()
        super().__init__(three_parts(what, where=where, hint=hint))


class NoSuchField(KeyError):
    """A record lacks a field that a column requires; a ``KeyError``, as in Beam."""

    def __str__(self) -> str:
        # That of a KeyError shows its text as Python would write it.
        return str(self.args[0])


class PipelineError(BeamError):
    """The pipeline cannot be built or run as written (Beam's name, which nothing here raises)."""


class PValueError(BeamError):
    """A PCollection is used where it cannot be (Beam's name, which nothing here raises)."""


class RunnerError(BeamError):
    """The runner failed (Beam's name)."""


class TransformError(BeamError):
    """A transform is built or applied wrongly (Beam's name)."""


class SideInputError(BeamError):
    """A side input is used wrongly (Beam's name)."""


class RuntimeValueProviderError(RuntimeError):
    """A value was asked for before it is known (Beam's name, and Beam's base class)."""


class UnsupportedByRunner(RunnerError):
    """The pipeline uses something that this runner does not support; raised before anything starts."""
