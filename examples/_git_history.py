"""Writes the history of a Git repository to a text file, for the leaderboard to read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from penstock.error import BeamError

SAMPLE = Path(__file__).parent / "data" / "history.txt"

RECORD, FIELD = "\x1e", "\x1f"
"""What opens the record of a commit, and what parts the fields of its first line. Git leaves such characters
out of nothing: a name that has one makes its record unreadable, which is what dead letters are for."""

HEADER = FIELD.join(("%h", "%aN", "%at", "%ct"))
"""The hash, the author (as .mailmap spells the name), the author time, the committer time."""


class NoHistory(BeamError):
    """There is no history to read."""


def write_history(repository: Path, history: Path) -> bool:
    """Writes every commit that HEAD leads to, in the order of arrival, with the lines changed in each file.

    Args:
        repository: A folder in a work tree, or a bare repository.
        history: The file to write; its folder is made.

    Returns:
        Whether the repository is a shallow clone, which lacks what came before some commit.

    Raises:
        NoHistory: If Git is missing, or finds no repository or no commit there.
    """
    shallow = _git(repository, "rev-parse", "--is-shallow-repository") == "true"
    if not _git(repository, "rev-list", "--all", "--max-count=1") and not _has_head(repository):
        raise NoHistory(
            "the repository has no commits yet",
            where=f"in {repository}",
            hint="commit something first, or name another repository with --repo",
        )
    log = (
        *("-c", "log.showRoot=true", "-c", "log.showSignature=false", "-c", "core.quotePath=true"),
        *("log", "HEAD", "--reverse", "--numstat", "--no-ext-diff", "--no-color", "--encoding=UTF-8"),
        f"--format={RECORD}{HEADER}",
    )
    history.parent.mkdir(parents=True, exist_ok=True)
    with history.open("wb") as file:
        _git(repository, *log, into=file)
    return shallow


def write_sample(history: Path) -> None:
    """Writes the history of a project that never was."""
    history.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(SAMPLE, history)
