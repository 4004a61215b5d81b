"""What reaches the workers: the packages, the import paths, the user's own modules."""

from __future__ import annotations

import io
import os
import pickle
import site
import subprocess
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pyspark.cloudpickle
import pytest

from penstock_spark.shipping.import_paths import driver_sys_path, packages_as_zip
from penstock_spark.shipping.user_modules import pickle_by_value, pickle_by_value_modules

_MODULES = {
    "own_leaf": "LIMIT = 3\n",
    "own_helper": "import own_leaf\ndef small(x): return x < own_leaf.LIMIT\nclass Box:\n    inside = 7\n",
    "own_unused": "def never(x): return x\n",
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, types.ModuleType]]:
    """Modules that only this process can import."""
    import importlib

    monkeypatch.syspath_prepend(tmp_path)
    for name, text in _MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    yield {name: importlib.import_module(name) for name in _MODULES}
    for name in _MODULES:
        del sys.modules[name]


def test_the_shipped_archive_is_the_same_each_time_and_imports_by_itself(tmp_path: Path) -> None:
    content = packages_as_zip()
    packages_as_zip.cache_clear()
    assert packages_as_zip() == content
    assert not [name for name in zipfile.ZipFile(io.BytesIO(content)).namelist() if "__pycache__" in name]
    (tmp_path / "shipped.zip").write_bytes(content)
    code = (
        "import penstock, penstock_spark, penstock_connectors.delta\n"
        "print(penstock.__file__, penstock_spark.__file__, penstock_connectors.delta.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": os.pathsep.join([str(tmp_path / "shipped.zip"), *site.getsitepackages()])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("shipped.zip") == 3


def test_the_paths_of_the_driver_are_absolute_and_the_current_folder_is_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "path", ["", "does/not/exist", os.fspath(tmp_path), os.path.dirname(os.__file__)]
    )
    assert driver_sys_path() == (os.fspath(tmp_path), os.path.dirname(os.__file__))


def test_the_modules_of_functions_classes_and_closures_are_found_with_what_they_import(
    own: dict[str, types.ModuleType],
) -> None:
    helper = own["own_helper"]

    class Holder:
        def __init__(self, fn: object) -> None:
            self.fn = fn

    def closed_over(x: int) -> bool:
        return bool(helper.small(x))

    expected = (helper, own["own_leaf"])
    shapes = [
        helper.small,
        helper.Box,
        helper.Box(),
        Holder(helper.small),
        [{"key": (helper.Box(),)}],
        closed_over,
    ]
    for shape in shapes:
        found = [module for module in pickle_by_value_modules([shape]) if module.__name__.startswith("own_")]
        assert tuple(found) == expected, shape
    assert pickle_by_value_modules([len, pickle.dumps, cloudpickle.dumps, 3, "text", None]) == ()


@pytest.mark.parametrize("pickler", [cloudpickle, pyspark.cloudpickle])
def test_within_the_block_both_picklers_send_the_users_modules_whole(
    own: dict[str, types.ModuleType], pickler: types.ModuleType, tmp_path: Path
) -> None:
    small = own["own_helper"].small
    with pickle_by_value(pickle_by_value_modules([small])):
        content = pickler.dumps(small)
    assert not pickler.list_registry_pickle_by_value()
    code = "import pickle, sys; small = pickle.load(sys.stdin.buffer); print(small(2), small(3))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=content, capture_output=True, check=True, cwd="/"
    )
    assert done.stdout.split() == [b"True", b"False"]


def test_what_the_user_registered_stays_registered(own: dict[str, types.ModuleType]) -> None:
    helper = own["own_helper"]
    cloudpickle.register_pickle_by_value(helper)
    try:
        with pickle_by_value([helper]):
            pass
        assert cloudpickle.list_registry_pickle_by_value() == {"own_helper"}
    finally:
        cloudpickle.unregister_pickle_by_value(helper)
