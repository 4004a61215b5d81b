"""Texts of JSON and CSV: what is written is read, and what is damaged is refused by file, or is another row."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from penstock.io.csvio import CsvSource
from penstock.io.jsonio import JsonSource
from penstock_spark.formats import json as json_format
from penstock_spark.formats.csv.sample import type_of_csv
from penstock_spark.sources.decoding import explain
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, result_or_refusal, seeds

NAMES = ["team", "points", "at"]


def record(chance: Chance) -> dict[str, Any]:
    return {name: chance.json_value() for name in NAMES if chance.often(0.8)}


def rows_of(source: JsonSource, texts: list[bytes]) -> list[dict[str, Any]]:
    """The rows of some texts as dicts, as a task reads them, or the error that a user sees."""
    try:
        return [each for text in texts for each in json_format._objects_in(text, source)]
    except ValueError as error:
        where = "at step 'Read' (game.py:1)"
        raise explain(error, "a.json", 1, where, json_format._HINT) from error


@seeds(500, 50_000)
def test_objects_come_back_and_damaged_ones_are_refused_or_are_others(count: int) -> None:
    def law(chance: Chance) -> None:
        records = [record(chance) for _ in range(chance.randint(0, 4))]
        lines = JsonSource("a.json")
        texts = [json.dumps(each, ensure_ascii=chance.often()).encode() for each in records]
        assert rows_of(lines, texts) == records
        whole = JsonSource("a.json", lines=False)
        content = json.dumps(records).encode()
        assert rows_of(whole, [content]) == records
        bom = b"\xef\xbb\xbf" if chance.often() else b""
        assert rows_of(whole, [bom + content]) == records
        for source, text in ((lines, b"".join(texts[:1])), (whole, content)):
            damaged = chance.damaged(text)
            found = result_or_refusal(lambda source=source, damaged=damaged: rows_of(source, [damaged]))
            assert found is None or all(isinstance(each, dict) for each in found[0])

    each_seed(count, law)


def test_json_of_any_depth_or_length_is_read_or_refused() -> None:
    for text in (
        b'{"a": ' + b"[" * 100_000,
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": ' + b"1" * 10_000 + b"}",
        b'{"a": 1e999}',
        b'{"' + b"x" * 1_000_000 + b'": 1}',
    ):
        result_or_refusal(lambda text=text: rows_of(JsonSource("a.json"), [text]))


@seeds(300, 30_000)
def test_the_types_of_columns_fit_the_values_that_were_written(tmp_path: Path, count: int) -> None:
    path = tmp_path / "a.csv"

    def law(chance: Chance) -> None:
        separator, quote = chance.one_of((",", ";", "\t")), chance.one_of(('"', "'"))
        columns = [chance.one_of(("int", "float", "bool", "str")) for _ in NAMES]
        makers: dict[str, Any] = {
            "int": lambda: str(chance.randint(-(10**20), 10**20)),
            "float": lambda: chance.one_of(("1.5", "-2e10", "inf", "+.5")),
            "bool": lambda: chance.one_of(("true", "False")),
            "str": lambda: "x" + chance.clean_text().replace("\x00", "").strip(),
        }
        rows = [
            [makers[kind]() if chance.often(0.8) else "" for kind in columns]
            for _ in range(chance.randint(1, 6))
        ]
        text = io.StringIO()
        csv.writer(text, delimiter=separator, quotechar=quote, quoting=csv.QUOTE_ALL).writerows(
            [NAMES, *rows]
        )
        bom = "\ufeff" if chance.often(0.3) else ""
        path.write_bytes((bom + text.getvalue()).encode())
        options = (("quotechar", quote), ("sep", separator))
        found = type_of_csv(CsvSource(str(path), False, None, options), [str(path)])
        assert found is not None
        types = {"int": int, "float": float, "bool": bool, "str": str}
        for (name, hint), kind, values in zip(found.fields, columns, zip(*rows, strict=True), strict=True):
            assert name in NAMES
            if any(values) and kind != "str":
                assert types[kind] in hint.inner_types() or kind == "float", (name, hint, values)
        damaged = chance.damaged(path.read_bytes())
        path.write_bytes(damaged)
        try:
            type_of_csv(CsvSource(str(path), chance.often(), None, options), [str(path)])
        except (csv.Error, UnicodeDecodeError, ValueError):
            # The types are then not known before the pipeline runs.
            return

    each_seed(count, law)
