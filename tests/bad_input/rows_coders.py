"""Bad input: coders and metrics."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Coders and metrics",
    "",
    (
        Row(
            "bytes that end too early",
            write="""
                from penstock.coders import VarIntCoder

                VarIntCoder().decode(b"")
                """,
            see="""
                EOFError: the encoded value ends too early: 1 byte expected, 0 left
                  at game.py:3
                  hint: check that the bytes are complete, and that this coder has encoded them
                """,
        ),
        Row(
            "bytes of another coder",
            write=r"""
                from penstock.coders import BooleanCoder

                BooleanCoder().decode(b"\x07")
                """,
            see="""
                ValueError: Expected 0 or 1, got 7
                  at game.py:3
                  hint: check that the bytes are complete, and that this coder has encoded them
                """,
        ),
        Row(
            "a number that is too large for its coder",
            write="""
                from penstock.coders import VarIntCoder

                VarIntCoder().encode(2**63)
                """,
            see="""
                OverflowError: an integer is out of the range of VarIntCoder, -(2**63) to 2**63 - 1
                  at game.py:3
                  hint: use BigIntegerCoder, or leave out the type hint
                """,
        ),
        Row(
            "a string for a coder of bytes",
            write="""
                from penstock.coders import BytesCoder

                BytesCoder().encode("abc")
                """,
            see="""
                AssertionError: a BytesCoder encodes bytes, not a str
                  at game.py:3
                  hint: use the coder of that type, or encode the value first
                """,
        ),
        Row(
            "a coder that is not a class",
            write="""
                from penstock.coders import VarIntCoder

                beam.coders.registry.register_coder(int, VarIntCoder())
                """,
            see="""
                TypeError: Coder registration requires a coder class object. Received VarIntCoder instead.
                  at game.py:3
                  hint: leave out the parentheses: register_coder(MyType, MyCoder)
                """,
        ),
        Row(
            "a metric without a name",
            write="""
                from penstock.metrics import Metrics

                Metrics.counter("game", "")
                """,
            see="""
                ValueError: Metric name must be non-empty
                  at game.py:3
                  hint: give a name, such as 'game'
                """,
        ),
    ),
)
