"""All borders of the matrix; ``python -m tests.values.borders`` prints the pairs that are covered."""

from __future__ import annotations

from tests.values.arrow_borders import ARROW, INT96, PARQUET, PLAIN_PARQUET
from tests.values.database_borders import CHANGES, POSTGRES, SQLITE
from tests.values.matrix import pairs_covered
from tests.values.other_borders import ARROW_BATCHES, AVRO, NUMPY, ORC, PANDAS_BATCHES, SPARK
from tests.values.text_borders import CSV, CSV_OF_TEXTS, JSON

BORDERS = (
    *(ARROW, PARQUET, PLAIN_PARQUET, INT96, ORC, AVRO, JSON, CSV, CSV_OF_TEXTS, POSTGRES, CHANGES, SQLITE),
    *(ARROW_BATCHES, PANDAS_BATCHES, NUMPY, SPARK),
)

if __name__ == "__main__":
    print(pairs_covered(BORDERS))
