"""The error for a name of Beam's that penstock leaves out."""

from __future__ import annotations

import dis
import sys

from penstock.error import three_parts

__all__ = ["left_out"]


def left_out(module: str, name: str, hint: str) -> ImportError | AttributeError:
    """What a module's ``__getattr__`` raises for a name: an import shows the hint, and ``hasattr`` says no.

    Python replaces an AttributeError by an ImportError of its own where a name is imported, and the hint would be lost.

    Args:
        module: The module.
        name: The name.
        hint: What to do instead.

    >>> from penstock.options import pipeline_options
    >>> hasattr(pipeline_options, "FlinkRunnerOptions")
    False
    """
    asking = sys._getframe(2)
    text = three_parts(f"penstock has no {name}", hint=hint)
    if asking.f_code.co_code[asking.f_lasti] == dis.opmap["IMPORT_FROM"]:
        return ImportError(text, name=name)
    return AttributeError(text, name=name, obj=sys.modules.get(module))
