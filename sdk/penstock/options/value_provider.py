"""Values that may be known only when the pipeline runs (Beam's ``apache_beam.options.value_provider``)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from penstock.error import RuntimeValueProviderError, noun_for, refusal

__all__ = [
    "NestedValueProvider",
    "RuntimeValueProvider",
    "RuntimeValueProviderError",
    "StaticValueProvider",
    "ValueProvider",
    "check_accessible",
]

_ONLY_AT_RUN_TIME = "read it inside a DoFn, or give the option on the command line"


class ValueProvider:
    """A value that may come later (Beam's ``ValueProvider``); the base of the three below."""

    def is_accessible(self) -> bool:
        """True if `get` works now."""
        raise NotImplementedError(f"{type(self).__name__} does not define is_accessible")

    def get(self) -> Any:
        """Returns the value."""
        raise NotImplementedError(f"{type(self).__name__} does not define get")


class StaticValueProvider(ValueProvider):
    """A value that is known from the start, converted by `value_type` (Beam's ``StaticValueProvider``).

    >>> StaticValueProvider(int, "7").get()
    7
    """

    def __init__(self, value_type: Callable[[Any], Any], value: Any) -> None:
        self.value_type = value_type
        self.value = value_type(value)

    def is_accessible(self) -> bool:
        return True

    def get(self) -> Any:
        return self.value

    def __str__(self) -> str:
        return str(self.value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StaticValueProvider):
            return bool(self.value_type == other.value_type and self.value == other.value)
        return bool(self.value == other)

    def __hash__(self) -> int:
        return hash(self.value)


class RuntimeValueProvider(ValueProvider):
    """A value that the runner provides when the pipeline runs (Beam's ``RuntimeValueProvider``).

    Args:
        option_name: The option whose value it is.
        value_type: Called on the option's value to convert it.
        default_value: The result of `get` if the option is not set.

    >>> rate = RuntimeValueProvider("rate", int, 3)
    >>> rate.is_accessible()
    False
    >>> RuntimeValueProvider.set_runtime_options({"rate": "5"})
    >>> rate.get()
    5
    >>> RuntimeValueProvider.set_runtime_options(None)
    """

    runtime_options: ClassVar[Mapping[str, Any] | None] = None
    experiments: ClassVar[set[str]] = set()

    def __init__(self, option_name: str, value_type: Callable[[Any], Any], default_value: object) -> None:
        self.option_name = option_name
        self.value_type = value_type
        self.default_value = default_value

    def is_accessible(self) -> bool:
        """True if the pipeline runs: a runner has set the options of this process, or sent the provider to it."""
        return self._options() is not None

    def _options(self) -> Mapping[str, Any] | None:
        """Returns the known options; a copy that a run has sent to a worker has its own."""
        given: Mapping[str, Any] | None = self.__dict__.get("_sent")
        return given if RuntimeValueProvider.runtime_options is None else RuntimeValueProvider.runtime_options

    def __getstate__(self) -> dict[str, Any]:
        options = self._options()
        sent = None if options is None else {self.option_name: options.get(self.option_name)}
        return {**self.__dict__, "_sent": sent}

    @classmethod
    def get_value(cls, option_name: str, value_type: Callable[[Any], Any], default_value: object) -> Any:
        """Returns an option of the running pipeline, converted; the default if it is unset, empty or unknown."""
        return cls._converted(RuntimeValueProvider.runtime_options, option_name, value_type, default_value)

    @staticmethod
    def _converted(
        options: Mapping[str, Any] | None,
        option_name: str,
        value_type: Callable[[Any], Any],
        default_value: object,
    ) -> object:
        value = (options or {}).get(option_name)
        return value_type(value) if value else default_value

    def get(self) -> Any:
        """Returns the option's value; RuntimeValueProviderError outside of a running pipeline."""
        options = self._options()
        if options is None:
            what = f"{self}.get() is called before the pipeline runs"
            raise refusal(RuntimeValueProviderError, what, hint=_ONLY_AT_RUN_TIME)
        return self._converted(options, self.option_name, self.value_type, self.default_value)

    @classmethod
    @contextlib.contextmanager
    def at_run_time(cls, pipeline_options: Mapping[str, Any]) -> Iterator[None]:
        """Within the block a pipeline starts or runs: providers have values, and keep them when pickled."""
        before = RuntimeValueProvider.runtime_options
        cls.set_runtime_options(pipeline_options)
        try:
            yield
        finally:
            cls.set_runtime_options(before)

    @classmethod
    def set_runtime_options(cls, pipeline_options: Mapping[str, Any] | None) -> None:
        """Sets the options by name, or forgets them for None; a runner calls it in each process."""
        RuntimeValueProvider.runtime_options = pipeline_options
        RuntimeValueProvider.experiments = cls.get_value("experiments", set, set())

    def __str__(self) -> str:
        type_name = getattr(self.value_type, "__name__", str(self.value_type))
        return (
            f"{type(self).__name__}(option: {self.option_name}, type: {type_name}, "
            f"default_value: {self.default_value!r})"
        )


class NestedValueProvider(ValueProvider):
    """A provider of another provider's value, translated on first use (Beam's ``NestedValueProvider``).

    >>> NestedValueProvider(StaticValueProvider(str, "a"), str.upper).get()
    'A'
    """

    def __init__(self, value: ValueProvider, translator: Callable[[Any], Any]) -> None:
        self.value = value
        self.translator = translator

    def is_accessible(self) -> bool:
        return self.value.is_accessible()

    def get(self) -> Any:
        """Returns the translated value; RuntimeValueProviderError if the inner provider is not accessible."""
        if not hasattr(self, "cached_value"):
            self.cached_value = self.translator(self.value.get())
        return self.cached_value

    def __str__(self) -> str:
        translator = getattr(self.translator, "__name__", str(self.translator))
        return f"{type(self).__name__}(value: {self.value}, translator: {translator})"


def check_accessible(value_provider_list: list[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator of methods that need the value providers in some attributes (Beam's ``check_accessible``).

    The decorated method raises `RuntimeValueProviderError` while one is not accessible.
    """
    if not isinstance(value_provider_list, list):
        what = f"check_accessible takes a list of attribute names, not {noun_for(value_provider_list)}"
        raise refusal(TypeError, what, hint="write check_accessible(['name'])")

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def checked(self: object, *args: object, **kwargs: object) -> Any:
            for name in value_provider_list:
                provider = getattr(self, name)
                if not provider.is_accessible():
                    what = f"{provider} is not accessible"
                    raise refusal(RuntimeValueProviderError, what, hint=_ONLY_AT_RUN_TIME)
            return method(self, *args, **kwargs)

        return checked

    return decorate
