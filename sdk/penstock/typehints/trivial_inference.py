"""What a callable returns, as far as it can be known without running it (Beam's ``trivial_inference``).

The answer comes from decorators and annotations, from what is known of Python's built-ins, and, for plain
functions without annotations, from their byte code. Whatever is not certain is ``Any``.
"""

from __future__ import annotations

import traceback
import typing
from collections.abc import Callable, Iterable

from penstock.typehints.call_inference import result_of_call
from penstock.typehints.constraints import Any, Hint, normalize
from penstock.typehints.known_values import (
    Const,
    element_type,
    finalize_hints,
    instance_to_type,
    key_value_types,
    union,
)
from penstock.typehints.native_type_compatibility import convert_to_beam_type


class TypeInferenceError(ValueError):
    """Type inference failed (Beam's name); `infer_return_type` answers ``Any`` instead of raising it."""


def infer_return_type(
    c: Callable[..., typing.Any], input_types: Iterable[typing.Any], debug: bool = False, depth: int = 5
) -> Hint:
    """The type that a callable returns (Beam's name); ``Any`` if it is not certain. It never raises.

    Args:
        c: Any callable.
        input_types: The type of each positional argument, or a `Const`.
        debug: Whether to print what went wrong.
        depth: How many functions deep to look.

    >>> infer_return_type(lambda word: (word.lower(), 1), [str])
    Tuple[<class 'str'>, <class 'int'>]
    >>> infer_return_type(lambda element: element.anything(), [object])
    Any
    """
    try:
        known = [hint if isinstance(hint, Const) else _hint(hint) for hint in input_types]
        return finalize_hints(result_of_call(Const(c), known, {}, depth))
    except Exception:
        # Inference only adds knowledge: no fault in it, or in an odd callable, may stop a pipeline.
        if debug:
            traceback.print_exc()
        return Any


def _hint(hint: Hint) -> Hint:
    return Any if hint is None else normalize(convert_to_beam_type(hint))


__all__ = [
    "Const",
    "TypeInferenceError",
    "element_type",
    "finalize_hints",
    "infer_return_type",
    "instance_to_type",
    "key_value_types",
    "union",
]
