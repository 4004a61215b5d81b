"""Coders: the wire formats and the types of the errors are those of Beam."""

import math
import pickle
import random
from decimal import Decimal
from typing import Any

import pytest

from penstock import coders
from penstock.coders import coders as module
from penstock.coders.stream import InputStream, OutputStream
from penstock.coders.typecoders import CoderRegistry
from penstock.transforms.window import GlobalWindow, IntervalWindow
from penstock.typehints import typehints
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

SOURCE = random.Random(11)
INTS = [0, 1, -1, 127, 128, 300, 2**31, -(2**31), 2**63 - 1, -(2**63)]
INTS += [SOURCE.randrange(-(2**63), 2**63) >> SOURCE.randrange(64) for _ in range(200)]
BIG_INTS = [*INTS, 2**63, -(2**63) - 1, 255, 256, -128, -129, 10**60, -(10**60)]
FLOATS = [
    0.0,
    -0.0,
    1.5,
    -1e300,
    math.inf,
    -math.inf,
    5e-324,
    *(SOURCE.uniform(-1e6, 1e6) for _ in range(50)),
]
TEXTS = ["", "a", "é€😀", "x" * 500]
DECIMALS = [
    Decimal(text) for text in ("0", "-0.0", "1", "1.50", "-12.345", "1e20", "1e-30", "9" * 26 + ".25")
]
ANYTHING = [None, True, 3, -4, 2**62, 1.25, b"ab", "é", [1, "a"], (None, (1.5,)), {"a": [1]}, {1, 2}, 2**80]

# How a coder is built, from Beam's module or ours, and values that it encodes.
WIRES: dict[str, tuple[Any, list[Any]]] = {
    "VarInt": (lambda c: c.VarIntCoder(), INTS),
    "VarInt32": (lambda c: c.VarInt32Coder(), [0, 1, -1, 300, 2**31 - 1, -(2**31)]),
    "Short": (lambda c: c.BigEndianShortCoder(), [0, 1, -1, 2**15 - 1, -(2**15)]),
    "Byte": (lambda c: c.ByteCoder(), [0, 1, 127, 128, 255]),
    "Float": (lambda c: c.FloatCoder(), FLOATS),
    "SingleFloat": (lambda c: c.SinglePrecisionFloatCoder(), [*FLOATS, 1e300]),
    "BigInteger": (lambda c: c.BigIntegerCoder(), BIG_INTS),
    "Decimal": (lambda c: c.DecimalCoder(), DECIMALS),
    "Boolean": (lambda c: c.BooleanCoder(), [True, False, 7, ""]),
    "Str": (lambda c: c.StrUtf8Coder(), TEXTS),
    "Bytes": (lambda c: c.BytesCoder(), [text.encode() for text in TEXTS]),
    "Singleton": (lambda c: c.SingletonCoder("one"), ["one"]),
    "Nullable": (lambda c: c.NullableCoder(c.StrUtf8Coder()), [None, *TEXTS]),
    "LengthPrefix": (lambda c: c.LengthPrefixCoder(c.StrUtf8Coder()), TEXTS),
    "Iterable": (lambda c: c.IterableCoder(c.StrUtf8Coder()), [[], TEXTS, ["a"] * 300]),
    "List": (lambda c: c.ListCoder(c.VarIntCoder()), [[], INTS]),
    "TupleSequence": (lambda c: c.TupleSequenceCoder(c.BytesCoder()), [(), (b"a", b"")]),
    "Map": (lambda c: c.MapCoder(c.StrUtf8Coder(), c.BytesCoder()), [{}, {"b": b"1", "a": b""}]),
    "SortedMap": (
        lambda c: c.MapCoder(c.StrUtf8Coder(), c.VarIntCoder()).as_deterministic_coder("x"),
        [{"b": 1, "a": 2}],
    ),
    "Pair": (lambda c: c.TupleCoder([c.StrUtf8Coder(), c.StrUtf8Coder()]), [("a", "b"), ("", "x" * 200)]),
    "Triple": (
        lambda c: c.TupleCoder(
            [c.BytesCoder(), c.TupleCoder([c.VarIntCoder(), c.StrUtf8Coder()]), c.FloatCoder()]
        ),
        [(b"a", (1, "b"), 2.5)],
    ),
    "Empty": (lambda c: c.TupleCoder([]), [()]),
    "Fast": (lambda c: c.FastPrimitivesCoder(), ANYTHING),
    "FastInPair": (lambda c: c.TupleCoder([c.FastPrimitivesCoder(), c.FastPrimitivesCoder()]), [("a", b"b")]),
    "FastKey": (
        lambda c: c.FastPrimitivesCoder().as_deterministic_coder("x"),
        [*ANYTHING[:-1], ("a", (1, None)), {"a": 1, "b": 2}],
    ),
    "Pickle": (lambda c: c.PickleCoder(), ANYTHING),
    "PickleInPair": (lambda c: c.TupleCoder([c.PickleCoder(), c.VarIntCoder()]), [("a", 1)]),
    "Base64": (lambda c: c.Base64PickleCoder(), ANYTHING),
}


def beam_coders() -> Any:
    return pytest.importorskip("apache_beam.coders.coders")


@pytest.mark.parametrize("name", WIRES)
def test_the_bytes_are_those_of_beam_alone_and_nested_and_values_come_back(name) -> None:
    build, values = WIRES[name]
    ours, theirs = build(module), build(beam_coders())
    for value in values:
        data = theirs.encode(value)
        assert ours.encode(value) == data, value
        assert ours.encode_nested(value) == theirs.encode_nested(value), value
        assert repr(ours.decode(data)) == repr(theirs.decode(data))
        assert repr(ours.decode_nested(ours.encode_nested(value))) == repr(theirs.decode(data))
        assert ours.estimate_size(value) == len(data)
    assert ours.is_deterministic() == theirs.is_deterministic()
    assert ours.is_kv_coder() == theirs.is_kv_coder()
    assert ours == build(module) == pickle.loads(pickle.dumps(ours))
    assert hash(ours) == hash(build(module))


def test_an_iterable_without_a_length_is_written_in_the_chunks_beam_writes() -> None:
    texts = ["x" * 1000] * 200
    for coder_name in ("IterableCoder", "TupleSequenceCoder"):
        ours = getattr(module, coder_name)(module.StrUtf8Coder())
        theirs = getattr(beam_coders(), coder_name)(beam_coders().StrUtf8Coder())
        for values in ([], ["a"], texts):
            data = theirs.encode(iter(values))
            assert ours.encode(iter(values)) == data
            assert list(ours.decode(data)) == values


def test_decimals_come_back_exactly_whatever_the_precision_in_use() -> None:
    long = Decimal("-" + "9" * 40 + ".250")
    assert str(module.DecimalCoder().decode(module.DecimalCoder().encode(long))) == str(long)


MICROS = [0, 1_000, -1_000, 1, -1, 1_500, -1_500, 10**15, MIN_TIMESTAMP.micros, MAX_TIMESTAMP.micros]


def test_timestamps_and_windows_are_written_as_beam_does_in_milliseconds() -> None:
    timestamp = pytest.importorskip("apache_beam.utils.timestamp")
    window = pytest.importorskip("apache_beam.transforms.window")
    for micros in MICROS:
        data = beam_coders().TimestampCoder().encode(timestamp.Timestamp(micros=micros))
        assert module.TimestampCoder().encode(Timestamp(micros=micros)) == data
        assert module.TimestampCoder().decode(data).micros == micros // 1000 * 1000
    for start, end in ((0, 1), (-1.5, 2.25), (-3, -2), (0, 10**9)):
        data = beam_coders().IntervalWindowCoder().encode(window.IntervalWindow(start, end))
        assert module.IntervalWindowCoder().encode(IntervalWindow(start, end)) == data
        assert module.IntervalWindowCoder().decode(data) == IntervalWindow(start, end)
    assert module.GlobalWindowCoder().encode(GlobalWindow()) == b""
    assert module.GlobalWindowCoder().decode(b"") == GlobalWindow()


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (OverflowError, lambda: module.VarIntCoder().encode(2**63)),
        (OverflowError, lambda: module.VarInt32Coder().encode(2**31)),
        (OverflowError, lambda: module.BigEndianShortCoder().encode(2**15)),
        (OverflowError, lambda: module.ByteCoder().encode(-1)),
        (TypeError, lambda: module.VarIntCoder().encode("a")),
        (TypeError, lambda: module.FloatCoder().encode("a")),
        (AssertionError, lambda: module.BytesCoder().encode("a")),
        (TypeError, lambda: module.DecimalCoder().encode(Decimal("NaN"))),
        (ValueError, lambda: module.BooleanCoder().decode(b"\x02")),
        (ValueError, lambda: module.NullableCoder(module.VarIntCoder()).decode(b"\x02")),
        (ValueError, lambda: module.TupleCoder([module.VarIntCoder()]).encode((1, 2))),
        (ValueError, lambda: module.TupleCoder([module.VarIntCoder()]).key_coder()),
        (ValueError, lambda: module.VarIntCoder().value_coder()),
        (ValueError, lambda: module.FastPrimitivesCoder().decode(b"\x63")),
        (ValueError, lambda: InputStream(b"\xff" * 11).read_var_int64()),
        (ValueError, lambda: InputStream(b"\xff" * 9 + b"\x02").read_var_int64()),
        (EOFError, lambda: module.StrUtf8Coder().decode_nested(b"\x05ab")),
        (NotImplementedError, lambda: module.ToBytesCoder().decode(b"a")),
        (NotImplementedError, lambda: module.Coder().encode(1)),
        (NotImplementedError, lambda: module.Coder().decode(b"")),
        (NotImplementedError, lambda: module.FastCoder().encode(1)),
        (NotImplementedError, lambda: module.FastCoder().decode(b"")),
        (NotImplementedError, lambda: module.Coder().to_type_hint()),
        (NotImplementedError, lambda: module.SingletonCoder(1).to_type_hint()),
        (OverflowError, lambda: OutputStream().write_byte(256)),
        (TypeError, lambda: CoderRegistry().register_coder(int, module.VarIntCoder())),
        (TypeError, lambda: module.NullableCoder.from_type_hint(int, CoderRegistry())),
        (TypeError, lambda: coders.RowCoder(int)),
        (TypeError, lambda: CoderRegistry().register_row(int)),
        (ValueError, lambda: module.ShardedKeyCoder.from_type_hint(int, CoderRegistry())),
    ],
)
def test_what_cannot_be_is_an_error_of_the_type_beam_documents(error, call) -> None:
    with pytest.raises(error):
        call()


class Reversed(coders.Coder):
    """A user's coder."""

    def encode(self, value):
        return value.encode()[::-1]

    def decode(self, encoded):
        return encoded[::-1].decode()

    def to_type_hint(self):
        return str


def test_a_users_coder_can_be_a_part_of_others() -> None:
    pair = module.TupleCoder([Reversed(), Reversed()])
    assert pair.encode(("ab", "cd")) == b"\x02badc"
    assert pair.decode(b"\x02badc") == ("ab", "cd")
    assert pair.key_coder() == pair.value_coder() == Reversed() != module.StrUtf8Coder()
    assert pair.to_type_hint() == typehints.Tuple[str, str]


def test_a_coder_that_cannot_be_deterministic_says_so_with_the_step_or_in_given_words() -> None:
    with pytest.raises(ValueError, match=r"Reversed cannot be made deterministic\n  at step 'Group'"):
        Reversed().as_deterministic_coder("Group")
    with pytest.raises(ValueError, match=r"^my words$"):
        module.TupleCoder([module.VarIntCoder(), Reversed()]).as_deterministic_coder("Group", "my words")
    with pytest.raises(ValueError, match=r"(?s)key coder Reversed is not deterministic.*at step 'Group'"):
        CoderRegistry().verify_deterministic(Reversed(), "Group")
    assert CoderRegistry().verify_deterministic(module.VarIntCoder(), "Group") == module.VarIntCoder()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        lambda inner: module.TupleCoder([inner, module.VarIntCoder()]),
        lambda inner: module.ListCoder(inner),
        lambda inner: module.NullableCoder(inner),
        lambda inner: module.TupleSequenceCoder(inner),
        lambda inner: module.MapCoder(module.StrUtf8Coder(), inner),
    ],
)
@pytest.mark.parametrize("inner", [module.FastPrimitivesCoder(), module.PickleCoder()], ids=repr)
def test_pickling_parts_are_replaced_by_deterministic_ones(wrap, inner) -> None:
    coder = wrap(inner)
    assert not coder.is_deterministic()
    assert coder.as_deterministic_coder("x").is_deterministic()
    assert coder.as_deterministic_coder("x").as_deterministic_coder("y").is_deterministic()


def test_the_deterministic_coder_refuses_values_with_the_step_and_a_hint() -> None:
    coder = module.FastPrimitivesCoder().as_deterministic_coder("Group")
    assert coder.decode(coder.encode({2**70: (1, Timestamp(3))})) == {2**70: (1, Timestamp(3))}
    with pytest.raises(TypeError, match=r"of type object have no .*\n  at step 'Group'\n  hint: use a tuple"):
        coder.encode(["a", (1, object())])
    assert module.FakeDeterministicFastPrimitivesCoder().as_deterministic_coder("x").encode(1) == b"\x01\x01"


def test_cloudpickle_takes_functions() -> None:
    pytest.importorskip("cloudpickle")
    increment = module.CloudpickleCoder().decode(module.CloudpickleCoder().encode(lambda x: x + 1))
    assert increment(1) == 2
    with pytest.raises(ValueError, match="cannot be made deterministic"):
        module.CloudpickleCoder().as_deterministic_coder("x")


def test_sharded_keys_are_written_as_beam_does() -> None:
    sharded_key = pytest.importorskip("penstock.utils.sharded_key")
    beam = pytest.importorskip("apache_beam.utils.sharded_key")
    ours = module.ShardedKeyCoder(module.StrUtf8Coder())
    theirs = beam_coders().ShardedKeyCoder(beam_coders().StrUtf8Coder())
    data = theirs.encode(beam.ShardedKey("key", b"shard"))
    assert ours.encode(sharded_key.ShardedKey("key", b"shard")) == data
    assert ours.decode(data) == sharded_key.ShardedKey("key", b"shard")
    assert ours.is_deterministic()


def test_all_coders_that_beam_makes_public_are_there_but_those_of_other_packages() -> None:
    missing = {name for name in beam_coders().__all__ if not hasattr(coders, name)}
    of_workers = {"PaneInfoCoder", "ParamWindowedValueCoder", "WindowedValueCoder"}
    assert missing == {"AvroGenericCoder", "DillCoder", "ProtoCoder", "ProtoPlusCoder"} | of_workers
