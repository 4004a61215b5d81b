"""SQL over PCollections, with the meaning that Spark SQL defines."""

from importlib.util import find_spec

from penstock.error import refusal

if find_spec("sqlglot") is None:
    what = "SQL needs the package sqlglot, which is not installed"
    raise refusal(ModuleNotFoundError, what, hint="pip install 'penstock[sql]'")
