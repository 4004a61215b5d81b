"""The mechanism of options: parsing flags, views that share one store, and defaults of a block of code."""

from __future__ import annotations

import argparse
import contextvars
import copy
import functools
import inspect
import json
import logging
import os
import re
import shutil
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from penstock.base.display import HasDisplayData
from penstock.base.near_names import nearest
from penstock.base.where import here
from penstock.error import noun_for, refusal, three_parts
from penstock.options.value_provider import RuntimeValueProvider, StaticValueProvider, ValueProvider

_MUCH_ALIKE = 0.7


class OptionsParser(argparse.ArgumentParser):
    """The parser that ``_add_argparse_args`` receives: argparse's, plus arguments whose value may come later.

    A flag that is defined twice takes its later definition. ``--help`` shows the options of all classes.
    """

    def __init__(self) -> None:
        # Argparse makes a formatter for each argument that is added, and each would ask for the terminal's width.
        formatter = functools.partial(argparse.HelpFormatter, width=shutil.get_terminal_size().columns - 2)
        super().__init__(
            allow_abbrev=False, conflict_handler="resolve", add_help=False, formatter_class=formatter
        )
        self._without_effect: dict[argparse.Action, str] = {}
        self.add_argument("-h", "--help", action=Help)

    def add_without_effect(self, instead: str, *names: str, **kwargs: Any) -> None:
        """Adds an argument that has no effect, as a run reports; `instead` says what has the effect."""
        action = self.add_argument(*names, **kwargs, help=f"Of no effect: {instead}.")
        self._without_effect[action] = instead

    def without_effect(self) -> dict[argparse.Action, str]:
        """The arguments that have no effect, each with what has the effect; redefined arguments are not included."""
        actions = set(self._actions)
        return {action: text for action, text in self._without_effect.items() if action in actions}

    def error(self, message: str) -> NoReturn:
        """Prints what is wrong and ends the program; argparse's own method prints every flag before that."""
        what = re.sub("ignored explicit argument (.*)", r"it takes no value, and is given \1", message)
        program = os.path.basename(sys.argv[0]) or "program"
        self.exit(2, f"{three_parts(f'{program}: {what}', hint=f'{program} --help shows all options')}\n")

    def values_of(self, flags: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """The values by name, and the arguments that no flag knows; lists and dicts belong to the caller."""
        found, unknown = self.parse_known_args(flags)
        values = {
            name: copy.copy(value) if isinstance(value, (list, dict)) else value
            for name, value in vars(found).items()
        }
        return values, unknown

    def known_flags(self) -> list[str]:
        """Every flag, with its dashes."""
        return [flag for action in self._actions for flag in action.option_strings]

    def add_value_provider_argument(self, *args: str, **kwargs: Any) -> None:
        """Adds an argument whose value is a ValueProvider (Beam's method).

        The arguments are as in ``add_argument``; `type` and `default` describe the value, not the provider.
        """
        if not args or not args[0]:
            what = "a value provider argument has no name"
            raise refusal(ValueError, what, hint="write '--name'")
        if args[0].startswith("-"):
            option_name = next((name for name in args if name.startswith("--")), args[0]).lstrip("-")
        else:
            option_name = args[0]
            kwargs["nargs"] = kwargs.get("nargs") or "?"
        value_type = kwargs.get("type") or str
        default = RuntimeValueProvider(option_name, value_type, kwargs.get("default"))
        convert = functools.partial(StaticValueProvider, value_type)
        self.add_argument(*args, **{**kwargs, "type": convert, "default": default})


class Help(argparse.Action):
    """Prints the options of all classes that are defined, and ends the program."""

    def __init__(self, option_strings: list[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Prints and ends."""
        print(text_of_help())
        parser.exit()


class MergingAction(argparse.Action):
    """An argument that can be repeated: each value is merged with the values before it."""

    def merged(self, so_far: Any, value: Any, flag: str) -> Any:
        """The merged value; an ``argparse.ArgumentError`` makes argparse print the error and end the program."""
        raise NotImplementedError

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Merges the value."""
        setattr(namespace, self.dest, self.merged(getattr(namespace, self.dest), values, str(option_string)))


class CommaSeparatedList(MergingAction):
    """Repeated flags and commas both make one list; a value with several ``=`` stays whole.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--x", action=CommaSeparatedList)
    >>> parser.parse_args(["--x=a,b=1", "--x=c=d=1,e=2"]).x
    ['a', 'b=1', 'c=d=1,e=2']
    """

    def merged(self, so_far: Any, value: Any, flag: str) -> list[str]:
        return [*(so_far or ()), *_split(str(value))]


class MergedObjects(MergingAction):
    """Repeated JSON objects make one object; of equal names the later value counts (with ``type=json.loads``)."""

    def merged(self, so_far: Any, value: Any, flag: str) -> dict[str, Any]:
        return {**(so_far or {}), **value}


class AuditEntries(MergingAction):
    """Entries for Google's log of accesses to files: ``key=value``, or JSON if the flag's name is a plural.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--entry", "--entries", dest="entries", action=AuditEntries)
    >>> parser.parse_args(["--entry=user=me", '--entries={"job": "7"}']).entries
    {'x-goog-custom-audit-user': 'me', 'x-goog-custom-audit-job': '7'}
    """

    PREFIX = "x-goog-custom-audit-"
    KEY_CHARACTERS = 64
    VALUE_CHARACTERS = 1200
    ENTRIES = 4
    """Counting the entry ``job``, which the service adds if it is missing."""

    def merged(self, so_far: Any, value: Any, flag: str) -> dict[str, str]:
        entries = dict(so_far or {})
        for key, text in self._pairs(value, is_json=flag.endswith("entries")):
            self._check_length("key", key, self.KEY_CHARACTERS)
            self._check_length("value", text, self.VALUE_CHARACTERS)
            entries[key if key.startswith(self.PREFIX) else self.PREFIX + key] = text
        if len({*entries, f"{self.PREFIX}job"}) > self.ENTRIES:
            raise argparse.ArgumentError(
                None,
                "The maximum allowed number of GCS custom audit entries "
                f"(including the default {self.PREFIX}job) is {self.ENTRIES}",
            )
        return entries

    def _pairs(self, text: str, *, is_json: bool) -> list[tuple[str, str]]:
        if not is_json:
            key, _, value = text.partition("=")
            return [(key, value)]
        try:
            return [(key, str(value)) for key, value in json.loads(text).items()]
        except (ValueError, AttributeError):
            raise argparse.ArgumentError(self, "it is not a JSON object") from None

    def _check_length(self, kind: str, text: str, characters: int) -> None:
        if len(text) > characters:
            raise argparse.ArgumentError(
                None,
                f"The {kind} {text!r} in GCS custom audit entries exceeds the {characters}-character limit",
            )


def _split(text: str) -> Iterator[str]:
    start = 0
    for position, character in enumerate(text):
        if character == "," and text.count("=", start, position) <= 1:
            yield from filter(None, [text[start:position].strip()])
            start = position + 1
    yield from filter(None, [text[start:].strip()])


def nearest_option(name: str, known: Iterable[str]) -> str | None:
    """The known option that is most like a name, or the only one that begins with its words; None if none is similar.

    >>> nearest_option("checkpoint", ["checkpoint_location", "mode"]), nearest_option("mod", ["model_path", "mode"])
    ('checkpoint_location', 'mode')
    """
    names = list(known)
    longer = [each for each in names if each.startswith(f"{name}_")]
    return nearest(name, names, _MUCH_ALIKE) or (longer[0] if len(longer) == 1 else None)


_LOGGER = logging.getLogger(__name__)
_STORES = ("_flags", "_all_options", "_visible_options")
_ViewT = TypeVar("_ViewT", bound="PipelineOptions")
_block_defaults: contextvars.ContextVar[tuple[Mapping[str, Any], ...]] = contextvars.ContextVar(
    "penstock_block_defaults", default=()
)


class PipelineOptions(HasDisplayData):
    """Options of a pipeline, from flags and keyword arguments (Beam's ``PipelineOptions``).

    A subclass names its options in ``_add_argparse_args(cls, parser)``. One object can be seen as any
    subclass with `view_as`; all its views share the values. Flags that no class knows are ignored.

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

    _flags: list[str]
    _all_options: dict[str, Any]
    _visible_options: frozenset[str]

    def __init__(self, flags: Iterable[str] | None = None, **kwargs: Any) -> None:
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

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        """Adds this class's options to a parser; a subclass overrides it."""

    @classmethod
    def from_dictionary(cls: type[_ViewT], options: Mapping[str, Any]) -> _ViewT:
        """Options from values by name (Beam's ``from_dictionary``).

        Args:
            options: True gives the flag alone; False the flag that switches the option off, if there is one;
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
        """Every option's value by name, of all classes of options that are defined (Beam's method).

        Args:
            drop_default: Leaves out values that equal their default.
            add_extra_args_fn: Adds further arguments to the parser.
            retain_unknown_options: Keeps flags that no class knows: alone they are True, else strings.
            display_warnings: Logs each unknown flag, with the closest known one.
            current_only: Only the options of this class.
        """
        classes = (type(self),) if current_only else tuple(all_classes())

        def new_parser() -> OptionsParser:
            parser = parser_of(classes)
            if add_extra_args_fn:
                add_extra_args_fn(parser)
            return parser

        parser = new_parser() if add_extra_args_fn else shared_parser(classes)
        known, unknown = parser.values_of(self._flags)
        if display_warnings:
            _warn_of_unknown(unknown, parser)
        if retain_unknown_options and unknown:
            parser = new_parser()
            _add_unknown(unknown, parser)
            known, unknown = parser.values_of(self._flags)
        elif unknown and not current_only:
            _LOGGER.warning("Left out: arguments that no options class knows: %s", unknown)
        result = {name: self._all_options.get(name, value) for name, value in known.items()}
        extra = {name: value for name, value in self._all_options.items() if name not in result}
        if extra and not retain_unknown_options and not current_only:
            _LOGGER.warning("Left out: values of options that no options class knows: %s", sorted(extra))
        if drop_default:
            defaults, _ = parser.values_of([])
            result = {
                name: value for name, value in result.items() if not _is_default(defaults.get(name), value)
            }
        return {**result, **extra} if retain_unknown_options else result

    def display_data(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return self.get_all_options(drop_default=True, retain_unknown_options=True)

    def view_as(self, cls: type[_ViewT]) -> _ViewT:
        """The same options seen as another class; a value set in one view is visible in all (Beam's ``view_as``)."""
        if not (isinstance(cls, type) and issubclass(cls, PipelineOptions)):
            what = f"view_as takes a class of options, not {cls!r}"
            raise refusal(TypeError, what, hint="pass the class itself")
        view = cls(self._flags)
        for name in view._visible_options:
            self._all_options.setdefault(name, view._all_options[name])
        view._all_options = self._all_options
        return view

    def validate(self, validator: Any = None) -> list[str]:
        """The errors in these options, as texts; a subclass overrides it."""
        return []

    def is_compat_version_prior_to(self, breaking_change_version: str) -> bool:
        """Whether ``--update_compatibility_version`` is set and earlier than a version such as ``2.72.0``."""
        wanted = self.view_as(StreamingOptions).update_compatibility_version
        return wanted is not None and _version(wanted) < _version(breaking_change_version)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__, *self._visible_options})

    def __getattr__(self, name: str) -> Any:
        # Python asks for private names before the stores exist, while it copies or unpickles an object.
        if not name.startswith("_") and name in self._visible_options:
            return self._all_options[name]
        raise NoSuchOption(type(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
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
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapper

    @classmethod
    def augment_options(cls, options: PipelineOptions) -> PipelineOptions:
        """Sets the defaults of the surrounding blocks in `options` and returns it."""
        for block in _block_defaults.get():
            options._all_options.update(block)
        return options


def _parse(options_class: type[PipelineOptions], flags: list[str]) -> dict[str, Any]:
    # The flags of other people's classes may differ from one call to the next, e.g. with the environment.
    is_ours = options_class.__module__.startswith("penstock.")
    make = _shared_parser_of_bases if is_ours else _parser_of_bases
    return make(options_class.__mro__).values_of(flags)[0]


def _parser_of_bases(bases: tuple[type, ...]) -> OptionsParser:
    """A new parser of the options of a class and its bases; these come first, so that a class can redefine a flag."""
    parser = OptionsParser()
    for base in reversed(bases):
        if issubclass(base, PipelineOptions) and "_add_argparse_args" in base.__dict__:
            base._add_argparse_args(parser)
    return parser


_shared_parser_of_bases = functools.cache(_parser_of_bases)


def all_classes() -> Iterator[type[PipelineOptions]]:
    """The classes of options that are defined now."""
    # A class that a notebook defines again counts once, in its latest form.
    latest: dict[str, type[PipelineOptions]] = {}
    waiting = list(PipelineOptions.__subclasses__())
    while waiting:
        options_class = waiting.pop(0)
        latest[f"{options_class.__module__}.{options_class.__qualname__}"] = options_class
        # Next, so that the program's own classes come last and can define flags of all others anew.
        waiting[:0] = options_class.__subclasses__()
    yield from latest.values()


def _flags_of(name: str, value: Any) -> Iterator[str]:
    if value is True:
        yield f"--{name}"
    elif value is False:
        yield from _off_switch(name)
    elif value is None:
        _LOGGER.warning("Left out: the option %s, whose value is None", name)
    elif isinstance(value, dict):
        yield f"--{name}={json.dumps(value)}"
    elif isinstance(value, list):
        yield from (f"--{name}={item}" for item in value)
    else:
        yield f"--{name}={value}"


def parser_of(classes: Iterable[type[PipelineOptions]]) -> OptionsParser:
    """A new parser of the options of several classes; none is required, since no program uses all of them."""
    parser = OptionsParser()
    for options_class in classes:
        options_class._add_argparse_args(parser)
    for action in parser._actions:
        action.required = False
    return parser


def shared_parser(classes: Iterable[type[PipelineOptions]]) -> OptionsParser:
    """The same parser for the same classes, to which nobody may add anything: making one takes milliseconds."""
    # A class that nobody else refers to any more is not kept.
    return _shared_parser(tuple(map(weakref.ref, classes)))


@functools.lru_cache(maxsize=4)
def _shared_parser(classes: tuple[weakref.ref[type[PipelineOptions]], ...]) -> OptionsParser:
    return parser_of(found for each in classes if (found := each()) is not None)


def _off_switch(name: str) -> Iterator[str]:
    for action in shared_parser(all_classes())._actions:
        if action.dest == name and action.const is False:
            yield action.option_strings[0]


def _is_default(default: Any, value: Any) -> bool:
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
            _LOGGER.warning("Left out: %s; a flag with a value starts with two dashes", flag)
        seen.add(name)


def _warn_of_unknown(unknown: list[str], parser: OptionsParser) -> None:
    for argument in unknown:
        close = nearest_option(argument.partition("=")[0], parser.known_flags())
        _LOGGER.warning("Unknown argument: %s%s", argument, f"; did you mean {close}?" if close else "")


class NoSuchOption(AttributeError):
    """An option that a view does not have; its text, which names a view that has it, is made when it is read."""

    def __init__(self, options_class: type[PipelineOptions], option: str) -> None:
        super().__init__(options_class, option)
        self._where = None if option.startswith("_") else here()

    def __str__(self) -> str:
        options_class, option = self.args[:2]
        what = f"{options_class.__name__!r} object has no attribute {option!r}"
        if option.startswith("_"):
            return what
        homes = {
            action.dest: other.__name__ for other in all_classes() for action in parser_of([other])._actions
        }
        own = [action.dest for action in parser_of([options_class])._actions]
        close = nearest_option(option, own)
        hint = "a program run with --help shows all options"
        if option in homes:
            hint = f"write options.view_as({homes[option]}).{option}"
        elif close:
            hint = f"did you mean {close}?"
        return three_parts(what, where=self._where, hint=hint)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in (text.split(".") + ["0", "0"])[:3])


class StreamingOptions(PipelineOptions):
    """Options of pipelines that run for long (Beam's ``StreamingOptions``).

    Attributes:
        update_compatibility_version: A version of Beam whose older behaviour the pipeline needs; None for today's.

    >>> PipelineOptions(["--update_compatibility_version=2.60.0"]).is_compat_version_prior_to("2.72.0")
    True
    """

    @classmethod
    def _add_argparse_args(cls, parser: OptionsParser) -> None:
        parser.add_argument(
            "--update_compatibility_version",
            default=None,
            nargs="?",
            help="An earlier version, such as 2.60.0.",
        )


_LAST_WORDS = (
    "Beam's other options, such as those of clouds, can be given too, and have no effect on Spark; a run names those "
    "that are given."
)


def text_of_help() -> str:
    """The options by class: the program's own come first, the runner's follow."""
    parser = OptionsParser()
    sections: list[tuple[type[PipelineOptions], list[argparse.Action]]] = []
    for options_class in all_classes():
        before = len(parser._actions)
        options_class._add_argparse_args(parser)
        sections.append((options_class, parser._actions[before:]))
    effective = set(parser._actions).difference(parser.without_effect())
    formatter = argparse.HelpFormatter(os.path.basename(sys.argv[0]) or "program")
    formatter.add_usage("%(prog)s [options]", [], [])
    for options_class, actions in sorted(sections, key=lambda section: _rank(section[0])):
        shown = [action for action in actions if action in effective]
        if shown:
            formatter.start_section(f"{options_class.__name__}: {_meaning(options_class)}")
            formatter.add_arguments(shown)
            formatter.end_section()
    formatter.add_text(_LAST_WORDS)
    return formatter.format_help().rstrip()


def _rank(options_class: type[PipelineOptions]) -> int:
    if not options_class.__module__.startswith("penstock."):
        return 0
    return 1 if options_class.__module__ == "penstock.options.spark" else 2


def _meaning(options_class: type[PipelineOptions]) -> str:
    """The first sentence of the docstring, without the origin of the name."""
    text = inspect.cleandoc(options_class.__doc__ or "options of this program").partition("\n")[0]
    return text.partition(" (Beam's")[0].rstrip(".")
