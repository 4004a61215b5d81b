"""The check of arguments that must be integers."""

from __future__ import annotations

from penstock.error import refusal


def check_whole_number(name: str, value: object, least: int | None = None) -> None:
    """Refuses a value that is not an integer, or less than `least`.

    >>> check_whole_number("batch_size", "5")
    Traceback (most recent call last):
        ...
    TypeError: batch_size must be an integer, but is '5'
      at ...
      hint: pass batch_size=5
    """
    if not isinstance(value, int) or isinstance(value, bool):
        is_number = isinstance(value, str) and value.isdecimal()
        hint = f"pass {name}={value if is_number else 10}"
        raise refusal(TypeError, f"{name} must be an integer, but is {value!r}", hint=hint)
    if least is not None and value < least:
        what = f"{name} must be {least} or more, but is {value}"
        raise refusal(ValueError, what, hint=f"pass {name}={least}, for example")
