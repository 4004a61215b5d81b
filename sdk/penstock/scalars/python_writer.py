"""Writes expressions as Python: one function for one or several expressions, without a call for each operator.

It is the one writer to Python, of rows that are tuples and of elements that have fields.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from keyword import iskeyword
from types import CodeType
from typing import Any, Final

from penstock.error import refusal
from penstock.scalars import casting
from penstock.scalars.function import BITS, Code
from penstock.scalars.functions import RECORDS
from penstock.scalars.tree import (
    Call,
    Column,
    Field,
    Lambda,
    Literal,
    Local,
    Parameter,
    Scalar,
    UserCall,
    free_parameters,
    parts_of,
)
from penstock.scalars.widths import bounds_of, refuse_width, single
from penstock.where import GENERATED_FILE

DEPTH_MAX: Final = 20
"""The maximum number of calls that nest in one Python expression; Python reads at most 200 nested parentheses."""


class PythonWriter:
    """Writes the text of expressions; functions that they are divided into take the same argument.

    Args:
        argument: The name of the row, or of the element.
        names: The values that the text names.
        is_dict: Whether an element is a dict, whose fields are its items.
    """

    def __init__(self, argument: str, names: dict[str, Any], is_dict: bool = False) -> None:
        self.argument = argument
        self.definitions: list[str] = []
        self._names = names
        self._is_dict = is_dict
        self._locals: dict[str, str] = {}
        self._parts: dict[int, str] = {}
        self._count = 0
        names.update(
            overflow=refuse_width,
            single=single,
            divide_by_zero=casting.divide_by_zero,
            whole_micros=casting.whole_micros,
        )

    def compiled(
        self, scalars: Iterable[Scalar], write: Callable[[PythonWriter], str]
    ) -> Callable[[Any], Any]:
        """Returns the function whose result is the value of the text that `write` makes of the expressions."""
        self.divide(scalars)
        self._define("result", lambda: write(self))
        exec(compiled_code("\n".join(self.definitions), GENERATED_FILE), self._names)
        function: Callable[[Any], Any] = self._names["result"]
        return function

    def divide(self, scalars: Iterable[Scalar]) -> None:
        """Makes functions of their own of the parts that nest too deep, the innermost first."""
        depths: dict[int, int] = {}
        for scalar in scalars:
            waiting = [(scalar, False)]
            while waiting:
                found, has_parts = waiting.pop()
                if id(found) in depths:
                    continue
                if not has_parts:
                    waiting += [(found, True), *((part, False) for part in parts_of(found))]
                    continue
                depth = 1 + max((depths[id(part)] for part in parts_of(found)), default=0)
                if depth >= DEPTH_MAX and not isinstance(found, Lambda):
                    self._parts[id(found)], depth = self._define_part(found), 1
                depths[id(found)] = depth

    def _define_part(self, scalar: Scalar) -> str:
        """Returns the text of a call of a function that computes an expression."""
        name = self._fresh("item_part" if self._is_dict else "part")
        given = "".join(f", {_parameter(number)}" for number in sorted(free_parameters(scalar)))
        self._define(name, lambda: self.value(scalar).text, given)
        return f"{name}({self.argument}{given})"

    def _define(self, name: str, write: Callable[[], str], given: str = "") -> None:
        lines = "".join(f"    {line}\n" for line in self.body(write))
        self.definitions.append(f"def {name}({self.argument}{given}):\n{lines}")

    def body(self, write: Callable[[], str]) -> list[str]:
        """Returns the lines of a function; what it reads from its argument and needs several times is read first."""
        outer, self._locals = self._locals, {}
        value = write()
        lines = []
        for read, local in self._locals.items():
            uses = re.compile(rf"\b{local}\b")
            if len(uses.findall(value)) == 1:
                value = uses.sub(lambda _, read=read: read, value)  # type: ignore[misc]
            else:
                lines.append(f"{local} = {read}")
        self._locals = outer
        return [*lines, f"return {value}"]

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def name_of(self, value: object) -> str:
        """Returns a name in the text for a value of the program."""
        name = f"given{len(self._names)}"
        self._names[name] = value
        return name

    def value(self, scalar: Scalar) -> Code:
        """Returns the text of an expression."""
        match scalar:
            case Local(name, kind):
                return Code(name, kind.nullable, plain=True)
            case Column(index, _, kind):
                local = self._locals.setdefault(f"{self.argument}[{index}]", f"column{index}")
                return Code(local, kind.nullable, plain=True)
            case Field(name, kind):
                local = self._locals.setdefault(self._read_field(name), f"field{len(self._locals)}")
                return Code(local, kind.nullable, plain=True)
            case Literal(value):
                return self._literal(value)
            case Parameter(number, _, kind):
                return Code(_parameter(number), kind.nullable, plain=True)
            case Lambda(parameters):
                names = ", ".join(_parameter(each.number) for each in parameters)
                return Code(f"(lambda {names}: {self.value(scalar.body).text})", False, plain=True)
        if id(scalar) in self._parts:
            return Code(self._parts[id(scalar)], scalar.type.nullable)
        match scalar:
            case UserCall():
                arguments = ", ".join(self.value(part).text for part in scalar.arguments)
                return Code(f"{self.name_of(scalar.fn)}({arguments})", scalar.type.nullable)
            case Call():
                return self._call(scalar)
        what = f"{scalar} is known in Select only"
        raise refusal(TypeError, what, hint="put it into a row, with Select(start=window_start())")

    def _read_field(self, name: str) -> str:
        if self._is_dict:
            return f"{self.argument}[{name!r}]"
        # Python changes some letters that are not ASCII.
        is_plain = name.isascii() and name.isidentifier() and not iskeyword(name)
        return f"{self.argument}.{name}" if is_plain else f"getattr({self.argument}, {name!r})"

    def _call(self, call: Call) -> Code:
        function = RECORDS[call.name]
        if function.write is not None:
            return Code(function.write(self, call), call.type.nullable)
        checks, body = self._strict(call)
        if not checks:
            return Code(body, call.type.nullable)
        return Code(f"(None if {_any(checks, 'is None')} else {body})", True)

    def row(self, scalars: Iterable[Scalar]) -> str:
        """Returns the text of a tuple of the values of expressions."""
        return "(" + "".join(f"{self.value(scalar).text}, " for scalar in scalars) + ")"

    def one_or_tuple(self, scalars: Sequence[Scalar], nothing: str) -> str:
        """Returns the text of the value of an expression, or of a tuple of the values of several."""
        if len(scalars) == 1:
            return self.value(scalars[0]).text
        return self.row(scalars) if scalars else nothing

    def truth(self, scalar: Scalar) -> str:
        """Returns the text of whether an expression is true; False where it is false or NULL."""
        if isinstance(scalar, Call) and id(scalar) not in self._parts:
            if scalar.name == "OR":
                return f"({' or '.join(map(self.truth, scalar.arguments))})"
            function = RECORDS[scalar.name]
            if scalar.type.name == "BOOLEAN" and (function.inline or function.prepared):
                checks, body = self._strict(scalar)
                known = "".join(f"{check} is not None and " for check in checks)
                return f"({known}{body})"
        return f"({self.value(scalar).text} is True)"

    def all_true(self, scalar: Scalar) -> str:
        """Returns the text of whether a filter keeps a row: like Spark, it stops at the first part that is not true."""
        if isinstance(scalar, Call) and scalar.name == "AND" and id(scalar) not in self._parts:
            return f"({' and '.join(map(self.all_true, scalar.arguments))})"
        return self.truth(scalar)

    def apart(self, scalar: Scalar) -> str:
        """Returns the text of a call of a function of its own that computes an expression."""
        return self._define_part(scalar)

    def _literal(self, value: object) -> Code:
        number = isinstance(value, (int, float)) and value == value
        if type(value) in (bool, int, str, bytes, type(None)):
            text = f"({value!r})" if type(value) is int and value < 0 else repr(value)
        elif type(value) is float and math.isfinite(value):
            text = f"({value!r})"
        else:
            text = self.name_of(value)
        return Code(text, value is None, plain=True, number=number)

    def _strict(self, call: Call) -> tuple[list[str], str]:
        """The values that must not be None, and the text of the result if none is."""
        function = RECORDS[call.name]
        found = list(map(self.value, call.arguments))
        template = self._template(call, found)
        checks: list[str] = []
        codes = []
        last = max((place for place, code in enumerate(found) if code.nullable), default=-1)
        for place, code in enumerate(found):
            repeated = template is not None and template.count(f"{{{place}}}") > 1
            # A value before one that may be None is computed first, since it may fail.
            bound_first = not code.plain and (repeated or place < last)
            if not function.takes_null and (code.nullable or bound_first):
                name, bound = self.bound(code)
                checks.append(bound)
                code = replace(code, text=name, plain=True)
            codes.append(code)
        operands = [code.text for code in codes]
        if template is None:
            assert function.python is not None
            compute = function.python(call.type, [part.type for part in call.arguments])
            return checks, f"{self.name_of(compute)}({', '.join(operands)})"
        text = template.format(*operands)
        if template == "{0}" or function.whole in BITS:
            return checks, text
        if call.type.name == "BIGINT":
            local = self._fresh("whole")
            least, greatest = bounds_of(call.type.bits)
            text = (
                f"({local} if {least} <= ({local} := {text}) <= {greatest} else overflow({call.type.bits}))"
            )
        elif call.type.name == "DOUBLE" and call.type.bits == 32:
            text = f"single({text})"
        return checks, text

    def _template(self, call: Call, codes: Sequence[Code]) -> str | None:
        """The Python text of a call with its arguments by number; None if it is a call of a function."""
        function = RECORDS[call.name]
        if function.prepared is not None:
            known = [part.value for part in call.arguments[1:] if isinstance(part, Literal)]
            if None not in known and len(known) == len(call.arguments) - 1:
                return f"({self.name_of(function.prepared(*known))}({{0}}) is not None)"
        if function.inline is None or any(
            part.type.is_nested or part.type.name == "ANY" for part in call.arguments
        ):
            return None
        return function.inline(call, codes)

    def bound(self, code: Code) -> tuple[str, str]:
        """Returns a name for a value, and the text that computes the value and assigns it to the name."""
        if code.plain:
            # Python warns where a literal is compared by `is`, as bound values are.
            name = code.text if code.text.isidentifier() else self.name_of(ast.literal_eval(code.text))
            return name, name
        local = self._fresh("value")
        return local, f"({local} := {code.text})"


@functools.lru_cache(1_000)
def compiled_code(text: str, name: str) -> CodeType:
    """Returns the code of a text; the same text is compiled once."""
    return compile(text, name, "exec")


def _parameter(number: int) -> str:
    return f"parameter{number}"


def _any(checks: Sequence[str], test: str) -> str:
    return " or ".join(f"{check} {test}" for check in checks)
