"""Keys of users' classes: registered coders, and classes that another process cannot import."""

import importlib
import subprocess
import sys
import uuid
from typing import Any, NamedTuple

import pytest

from penstock.coders import (
    Base64PickleCoder,
    CloudpickleCoder,
    Coder,
    FakeDeterministicFastPrimitivesCoder,
    FastPrimitivesCoder,
    PickleCoder,
    RowCoder,
)
from penstock.coders import deterministic as keys
from penstock.coders.deterministic import decode_key, encode_key, find_plain_key_type
from penstock.coders.typecoders import CoderRegistry


class Pair(NamedTuple):
    a: Any
    b: Any = None


class Angle:
    def __init__(self, degrees):
        self.degrees = degrees


class AngleCoder(Coder):
    def encode(self, value):
        return b"%d" % (value.degrees % 360)

    def decode(self, encoded):
        return Angle(int(encoded))

    def is_deterministic(self):
        return True


class RandomAngleCoder(AngleCoder):
    def is_deterministic(self):
        return False


@pytest.fixture
def registry(monkeypatch):
    fresh = CoderRegistry()
    monkeypatch.setattr(importlib.import_module("penstock.coders.typecoders"), "registry", fresh)
    keys.forget_encoders()
    yield fresh
    keys.forget_encoders()


def test_a_registered_deterministic_coder_decides_what_is_one_key(registry) -> None:
    with pytest.raises(TypeError, match="Angle have no deterministic encoding"):
        encode_key(Angle(1))
    registry.register_coder(Angle, AngleCoder)
    assert encode_key((Angle(1), "a")) == encode_key((Angle(361), "a")) != encode_key((Angle(2), "a"))
    assert decode_key(encode_key(Angle(361))).degrees == 1


def test_keys_whose_class_has_a_registered_coder_are_told_apart_by_their_encodings(registry) -> None:
    pairs = [Pair(1, 2), Pair(1, 3)]
    assert find_plain_key_type(pairs) is Pair
    registry.register_coder(Pair, RowCoder)
    keys.forget_encoders()
    assert find_plain_key_type(pairs) is None


def test_a_registered_coder_comes_before_the_own_form_of_a_class(registry) -> None:
    before = encode_key(Pair(1, 2))
    registry.register_coder(Pair, RowCoder)
    assert encode_key(Pair(1, 2)) != before
    assert decode_key(encode_key(Pair(1, ("a", None)))) == Pair(1, ("a", None))


def test_a_registered_coder_that_is_not_deterministic_is_refused(registry) -> None:
    registry.register_coder(Angle, RandomAngleCoder)
    with pytest.raises(TypeError, match=r"its registered coder RandomAngleCoder is not deterministic"):
        encode_key(Angle(1))


@pytest.mark.parametrize("coder", [FastPrimitivesCoder, PickleCoder])
def test_a_registered_coder_that_encodes_as_keys_are_changes_no_key(registry, coder) -> None:
    before = encode_key((Pair(1, Pair(2)), "a"))
    registry.register_coder(Pair, coder)
    assert encode_key((Pair(1, Pair(2)), "a")) == before
    assert decode_key(before) == (Pair(1, Pair(2)), "a")
    registry.register_coder(Angle, coder)
    with pytest.raises(TypeError, match="Angle have no deterministic encoding"):
        encode_key(Angle(1))


@pytest.mark.parametrize("coder", [FakeDeterministicFastPrimitivesCoder])
def test_a_registered_coder_that_pickles_and_says_that_it_is_deterministic_is_used(registry, coder) -> None:
    registry.register_coder(Pair, coder)
    assert decode_key(encode_key(Pair(1, Pair(2)))) == Pair(1, Pair(2))


@pytest.mark.parametrize("coder", [Base64PickleCoder, CloudpickleCoder])
def test_a_registered_coder_that_only_pickles_is_refused_for_keys(registry, coder) -> None:
    registry.register_coder(Pair, coder)
    with pytest.raises(TypeError, match="is not deterministic"):
        encode_key(Pair(1))


SCRIPT = """
import sys
from typing import NamedTuple
from penstock.coders.deterministic import decode_key, encode_key, find_plain_key_type
from penstock.coders.deterministic import list_key_classes, register_key_class
{classes}
{rest}
"""
CLASSES = """
class Team(NamedTuple):
    name: str
"""


def run_script(classes: str, rest: str) -> str:
    script = SCRIPT.format(classes=classes, rest=rest)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_classes_of_main_come_back_in_a_process_that_was_told_of_them() -> None:
    data = run_script(CLASSES, "print(encode_key((Team('red'), 1)).hex())")
    again = run_script(CLASSES, f"register_key_class(Team); print(decode_key(bytes.fromhex('{data}')))")
    assert again == "(Team(name='red'), 1)"
    shipped = run_script(
        CLASSES, "encode_key(Team('a')), encode_key(2); print([c.__name__ for c in list_key_classes()])"
    )
    assert shipped == "['Team']"


def test_a_class_that_the_process_does_not_know_is_an_error_that_says_what_to_do() -> None:
    data = run_script(CLASSES, "print(encode_key(Team('red')).hex())")
    with pytest.raises(LookupError, match="__main__:Team") as caught:
        decode_key(bytes.fromhex(data))
    assert "register_key_class" in str(caught.value)


def test_local_classes_come_back_and_count_among_those_to_send() -> None:
    class Local(NamedTuple):
        a: int

    assert decode_key(encode_key(Local(1))) == Local(1)
    assert Local in keys.list_key_classes()
    assert uuid.UUID not in keys.list_key_classes()


def test_a_key_whose_coder_is_not_registered_where_it_is_decoded_is_an_error(registry) -> None:
    registry.register_coder(Angle, AngleCoder)
    data = encode_key(Angle(1))
    registry.custom_types.clear()
    keys.forget_encoders()
    with pytest.raises(LookupError, match="no coder is registered for Angle"):
        decode_key(data)


class Plain:
    """Nothing says how it is encoded."""

    def __init__(self, value, kind=None):
        self.value = value
        self.kind = kind


@pytest.fixture
def pickled_keys():
    keys.allow_pickled_keys(True)
    yield
    keys.allow_pickled_keys(False)


def test_keys_of_any_class_are_pickled_if_that_is_allowed_and_a_warning_says_so(pickled_keys, caplog) -> None:
    assert encode_key((Plain("a"), 1)) == encode_key((Plain("a"), 1)) != encode_key((Plain("b"), 1))
    decoded = decode_key(encode_key(Plain([1], kind=Angle)))
    assert (decoded.value, decoded.kind) == ([1], Angle)
    assert "test_key_classes.Plain are pickled" in caplog.text
    keys.allow_pickled_keys(False)
    with pytest.raises(TypeError, match="Plain have no deterministic encoding"):
        encode_key(Plain("a"))


def test_what_has_an_encoding_keeps_it_where_keys_may_be_pickled() -> None:
    plain = [encode_key(key) for key in (1, "a", Pair(1, 2), uuid.UUID(int=1))]
    keys.allow_pickled_keys(True)
    try:
        assert [encode_key(key) for key in (1, "a", Pair(1, 2), uuid.UUID(int=1))] == plain
    finally:
        keys.allow_pickled_keys(False)


def test_a_fallback_coder_that_says_it_is_deterministic_is_believed(registry) -> None:
    registry.register_fallback_coder(PickleCoder())
    with pytest.raises(TypeError, match="Plain have no deterministic encoding"):
        encode_key(Plain("a"))
    registry.register_fallback_coder(FakeDeterministicFastPrimitivesCoder())
    assert decode_key(encode_key((Plain("a"), 1)))[0].value == "a"


PICKLING = """
import sys
from penstock.coders.deterministic import allow_pickled_keys, encode_key
class Mine:
    def __init__(self, value):
        self.value = value
allow_pickled_keys(True)
print(encode_key(Mine(("a", Mine(1)))).hex())
"""


def test_a_pickled_key_of_the_main_program_has_the_same_bytes_in_every_process() -> None:
    outputs = {
        subprocess.run([sys.executable, "-c", PICKLING], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1
