"""An import of a module of Beam's that is left out says what to do, and fails as that of any absent module does."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

import penstock
import penstock.io
from penstock.left_out import INSTEAD, INSTEAD_OF_NAMES

KINESIS = r"[\s\S]*hint: .*Spark reads and writes these by format name"


@pytest.mark.parametrize("module", INSTEAD)
def test_an_import_fails_with_what_to_do_instead(module):
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(module)
    assert str(caught.value).startswith("No module named ")
    _, where, hint = str(caught.value).split("\n")
    assert where.startswith("  at test_absent_modules.py:")
    advice = INSTEAD[module].removeprefix("not yet: ").removeprefix("not our business: ")
    assert hint.endswith(f"; {advice}")
    assert caught.value.name == module
    assert module not in sys.modules


@pytest.mark.parametrize("module", sorted({name.rpartition(".")[0] for name in INSTEAD_OF_NAMES}))
def test_a_name_that_a_module_lacks_fails_with_what_to_do_instead(module):
    for name in [name.rpartition(".")[2] for name in INSTEAD_OF_NAMES if name.rpartition(".")[0] == module]:
        advice = INSTEAD_OF_NAMES[f"{module}.{name}"].removeprefix("not yet: ")
        with pytest.raises(AttributeError, match=f"no attribute '{name}'\n  at ") as caught:
            getattr(importlib.import_module(module), name)
        assert str(caught.value).endswith("; " + advice.removeprefix("not our business: "))


def test_an_import_from_a_module_that_lacks_the_name_has_the_hint():
    with pytest.raises(
        ImportError, match=r"(?s)cannot import name 'CompressedFile'.*at test_absent.*hint: .*gzip"
    ):
        from penstock.io.filesystem import CompressedFile  # noqa: F401
    with pytest.raises(ImportError, match=r"(?s)cannot import name 'ProtoCoder'.*hint: .*serialized bytes"):
        from penstock.coders import ProtoCoder  # noqa: F401
    with pytest.raises(ImportError, match=r"cannot import name 'Nothing' from 'penstock.io.filesystem' \("):
        from penstock.io.filesystem import Nothing  # noqa: F401
    assert not hasattr(penstock.io.filesystem, "CompressedFile")


def test_a_package_knows_the_names_of_the_module_that_it_shows():
    with pytest.raises(AttributeError, match=r"(?s)no attribute 'ProtoCoder'.*hint: .*serialized bytes"):
        _ = penstock.coders.ProtoCoder


def test_every_way_to_import_has_the_hint():
    with pytest.raises(ModuleNotFoundError, match=KINESIS):
        import penstock.io.kinesis as _
    with pytest.raises(ModuleNotFoundError, match=KINESIS):
        from penstock.io.kinesis import ReadDataFromKinesis  # noqa: F401
    with pytest.raises(
        ImportError, match=f"cannot import name 'kinesis' from 'penstock.io'{KINESIS}"
    ) as caught:
        from penstock.io import kinesis  # noqa: F401
    assert not isinstance(caught.value, ModuleNotFoundError)
    with pytest.raises(ModuleNotFoundError, match=r"(?s)No module named 'penstock.io.gcp'.*hint: .*sparkio"):
        from penstock.io.gcp.bigquery import WriteToBigQuery  # noqa: F401
    with pytest.raises(ImportError, match=r"(?s)cannot import name 'ReadFromPubSub'.*hint: .*sparkio"):
        from penstock.io import ReadFromPubSub  # noqa: F401
    with pytest.raises(AttributeError, match=r"(?s)no attribute 'ReadFromPubSub'.*hint: .*sparkio"):
        _ = penstock.io.ReadFromPubSub
    with pytest.raises(ImportError, match=r"(?s)cannot import name 'DataflowRunner'.*hint: .*SparkRunner"):
        from penstock.runners import DataflowRunner  # noqa: F401
    with pytest.raises(AttributeError, match=r"(?s)no attribute 'DataflowRunner'.*hint: .*SparkRunner"):
        _ = penstock.runners.DataflowRunner
    with pytest.raises(AttributeError, match=r"(?s)no attribute 'dataframe'.*hint: .*pandas"):
        _ = penstock.dataframe


def test_whoever_only_asks_is_told_that_there_is_none():
    assert importlib.util.find_spec("penstock.io.kinesis") is None
    assert not hasattr(penstock.io, "kinesis")
    assert not hasattr(penstock, "dataframe")
    assert importlib.util.find_spec("penstock.io.textio") is not None
    try:
        from penstock.io import kinesis
    except ImportError:
        kinesis = None
    assert kinesis is None


@pytest.mark.parametrize(
    "name", ["penstock.io.elsewhere", "penstock.nothing", "penstock.io.textio.kafka", "kafkas"]
)
def test_other_modules_that_are_not_there_have_pythons_own_error(name):
    with pytest.raises(ModuleNotFoundError, match=r"^No module named") as caught:
        importlib.import_module(name)
    assert "hint" not in str(caught.value)
    with pytest.raises(ImportError, match=r"^cannot import name 'nothing' from 'penstock.io'"):
        from penstock.io import nothing  # noqa: F401


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("penstock.transfroms", "penstock.transforms"),
        ("penstock.transfroms.util", "penstock.transforms"),
        ("penstock.io.kafkas", "penstock.io.kafka"),
        ("penstock.transforms.utli", "penstock.transforms.util"),
    ],
)
def test_a_misspelled_module_has_a_hint(name, meant):
    with pytest.raises(
        ModuleNotFoundError, match=rf"^No module named .*\n  at .*\n  hint: did you mean {meant}\?$"
    ):
        importlib.import_module(name)
    assert importlib.util.find_spec("penstock.transfroms") is None


def test_the_table_is_loaded_only_when_something_is_missing():
    program = (
        "import sys, penstock, penstock.io\n"
        "try: import nothing\n"
        "except ImportError: pass\n"
        "print('penstock.left_out' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_sql_without_its_package_says_how_to_install_it(tmp_path):
    program = tmp_path / "game.py"
    program.write_text(
        "import sys\nsys.modules['sqlglot'] = None\nfrom penstock.transforms.sql import SqlTransform\n"
    )
    told = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert told.stderr.splitlines()[-3:] == [
        "ModuleNotFoundError: SQL needs the package sqlglot, which is not installed",
        "  at game.py:3",
        "  hint: pip install 'penstock[sql]'",
    ]


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        ("penstock.io", "ReadFromKafka", "import it from penstock.io.kafka"),
        ("penstock.io", "ReadFromDatabse", "did you mean ReadFromDatabase, of penstock.io.database?"),
        ("penstock.io", "ReadFromCSV", "did you mean ReadFromCsv?"),
        ("penstock.transforms", "periodicsequence", "import it: import penstock.transforms.periodicsequence"),
    ],
    ids=["a connector", "a misspelled connector", "a misspelled name", "a module"],
)
def test_a_name_of_another_module_says_what_to_import(module, name, hint, monkeypatch, capsys):
    monkeypatch.delattr(f"{module}.{name}", raising=False)
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    assert str(caught.value).endswith(f"hint: {hint}")
    # Python does not add a guess of its own.
    sys.__excepthook__(AttributeError, caught.value, None)
    assert capsys.readouterr().err.endswith(f"hint: {hint}\n")
