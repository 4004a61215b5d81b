"""The frames of TFRecord and Avro files: damage is found, and each block of a file is in one of its splits."""

from __future__ import annotations

import contextlib
import io
import zlib
from itertools import pairwise
from pathlib import Path

import fastavro
import pytest

from penstock_connectors.avro import parts as avro_parts
from penstock_connectors.avro.parts import NotAvroError, open_part
from penstock_connectors.tfrecord.records import DamagedRecord, encode_records, read_records
from penstock_spark.files.splits import Split
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, seeds

SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}],
}


@seeds(500, 100_000)
def test_records_of_tfrecord_come_back_and_damage_is_found_in_the_first_damaged_one(count: int) -> None:
    def law(chance: Chance) -> None:
        records = [chance.blob(40) for _ in range(chance.randint(0, 6))]
        content = encode_records(records, zlib.crc32)
        assert list(read_records(io.BytesIO(content), zlib.crc32)) == records
        damaged = chance.damaged(content)
        read: list[bytes] = []
        # Whole records may be gone, or there twice; none is another one.
        with contextlib.suppress(DamagedRecord):
            read.extend(read_records(io.BytesIO(damaged), zlib.crc32))
        assert all(record in records for record in read)

    each_seed(count, law)


@pytest.fixture(scope="module")
def avro_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("avro") / "rows.avro"
    rows = [{"a": number, "b": "x" * (number % 9)} for number in range(40)]
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, rows, sync_interval=60)
    return path


@seeds(60, 5_000)
def test_each_block_of_an_avro_file_is_in_one_of_its_splits(avro_file: Path, count: int) -> None:
    size = avro_file.stat().st_size

    def law(chance: Chance) -> None:
        places = sorted({0, size, *(chance.randint(0, size) for _ in range(chance.randint(0, 5)))})
        numbers: list[int] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(avro_parts, "BLOCK_BYTES", chance.randint(17, 99))
            for start, end in pairwise(places):
                with open_part(Split(str(avro_file), "rows.avro", start, end)) as part:
                    numbers += [row["a"] for row in fastavro.reader(part)]  # type: ignore[index, call-overload]
        assert numbers == list(range(40))

    each_seed(count, law)


@seeds(300, 50_000)
def test_the_header_of_a_damaged_avro_file_is_read_or_refused(
    avro_file: Path, tmp_path: Path, count: int
) -> None:
    content = avro_file.read_bytes()
    path = tmp_path / "damaged.avro"

    def law(chance: Chance) -> None:
        damaged = chance.damaged(content[:200]) + content[200:]
        path.write_bytes(damaged)
        start = chance.randint(0, len(damaged))
        try:
            with open_part(Split(str(path), "damaged.avro", start, len(damaged))) as part:
                found = part.read()
        except NotAvroError:
            return
        assert found.startswith(b"Obj\x01")
        assert len(found) <= 2 * len(damaged)

    each_seed(count, law)
