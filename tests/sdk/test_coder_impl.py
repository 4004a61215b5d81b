"""Coders in Beam's own form, a FastCoder with a CoderImpl, give the bytes that they give in Beam."""

import importlib
import pickle
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from penstock.coders import FastCoder, VarIntCoder


@dataclass(frozen=True)
class Bid:
    price: int
    extra: str
    seconds: float


def bid_coder(coders: ModuleType, coder_impl: ModuleType, timestamp: ModuleType) -> Any:
    """A coder as modules for Beam write it, over either library."""

    class BidCoderImpl(coder_impl.StreamCoderImpl):
        number = coder_impl.VarIntCoderImpl()
        text = coders.StrUtf8Coder().get_impl()
        time = coder_impl.TimestampCoderImpl()

        def encode_to_stream(self, value, stream, nested):
            self.number.encode_to_stream(value.price, stream, True)
            self.text.encode_to_stream(value.extra, stream, True)
            self.time.encode_to_stream(timestamp.Timestamp(value.seconds), stream, True)
            stream.write_bigendian_int64(-value.price)
            stream.write_bigendian_double(value.seconds)
            stream.write_var_int32(-value.price)

        def decode_from_stream(self, stream, nested):
            price = self.number.decode_from_stream(stream, True)
            text = self.text.decode_from_stream(stream, True)
            seconds = float(self.time.decode_from_stream(stream, True))
            assert (stream.read_bigendian_int64(), stream.read_bigendian_double()) == (-price, seconds)
            assert stream.read_var_int32() == -price
            return Bid(price, text, seconds)

    class BidCoder(coders.FastCoder):
        def _create_impl(self):
            return BidCoderImpl()

        def is_deterministic(self):
            return True

    return BidCoder()


def ours() -> Any:
    names = ("penstock.coders.coders", "penstock.coders.coder_impl", "penstock.utils.timestamp")
    return bid_coder(*map(importlib.import_module, names))


def theirs() -> Any:
    pytest.importorskip("apache_beam")
    names = ("coders.coders", "coders.coder_impl", "utils.timestamp")
    return bid_coder(*(importlib.import_module(f"apache_beam.{name}") for name in names))


BID = Bid(300, "é" * 100, 1.5)


def test_a_coder_with_an_impl_gives_the_bytes_of_beam_alone_and_as_a_part() -> None:
    own, beam = ours(), theirs()
    assert own.encode(BID) == beam.encode(BID)
    assert own.encode_nested(BID) == beam.get_impl().encode_nested(BID)
    assert own.get_impl().encode_all([BID, BID]) == beam.get_impl().encode_all([BID, BID])
    assert list(own.get_impl().decode_all(own.get_impl().encode_all([BID, BID]))) == [BID, BID]
    assert own.decode(own.encode(BID)) == own.decode_nested(own.encode_nested(BID)) == BID
    assert own.estimate_size(BID) == own.get_impl().estimate_size(BID) == len(own.encode(BID))


def test_an_impl_may_be_made_of_functions_or_of_encode_and_decode() -> None:
    own = importlib.import_module("penstock.coders.coder_impl")

    class Reversed(own.SimpleCoderImpl):
        def encode(self, value):
            return value[::-1].encode()

        def decode(self, encoded):
            return encoded.decode()[::-1]

    assert Reversed().encode_nested("abc") == b"\x03cba"
    sized = own.CallbackCoderImpl(str.encode, bytes.decode, len)
    assert (sized.encode_nested("ab"), sized.estimate_size("é"), sized.estimate_size("é", True)) == (
        b"\x02ab",
        1,
        2,
    )
    pair = own.TupleCoderImpl([Reversed(), own.VarIntCoderImpl()])
    assert pair.decode(pair.encode(("abc", 5))) == ("abc", 5)


class Made(FastCoder):
    """A coder whose impl cannot be pickled, as an open file cannot."""

    def __init__(self, number: int) -> None:
        self.number = number

    def _create_impl(self) -> Any:
        impl = VarIntCoder()
        impl.lock = (_ for _ in ())  # type: ignore[attr-defined]
        return impl


def test_the_impl_is_made_once_in_a_process_and_is_no_part_of_the_coders_value() -> None:
    used, fresh = Made(1), Made(1)
    assert used.get_impl() is used.get_impl()
    assert used == fresh
    assert hash(used) == hash(fresh)
    assert used != Made(2)
    assert pickle.loads(pickle.dumps(used)).encode(5) == b"\x05"


def test_a_fast_coder_that_defines_neither_form_says_so() -> None:
    with pytest.raises(
        NotImplementedError, match=r"FastCoder does not encode\n  at .*\n  hint: define encode_to_stream"
    ):
        FastCoder().encode(1)
    assert VarIntCoder().get_impl() == VarIntCoder()
