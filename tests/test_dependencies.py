"""Each dependency has a lowest and a highest version, and what is installed lies between them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]


def dependencies() -> dict[str, list[Requirement]]:
    """What pyproject.toml asks for, by the name of the extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups: dict[str, list[str]] = {
        "to build": project["build-system"]["requires"],
        "to run": project["project"]["dependencies"],
        **project["project"]["optional-dependencies"],
    }
    return {group: list(map(Requirement, texts)) for group, texts in groups.items()}


def of_others(requirements: Iterable[Requirement]) -> list[Requirement]:
    """The requirements that are not extras of this very package."""
    return [each for each in requirements if each.name != "penstock"]


def lacks_a_bound(bounds: SpecifierSet) -> bool:
    operators = {each.operator for each in bounds}
    return "==" not in operators and not (operators & {">=", ">"} and operators & {"<=", "<"})


@pytest.mark.parametrize(
    ("bounds", "lacks"),
    [(">=1,<2", False), ("==1.2", False), (">=1", True), ("<2", True), ("!=1", True), ("", True)],
)
def test_a_missing_bound_is_seen(bounds: str, lacks: bool) -> None:
    assert lacks_a_bound(SpecifierSet(bounds)) is lacks


@pytest.mark.parametrize("group", dependencies())
def test_each_dependency_has_both_bounds_and_what_is_installed_lies_between_them(group: str) -> None:
    asked = of_others(dependencies()[group])
    assert [str(each) for each in asked if lacks_a_bound(each.specifier)] == []
    found = {}
    for each in asked:
        try:
            found[str(each)] = version(each.name)
        except PackageNotFoundError:
            continue  # This extra is not installed.
    outside = {text: own for text, own in found.items() if not Requirement(text).specifier.contains(own)}
    assert outside == {}
    assert found or group not in ("to run", "test")
