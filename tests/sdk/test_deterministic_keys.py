"""The encoding of keys: what is one key, what comes back, what is refused."""

import collections
import dataclasses
import datetime
import enum
import logging
import pickle
import random
import struct
import uuid
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from penstock.coders.deterministic import decode_key, encode_key, encode_keys
from penstock.pvalue import Row
from penstock.transforms.window import GlobalWindow, IntervalWindow
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp


class Pair(NamedTuple):
    a: Any
    b: Any = None


class OtherPair(NamedTuple):
    a: Any
    b: Any = None


class Sized(collections.namedtuple("Sized", "text size")):
    __slots__ = ()

    def __new__(cls, text):
        return super().__new__(cls, text, len(text))

    def __getnewargs__(self):
        return (self.text,)


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0
    norm: float = dataclasses.field(default=0.0, init=False)


@dataclasses.dataclass(frozen=True)
class Named:
    x: Any
    name: str = dataclasses.field(default="", kw_only=True)


@dataclasses.dataclass
class Thawed:
    x: Any


class Colour(enum.Enum):
    RED = 1
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Odd(enum.Enum):
    SPAN = range(3)


class Stateful:
    def __init__(self, state):
        self.state = state

    def __getstate__(self):
        return {"state": self.state}

    def __setstate__(self, state):
        self.state = state["state"]

    def __eq__(self, other):
        return type(other) is Stateful and self.state == other.state

    __hash__ = None


class Restored:
    def __init__(self, a):
        self.a = a

    def __setstate__(self, state):
        self.__dict__.update(state)


class Reduced(Restored):
    def __reduce__(self):
        return Reduced, (self.a,)


class Text(str):
    __slots__ = ()


class OuterClass:
    class Inner(NamedTuple):
        a: int


QUIET_NAN = struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0]
OTHER_NAN = struct.unpack(">d", bytes.fromhex("fff8000000000002"))[0]

# Values that Beam's deterministic coder takes, many of them equal in Python or nearly so.
COMMON = [
    *(None, False, True, 0, 1, -1, 127, 128, 255, 256, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1),
    *(2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**40, -(10**40)),
    *(0.0, -0.0, 1.0, float("inf"), -1.5, QUIET_NAN, OTHER_NAN),
    *("", "a", "1", "é", "\x00", "x" * 300, b"", b"a", b"1"),
    *(
        (),
        (1,),
        (1.0,),
        (True,),
        ("a", 1),
        ("a", (1,)),
        (("a",), 1),
        ("a", "b"),
        ("ab",),
        ("", "ab"),
        ("a" * 200,),
    ),
    *([], [1], ["a", 1], [[]], [()], ([],)),
    *({}, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}, {"a": 1.0}, {1: "a"}, set(), {1, 2}, {2, 1}, {"a"}),
    *(Pair("a", 1), OtherPair("a", 1), Pair("a", 1.0), Pair(1, "a"), Pair(Pair(1))),
    *(Point(1), Point(1, 0), Point(1, 1), Point((1, "a")), Named(1, name="a"), Named(1)),
    *(
        Colour.RED,
        Colour.BLUE,
        Level.LOW,
        Level.HIGH,
        Access.READ,
        Access.READ | Access.WRITE,
    ),
    *(Stateful(1), Stateful(1.0), Restored(1), Restored("1")),
    *(uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1, is_safe=uuid.SafeUUID.safe), OuterClass.Inner(1)),
]

# Keys that only this encoding takes.
OWN = [
    *(Timestamp(0), Timestamp(1), MIN_TIMESTAMP, MAX_TIMESTAMP, GlobalWindow()),
    *(IntervalWindow(0, 1), IntervalWindow(0, 2), IntervalWindow(-1.5, 1)),
    *(Row(a=1, b=2), Row(b=2, a=1), Row(a=1), Row(a=1.0), Row(as_dict=1)),
    *(Decimal(1), Decimal("1.0"), Decimal("-0"), Decimal("NaN"), Decimal("1e99")),
    *(datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, fold=1)),
    datetime.datetime(2020, 1, 1, 3, 4, 5, 6, tzinfo=datetime.UTC),
    datetime.timedelta(days=-3, microseconds=1),
    datetime.timedelta.max,
    datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1, seconds=1))),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1), "home")),
    *({1: "a", "a": 1}, {1, "a", None}, "\ud800", ("\udfff",)),
    *(Sized("abc"), {"x": Pair(Point(1), [Colour.BLUE])}),
]


def same(left, right) -> bool:
    if isinstance(left, float):
        return struct.pack(">d", left) == struct.pack(">d", right)
    if isinstance(left, Restored):
        return vars(left) == vars(right)
    return str(left) == str(right) if isinstance(left, Decimal) else left == right


@pytest.mark.parametrize("key", COMMON + OWN, ids=lambda key: type(key).__name__)
def test_a_key_comes_back_with_its_type_and_value(key) -> None:
    data = encode_key(key)
    back = decode_key(data)
    assert type(data) is bytes
    assert type(back) is type(key)
    assert same(back, key)
    assert encode_key(back) == data == encode_key(pickle.loads(pickle.dumps(key)))
    wrapped = decode_key(encode_key(("before", key, "after")))
    assert wrapped[0::2] == ("before", "after")
    assert same(wrapped[1], key)
    assert same(decode_key(bytearray(data)), key)


def test_two_values_are_one_key_exactly_if_beam_says_so() -> None:
    coders = pytest.importorskip("apache_beam.coders")
    logging.disable(logging.WARNING)
    try:
        beam = coders.FastPrimitivesCoder().as_deterministic_coder("a step")
        theirs = [beam.encode(value) for value in COMMON]
    finally:
        logging.disable(logging.NOTSET)
    ours = [encode_key(value) for value in COMMON]
    for index, value in enumerate(COMMON):
        for other in range(index):
            one_key = ours[index] == ours[other]
            assert one_key == (theirs[index] == theirs[other]), (value, COMMON[other])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Row(a=1, b=2), Row(b=2, a=1)),
        (Decimal("1.0"), Decimal("1.00")),
        (datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, fold=1)),
        (datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)),
        (datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)),
        (Timestamp(1), 1_000_000),
        (IntervalWindow(0, 1), (0, 1_000_000)),
        ({1, "a"}, {1, "a", None}),
    ],
)
def test_keys_beyond_beam_differ_if_any_part_does(left, right) -> None:
    assert encode_key(left) != encode_key(right)


def test_the_order_in_which_dicts_and_sets_were_filled_makes_no_difference() -> None:
    numbers = list(range(0, 4000, 8))
    assert encode_key(dict.fromkeys(numbers, 1)) == encode_key(dict.fromkeys(numbers[::-1], 1))
    assert encode_key(set(numbers)) == encode_key({*range(3992, -1, -8)})
    assert encode_key({"a": {1: 2, 3: 4}}) == encode_key({"a": {3: 4, 1: 2}})


def random_key(source: random.Random, depth: int) -> object:
    choice = source.randrange(7 if depth == 0 else 12)
    if choice < 7:
        return [
            lambda: source.getrandbits(source.randrange(1, 90)) * source.choice((1, -1)),
            lambda: source.uniform(-1e9, 1e9),
            lambda: "".join(
                chr(source.choice((65, 233, 0x20AC, 0x1F600))) for _ in range(source.randrange(200))
            ),
            lambda: source.randbytes(source.randrange(300)),
            lambda: source.choice((None, True, False)),
            lambda: Timestamp(micros=source.randrange(-(10**15), 10**15)),
            lambda: source.choice(list(Colour)),
        ][choice]()
    parts = [random_key(source, depth - 1) for _ in range(source.randrange(5))]
    if choice == 7:
        return tuple(parts)
    if choice == 8:
        return parts
    if choice == 9:
        return {source.randrange(100): part for part in parts}
    if choice == 10:
        return Pair(*parts[:2]) if len(parts) > 1 else Pair(0)
    return Point(parts, random_key(source, 0))


def test_random_nested_keys_come_back_and_one_by_one_is_as_in_a_batch() -> None:
    source = random.Random(7)
    values = [random_key(source, 4) for _ in range(2000)]
    encoded = encode_keys(values)
    assert [encode_key(value) for value in values] == encoded
    assert [decode_key(data) for data in encoded] == values
    by_encoding = collections.defaultdict(set)
    for value, data in zip(values, encoded, strict=True):
        by_encoding[data].add(repr(value))
    assert all(len(texts) == 1 for texts in by_encoding.values())


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["a", "é", ""],
        ["a", "\ud800"],
        [1, 2**40, -(2**70)],
        [1.5],
        [("a", 1), ("b", 2)],
        [Pair(1), Pair(2)],
        [1, True],
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_batch_of_one_type_is_encoded_as_its_members_are(values) -> None:
    assert encode_keys(values) == [encode_key(value) for value in values]


@pytest.mark.parametrize(
    "key",
    [
        *(
            frozenset([1]),
            bytearray(b"a"),
            memoryview(b"a"),
            1j,
            ...,
            int,
            len,
            range(3),
            object(),
            lambda: 0,
        ),
        *(
            collections.OrderedDict(a=1),
            collections.Counter("a"),
            collections.defaultdict(int),
            Fraction(1, 2),
        ),
        *(
            Text("a"),
            Thawed(1),
            Odd.SPAN,
            Reduced(1),
            datetime.time(1),
            ValueError("a"),
        ),
        *(
            (1, object()),
            [{"a": object()}],
            Pair(object()),
            Point(object()),
            Row(a=object()),
            Stateful(object()),
        ),
        datetime.datetime(2020, 1, 1, tzinfo=type("Zone", (datetime.tzinfo,), {})()),
    ],
    ids=lambda key: type(key).__name__,
)
def test_all_else_is_refused_with_a_hint_and_without_the_value(key) -> None:
    with pytest.raises(TypeError, match="have no deterministic encoding") as caught:
        encode_key(key)
    assert "hint: use a tuple, a NamedTuple or a frozen dataclass" in str(caught.value)
    with pytest.raises(TypeError):
        encode_keys([key, key])


def test_the_error_names_the_type_and_why() -> None:
    with pytest.raises(
        TypeError, match=r"^Unable to deterministically encode a key: keys of type object have"
    ):
        encode_key((1, object()))
    with pytest.raises(
        TypeError, match=r"Thawed have no deterministic encoding: the dataclass is not frozen\n"
    ):
        encode_key(Thawed(1))


@pytest.mark.parametrize("data", [b"", b"?", b"\x00abc"])
def test_bytes_that_are_no_key_are_refused(data) -> None:
    with pytest.raises(ValueError, match="not an encoded key"):
        decode_key(data)


def test_zones_of_the_database_come_back() -> None:
    try:
        zone = zoneinfo.ZoneInfo("Europe/Paris")
    except zoneinfo.ZoneInfoNotFoundError:
        pytest.skip("this machine has no zone database")
    moment = datetime.datetime(2020, 10, 25, 2, 30, tzinfo=zone, fold=1)
    back = decode_key(encode_key(moment))
    assert (back, back.tzinfo, back.fold) == (moment, zone, 1)
