"""Writes the history of a Git repository to a text file, for the leaderboard to read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import IO

from penstock.error import BeamError

SAMPLE = Path(__file__).parent / "data" / "history.txt"

RECORD, FIELD = "\x1e", "\x1f"
"""The marks that open the record of a commit and separate the fields of its first line."""

HEADER = FIELD.join(("%h", "%aN", "%at", "%ct"))
"""The hash, the author (spelled as .mailmap says), the author time, the committer time."""

# The user's own settings must not change Git's output.
LOG = (
    *("-c", "log.showRoot=true", "-c", "log.showSignature=false"),
    *("log", "HEAD", "--reverse", "--numstat", "--no-ext-diff", "--no-color", "--encoding=UTF-8"),
    f"--format={RECORD}{HEADER}",
)


class NoHistory(BeamError):
    """Raised when a folder has no history to read."""


def write_history(repository: Path, history: Path) -> bool:
    """Writes every commit that HEAD leads to, in the order of arrival, with the lines changed in each file.

    Args:
        repository: A folder of a work tree, or a bare repository.
        history: The file to write.

    Returns:
        Whether the repository is a shallow clone, which lacks its oldest commits.

    Raises:
        NoHistory: If Git is missing, or finds no repository or no commit there.
    """
    shallow = _git(repository, "rev-parse", "--is-shallow-repository").stdout == b"true\n"
    if _git(repository, "rev-parse", "--verify", "--quiet", "HEAD", may_fail=True).returncode:
        raise NoHistory(
            "the repository has no commits yet",
            where=f"in {repository}",
            hint="commit something first, or name another repository with --repo",
        )
    with history.open("wb") as file:
        _git(repository, *LOG, into=file)
    return shallow


def write_sample(history: Path) -> None:
    """Writes the history of an invented project."""
    shutil.copyfile(SAMPLE, history)


def _git(
    repository: Path, *arguments: str, into: IO[bytes] | int = subprocess.PIPE, may_fail: bool = False
) -> subprocess.CompletedProcess[bytes]:
    if shutil.which("git") is None:
        raise NoHistory(
            "there is no git command",
            where=f"to read {repository} with",
            hint="install Git, from https://git-scm.com or with your system's packages",
        )
    command = ("git", "-C", str(repository), *arguments)
    done = subprocess.run(command, stdout=into, stderr=subprocess.PIPE, check=False)
    if done.returncode and not may_fail:
        said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise NoHistory(
            f"Git cannot read the history: {said.removeprefix('fatal: ')}",
            where=f"in {repository}",
            hint="name a folder that is a Git repository with --repo",
        )
    return done
