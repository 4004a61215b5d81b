"""The wheel, built from a copy of the tree and installed in an environment of its own, runs pipelines."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_NEEDED = ("sdk", "runner_spark", "connectors", "conformance")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree")
    for name in _NEEDED:
        shutil.copytree(_ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(_ROOT / name, tree / name)
    _run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(tree / "dist"),
        str(tree),
    )
    [built] = (tree / "dist").iterdir()
    return built


def test_the_wheel_has_the_packages_their_types_and_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packages = {
        "penstock",
        "penstock_spark",
        "penstock_connectors",
        "penstock_conformance",
        "penstock_figures",
    }
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == packages
    assert {name for name in names if name.endswith("py.typed")} == {f"{name}/py.typed" for name in packages}
    assert [name for name in names if name.endswith("/LICENSE")] != []
    assert [name for name in names if "__pycache__" in name] == []
    [points] = [name for name in names if name.endswith("/entry_points.txt")]
    assert b"penstock.io.kafka.KafkaSource = penstock_connectors.kafka:KAFKA" in zipfile.ZipFile(wheel).read(
        points
    )
    # The page of a run is not Python, and is needed all the same; so are first programs, with what lies beside them.
    assert "penstock_spark/live/page.html" in names
    programs = "penstock_conformance/first_programs"
    here = _ROOT / "conformance" / programs
    files = {path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_file()}
    written = {name.removeprefix(f"{programs}/") for name in names if name.startswith(f"{programs}/")}
    assert written == {name for name in files if "__pycache__" not in name}
    assert {"batch/data/orders.csv", "stream/later.csv", "sql/job.sql", "sql/pyproject.toml"} < written


@pytest.mark.long
@pytest.mark.spark
def test_a_wheel_that_is_installed_by_itself_runs_a_batch_a_stream_and_the_command_line(
    wheel: Path, tmp_path: Path
) -> None:
    home = tmp_path / "environment"
    # Installing pip there takes longer than all the rest; the one of this environment can install there.
    venv.create(home)
    python = str(home / "bin" / "python")
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", str(wheel))
    # The dependencies are those of this environment. A .pth file in a folder that a .pth file names is not read,
    # so that this environment's own penstock, which is a checkout, is not seen.
    packages = next(home.glob("lib/python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    assert "the wheel works" in _run(python, str(Path(__file__).parent / "smoke.py"), cwd=tmp_path)


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
