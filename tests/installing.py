"""What pip would write of a project that is installed: its entry points, by which Python finds it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_FILE = re.compile(r"^```(?:python|toml) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_metadata(project: Path, into: Path) -> None:
    """Makes a project found by its entry points, from a folder that is on the import path.

    Args:
        project: The folder with its ``pyproject.toml``.
        into: Where its metadata goes, as into a folder of installed packages.
    """
    described = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = described["name"], described["version"]
    write_entry_points(into, name, described["entry-points"], version)


def write_entry_points(
    into: Path, name: str, groups: dict[str, dict[str, str]], version: str = "1.0"
) -> None:
    """Writes the metadata of a distribution with entry points."""
    folder = into / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in points.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")


def files_of_page(text: str) -> dict[str, str]:
    """The files that a page lets its reader write: blocks of code with the name of a file beside the language.

    >>> files_of_page("```python scores.py\\nLIMIT = 3\\n```\\n")
    {'scores.py': 'LIMIT = 3\\n'}
    """
    return dict(_FILE.findall(text))
