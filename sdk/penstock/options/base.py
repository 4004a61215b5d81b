"""Options: views that share one store of values, and defaults of a block of code."""

from __future__ import annotations

import argparse
import contextvars
import copy
import functools
import inspect
import json
import logging
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from penstock.base.display import HasDisplayData
from penstock.error import noun_for, refusal, three_parts
from penstock.options.option import Option
from penstock.options.parsing import OptionsParser, find_nearest_option
from penstock.options.table import STREAMING
from penstock.options.value_provider import ValueProvider
from penstock.where import here

_LOGGER = logging.getLogger(__name__)
_STORES = ("_flags", "_all_options", "_visible_options")
_ViewT = TypeVar("_ViewT", bound="PipelineOptions")
_block_defaults: contextvars.ContextVar[tuple[Mapping[str, Any], ...]] = contextvars.ContextVar(
    "penstock_block_defaults", default=()
)


class PipelineOptions(HasDisplayData):
    """The options of a pipeline, from flags and keyword arguments (Beam's ``PipelineOptions``).

    A subclass defines its options in ``_add_argparse_args(cls, parser)``. `view_as` shows an object as any subclass;
    all its views share the values. Flags that no class defines are ignored.

    Args:
        flags: Command line arguments; None means the program's (``sys.argv``).
        **kwargs: Values by option name; they win over flags.

    Raises:
        AttributeError: On reading or setting an option that this view does not have.
        SystemExit: From argparse, with the reason on standard error, if a known flag has a wrong value.

    >>> class GameOptions(PipelineOptions):
    ...     @classmethod
    ...     def _add_argparse_args(cls, parser):
    ...         parser.add_argument("--team", default="red")
    >>> PipelineOptions(["--team=blue"]).view_as(GameOptions).team
    'blue'
    """

    _records: ClassVar[tuple[Option, ...]] = ()
    """The options of this class that are records; penstock's own classes have all their options here."""
    _flags: list[str]
    _all_options: dict[str, Any]
    _visible_options: frozenset[str]

    def __init__(self, flags: Iterable[str] | None = None, **kwargs: object) -> None:
        if isinstance(flags, str | Mapping):
            hint = "write PipelineOptions(['--name=value']) or PipelineOptions.from_dictionary({...})"
            what = f"flags are a list of strings, not {noun_for(flags)}"
            raise refusal(ValueError, what, hint=hint)
        self._flags = list(sys.argv[1:] if flags is None else flags)
        for flag in self._flags:
            if not isinstance(flag, str):
                what = f"flags are strings, but one of them is {flag!r}"
                raise refusal(TypeError, what, hint=f"write {str(flag)!r}")
        parsed = _parse(type(self), self._flags)
        defaults = {name: value for block in _block_defaults.get() for name, value in block.items()}
        self._visible_options = frozenset(parsed)
        self._all_options = {**parsed, **defaults, **kwargs}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "_records" in vars(cls):
            cls.__doc__ = _with_attributes(cls.__doc__ or "", cls._records)

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        """Adds this class's options to a parser; a subclass overrides it."""
        for option in cls._records:
            parser.add(option)

    @classmethod
    def from_dictionary(cls: type[_ViewT], options: Mapping[str, Any]) -> _ViewT:
        """Returns options from values by name (Beam's ``from_dictionary``).

        Args:
            options: True means the flag alone; False the flag that switches the option off, if there is one;
                a list repeats the flag; a dict becomes JSON; None is left out with a warning.

        >>> PipelineOptions.from_dictionary({"streaming": True, "label": ["a", "b"]})._flags
        ['--streaming', '--label=a', '--label=b']
        """
        if not isinstance(options, Mapping):
            what = f"from_dictionary takes a dictionary, not {noun_for(options)}"
            raise refusal(TypeError, what, hint="write from_dictionary({'mode': 'batch'})")
        return cls([flag for name, value in options.items() for flag in _flags_of(name, value)])

    def get_all_options(
        self,
        drop_default: bool = False,
        add_extra_args_fn: Callable[[OptionsParser], None] | None = None,
        retain_unknown_options: bool = False,
        display_warnings: bool = False,
        current_only: bool = False,
    ) -> dict[str, Any]:
        """Returns the values of all options by name, of all defined classes of options (Beam's method).

        Args:
            drop_default: Leaves out values that equal their default.
            add_extra_args_fn: Adds further arguments to the parser.
            retain_unknown_options: Keeps flags that no class defines: True without a value, otherwise strings.
            display_warnings: Logs each unknown flag, with the closest known one.
            current_only: Only the options of this class.
        """
        classes = (type(self),) if current_only else tuple(list_option_classes())

        def new_parser() -> OptionsParser:
            parser = parser_of(classes)
            if add_extra_args_fn:
                add_extra_args_fn(parser)
            return parser

        parser = new_parser() if add_extra_args_fn else get_shared_parser(classes)
        known, unknown = parser.values_of(self._flags)
        if display_warnings:
            _warn_of_unknown(unknown, parser)
        if retain_unknown_options and unknown:
            parser = new_parser()
            _add_unknown(unknown, parser)
            known, unknown = parser.values_of(self._flags)
        elif unknown and not current_only:
            _LOGGER.warning("Ignored arguments that no options class defines: %s", unknown)
        result = {name: self._all_options.get(name, value) for name, value in known.items()}
        extra = {name: value for name, value in self._all_options.items() if name not in result}
        if extra and not retain_unknown_options and not current_only:
            _LOGGER.warning("Ignored values of options that no options class defines: %s", sorted(extra))
        if drop_default:
            defaults, _ = parser.values_of([])
            result = {
                name: value for name, value in result.items() if not _is_default(defaults.get(name), value)
            }
        return {**result, **extra} if retain_unknown_options else result

    def display_data(self) -> dict[str, Any]:
        """Returns the options that differ from their defaults."""
        return self.get_all_options(drop_default=True, retain_unknown_options=True)

    def view_as(self, cls: type[_ViewT]) -> _ViewT:
        """Shows these options as another class; a value set in one view is visible in all (Beam's ``view_as``)."""
        if not (isinstance(cls, type) and issubclass(cls, PipelineOptions)):
            what = f"view_as takes a class of options, not {cls!r}"
            raise refusal(TypeError, what, hint="pass the class itself")
        view = cls(self._flags)
        for name in view._visible_options:
            self._all_options.setdefault(name, view._all_options[name])
        view._all_options = self._all_options
        return view

    def validate(self, validator: object = None) -> list[str]:
        """Returns the errors in these options, as strings; a subclass overrides it."""
        values = self._all_options
        return [error for option in self._records for error in option.errors(values[option.name], values)]

    def is_compat_version_prior_to(self, breaking_change_version: str) -> bool:
        """True if ``--update_compatibility_version`` is set and earlier than a version such as ``2.72.0``."""
        wanted = self.view_as(StreamingOptions).update_compatibility_version
        return wanted is not None and _version(wanted) < _version(breaking_change_version)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__, *self._visible_options})

    def __getattr__(self, name: str) -> Any:
        # Python asks for private names before the stores exist, while it copies or unpickles an object.
        if not name.startswith("_") and name in self._visible_options:
            return self._all_options[name]
        raise NoSuchOption(type(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _STORES:
            super().__setattr__(name, value)
        elif name in self._visible_options:
            self._all_options[name] = value
        else:
            raise NoSuchOption(type(self), name)

    def __str__(self) -> str:
        values = ", ".join(f"{name}={self._all_options[name]}" for name in sorted(self._visible_options))
        return f"{type(self).__name__}({values})"


class OptionsContext:
    """Defaults of the options of pipelines that are made in a block (Beam's ``OptionsContext``).

    Also a decorator of functions. Flags do not override it; keyword arguments do.

    >>> class SizeOptions(PipelineOptions):
    ...     @classmethod
    ...     def _add_argparse_args(cls, parser):
    ...         parser.add_argument("--size", type=int, default=1)
    >>> with OptionsContext(size=3):
    ...     SizeOptions([]).size
    3
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    def __enter__(self) -> None:
        _block_defaults.set((*_block_defaults.get(), self.options))

    def __exit__(self, *exception: object) -> None:
        _block_defaults.set(_block_defaults.get()[:-1])

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, run inside such a block."""

        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapper

    @classmethod
    def augment_options(cls, options: PipelineOptions) -> PipelineOptions:
        """Sets the defaults of the surrounding blocks in `options` and returns it."""
        for block in _block_defaults.get():
            options._all_options.update(block)
        return options


def list_given_flags(options: PipelineOptions) -> list[str]:
    """Returns the flags from which options were made."""
    return options._flags


def list_given_values(options: PipelineOptions) -> dict[str, Any]:
    """Returns the values of options by name, as far as a view has parsed them or the program has set them."""
    return options._all_options


def with_values(options: _ViewT, values: Mapping[str, Any]) -> _ViewT:
    """Returns a copy with some values, which shares none with the options themselves."""
    own = copy.copy(options)
    own._all_options = {**options._all_options, **values}
    return own


def _parse(options_class: type[PipelineOptions], flags: list[str]) -> dict[str, Any]:
    # The flags of other people's classes may differ from one call to the next, e.g. with the environment.
    is_ours = options_class.__module__.startswith("penstock.")
    make = _shared_parser_of_bases if is_ours else _parser_of_bases
    return make(options_class.__mro__).values_of(flags)[0]


def _parser_of_bases(bases: tuple[type, ...]) -> OptionsParser:
    """A new parser of the options of a class and its bases; these come first, so that a class can redefine a flag."""
    parser = OptionsParser(render_help)
    for base in reversed(bases):
        if issubclass(base, PipelineOptions) and not {"_add_argparse_args", "_records"}.isdisjoint(
            vars(base)
        ):
            base._add_argparse_args(parser)
    return parser


_shared_parser_of_bases = functools.cache(_parser_of_bases)


def list_option_classes() -> Iterator[type[PipelineOptions]]:
    """Yields the classes of options that are defined now."""
    # A class that a notebook defines again counts once, in its latest form.
    latest: dict[str, type[PipelineOptions]] = {}
    waiting = list(PipelineOptions.__subclasses__())
    while waiting:
        options_class = waiting.pop(0)
        latest[f"{options_class.__module__}.{options_class.__qualname__}"] = options_class
        # Next, so that the program's own classes come last and can define flags of all others again.
        waiting[:0] = options_class.__subclasses__()
    yield from latest.values()


def _flags_of(name: str, value: object) -> Iterator[str]:
    if value is True:
        yield f"--{name}"
    elif value is False:
        yield from _off_switch(name)
    elif value is None:
        _LOGGER.warning("Ignored the option %s, whose value is None", name)
    elif isinstance(value, dict):
        yield f"--{name}={json.dumps(value)}"
    elif isinstance(value, list):
        yield from (f"--{name}={item}" for item in value)
    else:
        yield f"--{name}={value}"


def parser_of(classes: Iterable[type[PipelineOptions]]) -> OptionsParser:
    """Returns a new parser of the options of several classes; none is required, since no program uses all of them."""
    parser = OptionsParser(render_help)
    for options_class in classes:
        options_class._add_argparse_args(parser)
    parser.require_nothing()
    return parser


def get_shared_parser(classes: Iterable[type[PipelineOptions]]) -> OptionsParser:
    """Returns one parser for equal classes, which is never changed afterwards: making one takes milliseconds."""
    # A class without other references is not kept.
    return _shared_parser(tuple(map(weakref.ref, classes)))


@functools.lru_cache(maxsize=4)
def _shared_parser(classes: tuple[weakref.ref[type[PipelineOptions]], ...]) -> OptionsParser:
    return parser_of(found for each in classes if (found := each()) is not None)


def _off_switch(name: str) -> Iterator[str]:
    for action in get_shared_parser(list_option_classes()).arguments():
        if action.dest == name and action.const is False:
            yield action.option_strings[0]


def _is_default(default: object, value: object) -> bool:
    return not isinstance(default, ValueProvider) and bool(default == value)


def _add_unknown(unknown: list[str], parser: OptionsParser) -> None:
    seen: set[str] = set()
    for position, flag in enumerate(unknown):
        if flag == "--":
            break
        name, equals, _ = flag.partition("=")
        if not flag.startswith("-") or name in seen:
            continue
        following = unknown[position + 1] if position + 1 < len(unknown) else "-"
        if equals or (flag.startswith("--") and not following.startswith("-")):
            parser.add_argument(name, type=str)
        elif following.startswith("-"):
            parser.add_argument(name, action="store_true")
        else:
            _LOGGER.warning("Ignored %s; a flag with a value starts with two dashes", flag)
        seen.add(name)


def _warn_of_unknown(unknown: list[str], parser: OptionsParser) -> None:
    for argument in unknown:
        close = find_nearest_option(argument.partition("=")[0], parser.known_flags())
        _LOGGER.warning("Unknown argument: %s%s", argument, f"; did you mean {close}?" if close else "")


class NoSuchOption(AttributeError):
    """An option that a view does not have; its message, which names a view that has it, is made when it is read."""

    def __init__(self, options_class: type[PipelineOptions], option: str) -> None:
        super().__init__(options_class, option)
        self._where = None if option.startswith("_") else here()

    def __str__(self) -> str:
        options_class, option = self.args[:2]
        what = f"{options_class.__name__!r} object has no attribute {option!r}"
        if option.startswith("_"):
            return what
        homes = {
            argument.dest: other.__name__
            for other in list_option_classes()
            for argument in parser_of([other]).arguments()
        }
        own = [argument.dest for argument in parser_of([options_class]).arguments()]
        close = find_nearest_option(option, own)
        hint = "a program run with --help shows all options"
        if option in homes:
            hint = f"write options.view_as({homes[option]}).{option}"
        elif close:
            hint = f"did you mean {close}?"
        return three_parts(what, where=self._where, hint=hint)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in (text.split(".") + ["0", "0"])[:3])


_LAST_WORDS = (
    "Beam's other options, such as those of clouds, can be given too, and have no effect on Spark; a run names those "
    "that are given."
)


def render_help() -> str:
    """Returns the options by class: the program's own come first, the runner's follow."""
    parser = OptionsParser()
    sections: list[tuple[type[PipelineOptions], list[argparse.Action]]] = []
    for options_class in list_option_classes():
        before = set(parser.arguments())
        options_class._add_argparse_args(parser)
        sections.append((options_class, [each for each in parser.arguments() if each not in before]))
    remaining = set(parser.arguments())
    formatter = argparse.HelpFormatter(os.path.basename(sys.argv[0]) or "program")
    formatter.add_usage("%(prog)s [options]", [], [])
    for options_class, arguments in sorted(sections, key=lambda section: _rank(section[0])):
        shown = [each for each in arguments if each in remaining and parser.has_effect(each)]
        if shown:
            formatter.start_section(f"{options_class.__name__}: {_meaning(options_class)}")
            formatter.add_arguments(shown)
            formatter.end_section()
    formatter.add_text(_LAST_WORDS)
    return formatter.format_help().rstrip()


def _with_attributes(doc: str, records: Iterable[Option]) -> str:
    """A docstring with a line for each option that has an effect."""
    lines = [f"        {option.name}: {option.help}" for option in records if option.effect is None]
    if not lines:
        return doc
    above, example, below = doc.rstrip().partition("\n    >>> ")
    attributes = "\n".join(["    Attributes:", *lines])
    return f"{above.rstrip()}\n\n{attributes}\n{example}{below}\n    "


def _rank(options_class: type[PipelineOptions]) -> int:
    if not options_class.__module__.startswith("penstock."):
        return 0
    return 1 if options_class.__name__ == "SparkOptions" else 2


def _meaning(options_class: type[PipelineOptions]) -> str:
    """The first sentence of the docstring, without the origin of the name."""
    text = inspect.cleandoc(options_class.__doc__ or "options of this program").partition("\n")[0]
    return text.partition(" (Beam's")[0].rstrip(".")


class StreamingOptions(PipelineOptions):
    """The options of long-running pipelines (Beam's ``StreamingOptions``).

    >>> PipelineOptions(["--update_compatibility_version=2.60.0"]).is_compat_version_prior_to("2.72.0")
    True
    """

    _records = STREAMING
