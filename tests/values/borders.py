"""All borders of the matrix; ``python tests/values/borders.py`` prints the pairs that are covered."""

from __future__ import annotations

from arrow_borders import ARROW, PARQUET
from matrix import pairs_covered

BORDERS = (ARROW, PARQUET)

if __name__ == "__main__":
    print(pairs_covered(BORDERS))
