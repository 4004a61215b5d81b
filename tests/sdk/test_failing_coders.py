"""An error in a coder of the user's says whose coder it was, and the type of the value."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.coders import Coder, StrUtf8Coder, registry
from penstock.coders.deterministic import decode_key, encode_key
from penstock.coders.registered_pickles import dumps
from penstock.coders.typecoders import CoderRegistry
from penstock.machines.cells import cell_of
from penstock.transforms import userstate


class Degrees:
    def __init__(self, number: int) -> None:
        self.number = number


class DegreesCoder(Coder):
    """Fails in the ways that its values name."""

    def encode(self, value: Any) -> Any:
        return ("text", None)[value.number] if value.number < 2 else b"%d" % (100 // (value.number - 2))

    def decode(self, encoded: bytes) -> Any:
        return {b"50": encoded}[encoded] if encoded != b"25" else int("x")

    def is_deterministic(self) -> bool:
        return True


@pytest.fixture
def registered() -> Iterator[CoderRegistry]:
    registry.register_coder(Degrees, DegreesCoder)
    yield registry
    registry.custom_types.remove(Degrees)
    # Another registration lets go of what was remembered of this one.
    registry.register_coder(str, StrUtf8Coder)
    registry.custom_types.remove(str)


@pytest.mark.parametrize(
    ("spec", "write"),
    [
        (userstate.ReadModifyWriteStateSpec("cell", DegreesCoder()), lambda cell, value: cell.write(value)),
        (userstate.BagStateSpec("cell", DegreesCoder()), lambda cell, value: cell.add(value)),
        (userstate.SetStateSpec("cell", DegreesCoder()), lambda cell, value: cell.add(value)),
        (userstate.OrderedListStateSpec("cell", DegreesCoder()), lambda cell, value: cell.add((1, value))),
        (
            userstate.MapStateSpec("cell", StrUtf8Coder(), DegreesCoder()),
            lambda cell, value: cell.put("k", value),
        ),
        (
            userstate.CombiningValueStateSpec("cell", DegreesCoder(), lambda values: max(values, key=id)),
            lambda cell, value: cell.add(value),
        ),
    ],
)
def test_a_state_whose_coder_fails_says_so_and_keeps_what_it_has(spec: Any, write: Any) -> None:
    cells: dict[str, Any] = {}
    owner = rf"of {type(spec).__name__}\(cell\)"
    if not isinstance(spec, userstate.CombiningValueStateSpec):
        with pytest.raises(
            TypeError, match=rf"^the coder DegreesCoder {owner} must encode as bytes, and not"
        ):
            write(cell_of(spec, cells), Degrees(0))
        with pytest.raises(
            ZeroDivisionError, match=rf"^the coder DegreesCoder {owner} cannot encode a value of"
        ):
            write(cell_of(spec, cells), Degrees(2))
        assert cells == {}
    with pytest.raises(
        AttributeError, match=rf"{owner} cannot encode a value of type \w+: .*number"
    ) as caught:
        write(cell_of(spec, cells), "a")
    assert "\n  hint: use a coder for values of type" in str(caught.value)
    assert cells == {}


def test_a_state_whose_coder_cannot_decode_says_so() -> None:
    cells: dict[str, Any] = {}
    cell: Any = cell_of(userstate.BagStateSpec("cell", DegreesCoder()), cells)
    cell.add(Degrees(6))
    what = (
        r"^the coder DegreesCoder of BagStateSpec\(cell\) cannot decode what it has encoded: invalid literal"
    )
    with pytest.raises(ValueError, match=what):
        list(cell.read())
    # The text of a KeyError is a key, so that it says so in a note.
    cell.clear()
    cell.add(Degrees(3))
    with pytest.raises(KeyError) as caught:
        list(cell.read())
    assert caught.value.__notes__[0].startswith("the coder DegreesCoder of BagStateSpec(cell) cannot decode")


@pytest.mark.parametrize("written", [encode_key, dumps])
def test_a_registered_coder_that_fails_is_named_with_its_class(
    written: Any, registered: CoderRegistry
) -> None:
    for number, what in [(0, "must encode as bytes, and not as str"), (1, "and not as NoneType")]:
        with pytest.raises(TypeError, match=rf"^the coder DegreesCoder of Degrees .*{what}"):
            written(("a", Degrees(number)))
    with pytest.raises(
        ZeroDivisionError, match=r"of Degrees cannot encode a value of type Degrees: .*division"
    ):
        written(("a", Degrees(2)))
    read = decode_key if written is encode_key else pickle.loads
    with pytest.raises(ValueError, match="of Degrees cannot decode what it has encoded: invalid literal"):
        read(written(("a", Degrees(6))))
