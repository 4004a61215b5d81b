"""The registry picks the coders that Beam's picks, and records are written as Beam writes them."""

import dataclasses
import pickle
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Optional

import pytest

from penstock import coders
from penstock.coders import coders as module
from penstock.coders.typecoders import CoderRegistry, FirstOf
from penstock.typehints import row_type, typehints
from penstock.utils.timestamp import Timestamp


class Reversed(coders.Coder):
    """A user's coder."""

    def encode(self, value):
        return value.encode()[::-1]


class User:
    pass


HINTS: list[Any] = [
    *(
        "int",
        "float",
        "bytes",
        "bool",
        "str",
        "None",
        "object",
        "Any",
        "list",
        "Tuple[int, str]",
        "KV[str, float]",
    ),
    *("Optional[int]", "List[int]", "Iterable[str]", "Dict[str, int]", "Set[int]", "Tuple[int, ...]"),
    *(
        "Sequence[int]",
        "Union[int, str]",
        "List[Tuple[str, Optional[int]]]",
        "Generator[int]",
        "Iterator[int]",
    ),
]


@pytest.mark.parametrize("hint", HINTS)
def test_the_registry_picks_the_coder_that_beam_picks(hint) -> None:
    beam = pytest.importorskip("apache_beam.typehints.typehints")
    theirs = pytest.importorskip("apache_beam.coders").registry.get_coder(eval(hint, dict(vars(beam))))
    assert repr(coders.registry.get_coder(eval(hint, dict(vars(typehints))))) == repr(theirs)


@pytest.mark.parametrize(
    "hint",
    [
        *(int, float, bytes, bool, str, typehints.Tuple[int, str], typehints.Optional[int]),
        *(typehints.List[int], typehints.Iterable[str], typehints.Dict[str, int]),
    ],
    ids=repr,
)
def test_a_coder_knows_the_type_that_it_was_picked_for(hint) -> None:
    assert coders.registry.get_coder(hint).to_type_hint() == hint


def test_registered_types_and_fallbacks_are_used_and_can_be_sent_elsewhere() -> None:
    registry = CoderRegistry()
    registry.register_coder(User, Reversed)
    assert registry.get_coder(typehints.Tuple[User, User]) == module.TupleCoder([Reversed(), Reversed()])
    assert registry.registered_coder(User) == Reversed()
    assert registry.registered_coder(int) is None
    assert (
        registry.get_custom_type_coder_tuples()
        == registry.get_custom_type_coder_tuples([User])
        == [(User, Reversed)]
    )
    assert registry.get_custom_type_coder_tuples([int]) == []
    other = CoderRegistry(fallback_coder=module.PickleCoder)
    assert other.get_coder(User) == module.PickleCoder()
    other.load_custom_type_coder_tuples([(User, Reversed)])
    other.register_fallback_coder(Reversed)
    assert other.get_coder(object) == other.get_coder(User) == Reversed()
    with pytest.raises(ValueError, match="no coder takes"):
        FirstOf([module.NullableCoder]).from_type_hint(int, other)


class Score(NamedTuple):
    team: str
    points: int
    rate: float
    tags: Sequence[str]
    note: Optional[str]
    counts: Mapping[str, int]
    won: bool
    raw: bytes
    inner: Optional[int] = None


ROWS = [
    Score("red", 3, 0.5, ["a", "b"], "x", {"k": 1}, True, b"ab", 4),
    Score("", -3, 0.0, [], None, {}, False, b"", None),
]


def test_rows_are_written_as_beam_writes_them() -> None:
    beam = pytest.importorskip("apache_beam.coders")
    ours, theirs = coders.RowCoder(Score), beam.RowCoder.from_type_hint(Score, beam.registry)
    for row in ROWS:
        assert ours.encode(row) == theirs.encode(row)
        assert ours.decode(theirs.encode(row)) == row
        assert type(ours.decode(ours.encode(row))) is Score
    assert ours == pickle.loads(pickle.dumps(ours))
    assert not ours.is_deterministic()
    assert ours.as_deterministic_coder("x").is_deterministic()


@dataclasses.dataclass
class Player:
    name: str
    place: tuple[int, int]
    best: Optional["Player"] = None


class Game(NamedTuple):
    player: Player
    price: Decimal
    anything: Any
    start: Timestamp
    players: list[Player]


def test_rows_may_hold_records_decimals_and_values_of_any_type() -> None:
    coder = coders.RowCoder(Game)
    ann = Player("ann", (1, 2), None)
    for anything in (None, {"a": 1}):
        game = Game(ann, Decimal("1.50"), anything, Timestamp(micros=5), [ann, ann])
        assert coder.decode(coder.encode(game)) == game


def test_a_field_that_may_not_be_none_is_refused_and_added_fields_are_none() -> None:
    class Old(NamedTuple):
        a: int

    class New(NamedTuple):
        a: int
        b: Optional[int] = None

    assert coders.RowCoder(New).decode(coders.RowCoder(Old).encode(Old(1))) == New(1, None)
    assert coders.RowCoder(Old).decode(coders.RowCoder(New).encode(New(1, 2))) == Old(1)
    with pytest.raises(ValueError, match="the field 'a' is None"):
        coders.RowCoder(Old).encode(Old(None))


def test_row_types_and_registered_rows_get_a_row_coder() -> None:
    registry = CoderRegistry()
    hint = row_type.RowTypeConstraint.from_fields([("a", int), ("b", str)])
    back = registry.get_coder(hint).decode(b"\x02\x00\x01\x01x")
    assert (back.a, back.b) == (1, "x")
    assert registry.register_row(Player) is Player
    assert registry.get_coder(Player) == coders.RowCoder(Player)
    assert registry.get_coder(Player).to_type_hint() is Player
