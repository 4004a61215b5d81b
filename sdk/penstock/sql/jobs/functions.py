"""Functions of Python that a job names by their modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from penstock.checks.similar_names import find_nearest
from penstock.error import split_hint, three_parts
from penstock.functions.combinefn import CombineFn
from penstock.sql.catalog import Catalog
from penstock.sql.errors import SqlError
from penstock.sql.statements.forms import CreateFunction
from penstock.sql.statements.words import Script
from penstock.sql.user_functions import guard_combine_fn, list_frames


def create_function(statement: CreateFunction, script: Script, catalog: Catalog) -> None:
    """Adds the function that a statement names to a catalog.

    Modules are looked for in the folder of the job first. A class of CombineFns is an aggregate.

    Raises:
        SqlError: There is no such module or function, its import fails, or it cannot be called.
    """
    if statement.name.upper() in catalog.functions and not statement.replace:
        hint = "write CREATE OR REPLACE FUNCTION, or choose another name"
        script.refuse(f"the function {statement.name!r} already exists", statement.at, hint)
    module_name, colon, name = statement.path.partition(":")
    if not (colon and module_name and name):
        what = f"{statement.path!r} does not name a module and a function"
        script.refuse(what, statement.path_at, "write 'module:function'")
    try:
        with _importing_from(script.folder):
            module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            _refuse_import(statement, script, module_name, error)
        where = f"put {module_name}.py beside the job, or install its package"
        script.refuse(f"there is no module {module_name!r}", statement.path_at, where)
    except Exception as error:
        _refuse_import(statement, script, module_name, error)
    found = getattr(module, name, None)
    if found is None:
        meant = find_nearest(name, vars(module))
        hint = f"did you mean '{module_name}:{meant}'?" if meant else f"define {name} in {module_name}"
        script.refuse(f"the module {module_name!r} has no function {name!r}", statement.path_at, hint)
    if isinstance(found, type) and issubclass(found, CombineFn):
        found = found()
    if isinstance(found, CombineFn):
        # The rows of a group come from many places, so its errors name the declaration.
        found = guard_combine_fn(found, statement.name.upper(), script.place(statement.path_at))
    try:
        catalog.create_function(statement.name, found)
    except TypeError as error:
        what, hint = split_hint(str(error))
        script.refuse(what.splitlines()[0], statement.path_at, hint)
    name = statement.name.upper()
    catalog.functions[name] = replace(catalog.functions[name], caller=script.name)


def _refuse_import(statement: CreateFunction, script: Script, module: str, error: Exception) -> NoReturn:
    what = f"the module {module!r} cannot be imported: {type(error).__name__}: {error}"
    # The first lines of the traceback are of this module.
    frames = list_frames(error.__traceback__ and error.__traceback__.tb_next)
    where = "\n  ".join([script.place(statement.path_at), *frames])
    raise SqlError(three_parts(what, where=where, hint="correct the module")) from None


@contextmanager
def _importing_from(folder: Path | None) -> Iterator[None]:
    """Lets modules of a folder be imported, as those beside a program are."""
    if folder is not None and str(folder) not in sys.path:
        # It stays: what is imported may import more when it is called.
        sys.path.insert(0, str(folder))
    yield
