"""Random rows of arrays: tables with generators behind them, each in penstock's language and in DuckDB's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sql.random_queries import INTEGER, STRING, Source, Text, Value, listed, text

if TYPE_CHECKING:
    from tests.sql.random_queries import Generator

FORMS = (
    "UNNEST",
    "LEFT JOIN UNNEST",
    "LATERAL",
    "VIEW",
    "VIEW OUTER",
    "selected",
    "EXISTS",
    "NOT EXISTS",
    "IN",
)
"""How a generator stands in a query."""


def generated(generator: Generator, source: Source) -> Source:
    """Rows of a source, with what a generator makes of an array of their values.

    Args:
        generator: The generator of queries.
        source: The source.
    """
    random = generator.generators_random
    form, alias = random.choice(FORMS), generator.alias()
    kind = random.choice([INTEGER, INTEGER, STRING])
    array = _array(generator, source, kind)
    is_numbered = random.random() < 0.4
    value = Value(Text(*(f"{alias}.n",) * 2), kind)
    number = Value(Text(f"{alias}.pos", f"{alias}.pos"), INTEGER)
    added = [value, number] if is_numbered else [value]
    names = "n, pos" if is_numbered else "n"
    ordinal = " WITH ORDINALITY" if is_numbered else ""
    unnest = text(f"UNNEST({{}}){ordinal} AS {alias}({names})", array)
    match form:
        case "UNNEST":
            made = text("{} CROSS JOIN {}", source.text, unnest)
            return Source(made, [*source.values, *added], source.window)
        case "LATERAL" if not is_numbered:
            condition = generator.condition([value, *source.values])
            own = text(f"LATERAL EXPLODE({{}}) AS {alias}({names})", array)
            made = text("{} JOIN {} ON {}", source.text, Text(own.own, f"{unnest.other}"), condition)
            return Source(made, [*source.values, *added], source.window)
        case "LEFT JOIN UNNEST" | "LATERAL":
            condition = generator.condition([*added, *source.values])
            other = text(
                f"LATERAL (SELECT {alias}.* FROM {{}} WHERE {{}}) AS {alias}", unnest, condition
            ).other
            joined = text("{} LEFT JOIN {} ON {}", source.text, unnest, condition)
            made = Text(joined.own, f"{source.text.other} LEFT JOIN {other} ON TRUE")
            return generator.wrapped(Source(made, [*source.values, *added]))
        case "VIEW" | "VIEW OUTER":
            return _view(generator, source, array, alias, added, is_outer="OUTER" in form)
        case "selected":
            items = [text(f"{{}} AS c{at}", each.text) for at, each in enumerate(source.values)]
            shown = text(
                "{}, {} AS n", listed(items), Text(f"EXPLODE({array.own})", f"UNNEST({array.other})")
            )
            made = text(f"(SELECT {{}} FROM {{}}) AS {alias}", shown, source.text)
            columns = [*(f"c{at}" for at in range(len(items))), "n"]
            kinds = [*(each.type for each in source.values), kind]
            values = [
                Value(Text(*(f"{alias}.{name}",) * 2), each)
                for name, each in zip(columns, kinds, strict=True)
            ]
            return Source(made, values)
    inner = text("SELECT n FROM {}", unnest)
    if form == "IN":
        wanted = generator.value(kind, source.values)
        test = text("{} " + random.choice(["IN", "NOT IN"]) + " ({})", wanted, inner)
    else:
        test = text(f"{form} ({{}} WHERE {{}})", inner, generator.condition([*added, *source.values]))
    return generator.wrapped(Source(text("{} WHERE {}", source.text, test), source.values))


def _view(
    generator: Generator, source: Source, array: Text, alias: str, added: list[Value], is_outer: bool
) -> Source:
    """Rows behind a LATERAL VIEW, whose numbers are from 0 on."""
    is_numbered = len(added) > 1
    call, names = ("POSEXPLODE", "pos, n") if is_numbered else ("EXPLODE", "n")
    own = (
        f"{source.text.own} LATERAL VIEW {'OUTER ' if is_outer else ''}{call}({array.own}) {alias} AS {names}"
    )
    if is_numbered:
        rows = f"(SELECT u.n, u.o - 1 AS pos FROM UNNEST({array.other}) WITH ORDINALITY AS u(n, o))"
    else:
        rows = f"(SELECT u.n FROM UNNEST({array.other}) AS u(n))"
    join = "LEFT JOIN LATERAL" if is_outer else "JOIN LATERAL"
    other = f"{source.text.other} {join} {rows} AS {alias} ON TRUE"
    return generator.wrapped(Source(Text(own, other), [*source.values, *added]))


def _array(generator: Generator, source: Source, kind: str) -> Text:
    """An array of values of rows, or of the parts of a text; perhaps NULL, or empty."""
    random = generator.generators_random
    if kind == STRING and random.random() < 0.5:
        value = generator.value(STRING, source.values)
        array = Text(f"SPLIT({value.own}, 'x')", f"STRING_SPLIT({value.other}, 'x')")
    else:
        values = listed([generator.value(kind, source.values) for _ in range(random.choice([1, 2, 2, 3]))])
        array = Text(f"ARRAY({values.own})", f"[{values.other}]")
    chance = random.random()
    if chance < 0.3:
        return text("CASE WHEN {} THEN {} END", generator.condition(source.values), array)
    if chance < 0.5:
        empty = Text("ARRAY()", "[]")
        return text("CASE WHEN {} THEN {} ELSE {} END", generator.condition(source.values), array, empty)
    return array
