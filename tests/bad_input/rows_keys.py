"""Bad input: keys."""

from __future__ import annotations

from tests.bad_input.rows import Row, Subject

SUBJECT = Subject(
    "Keys",
    "Two keys are one if they have one type and one form, even where Python says that others are equal.",
    (
        Row(
            "keys that are equal in Python",
            write=r"""
                from penstock.io import WriteToMemory
                from decimal import Decimal

                found = []
                nan = float("nan")
                keys = [1, 1.0, True, None, None, nan, nan, 0.0, -0.0, Decimal("1.0"), Decimal("1.00")]
                pairs = p | beam.Create([(key, 1) for key in keys])
                pairs | beam.CombinePerKey(sum) | WriteToMemory(found)
                p.run()
                print(*sorted(found, key=str), sep="\n")
                """,
            see="""
                (-0.0, 1)
                (0.0, 1)
                (1, 1)
                (1.0, 1)
                (Decimal('1.0'), 1)
                (Decimal('1.00'), 1)
                (None, 2)
                (True, 1)
                (nan, 2)
                """,
            on_spark=True,
        ),
        Row(
            "a set as a key",
            write="""
                p | beam.Create([(frozenset("ab"), 1)]) | "Group" >> beam.GroupByKey() | beam.Map(print)
                p.run()
                """,
            see="""
                TypeError: Unable to deterministically encode a key: keys of type frozenset have no deterministic encoding
                  at step 'Group' (game.py:1)
                  hint: use a tuple, a NamedTuple or a frozen dataclass of plain values, or register a deterministic coder with penstock.coders.registry.register_coder
                """,
            on_spark=True,
        ),
        Row(
            "an object as a key",
            write="""
                class Team:
                    pass

                p | beam.Create([(Team(), 1)]) | "Group" >> beam.GroupByKey() | beam.Map(print)
                p.run()
                """,
            see="""
                TypeError: Unable to deterministically encode a key: keys of type game.Team have no deterministic encoding
                  at step 'Group' (game.py:4)
                  hint: use a tuple, a NamedTuple or a frozen dataclass of plain values, or register a deterministic coder with penstock.coders.registry.register_coder
                """,
            on_spark=True,
        ),
        Row(
            "elements that are not pairs",
            write="""
                numbers = p | beam.Create([1]).with_output_types(beam.typehints.Any)
                numbers | "Group" >> beam.GroupByKey() | beam.Map(print)
                p.run()
                """,
            see="""
                TypeError: a grouping reads elements that are not (key, value) pairs: int
                  at step 'Group' (game.py:2)
                  hint: map the elements to 2-tuples first, for example with beam.WithKeys
                """,
            on_spark=True,
        ),
    ),
)
