"""The steps that the compiler makes of a splittable DoFn, over pairs of an element and a restriction."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.functions.dofn import DoFn
from penstock.graph import ParDo, Primitive, StatefulParDo


@dataclass(frozen=True, eq=False)
class RestrictionParDo(ParDo):
    """A splittable DoFn over pairs of an element and a restriction, each of which it processes to its end."""


def is_splittable(primitive: Primitive) -> bool:
    """True if a primitive is a splittable DoFn over elements, which the compiler has not divided yet."""
    return (
        isinstance(primitive, ParDo)
        and not isinstance(primitive, RestrictionParDo | StatefulParDo)
        and asks_for_restriction(primitive.dofn)
    )


def keeps_restrictions(primitive: object) -> bool:
    """True if a primitive is a splittable DoFn that keeps restrictions in the state of a level."""
    return isinstance(primitive, StatefulParDo) and asks_for_restriction(primitive.dofn)


def asks_for_restriction(dofn: DoFn) -> bool:
    own = dofn.own_signature()
    # The signature of all methods takes longer, and each of several passes asks for each step.
    process = dofn.process_signature() if own is None else own.process
    return bool(process.asking_for("RestrictionParam"))
