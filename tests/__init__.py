"""The tests, as one package; the programs that tests start import its modules by the same names."""

import os
from pathlib import Path

_ROOT = str(Path(__file__).parents[1])
_folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
if _ROOT not in _folders:
    os.environ["PYTHONPATH"] = os.pathsep.join([_ROOT, *_folders])
