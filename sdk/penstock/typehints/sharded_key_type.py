"""The hint for keys that are spread over shards (Beam's ``typehints.sharded_key_type``)."""

from __future__ import annotations

from penstock.typehints.constraints import (
    GetitemConstructor,
    Hint,
    ParameterizedConstraint,
    describe_mismatch,
    describe_non_instance,
    is_consistent_with,
    show_type,
    validate_composite_type_param,
)
from penstock.utils.sharded_key import ShardedKey


class ShardedKeyTypeConstraint(ParameterizedConstraint, metaclass=GetitemConstructor):
    """The result of ``ShardedKeyType[K]`` (Beam's name)."""

    label = "ShardedKey"

    def __init__(self, key_type: Hint) -> None:
        validate_composite_type_param(key_type, error_msg_prefix="Parameter to ShardedKeyType hint")
        super().__init__(key_type)

    @property
    def key_type(self) -> Hint:
        """The type of the key without its shard."""
        return self.parameters[0]

    def _consistent_with_check_(self, sub: Hint) -> bool:
        return isinstance(sub, ShardedKeyTypeConstraint) and is_consistent_with(sub.key_type, self.key_type)

    def _mismatch(self, instance: object) -> str | None:
        if not isinstance(instance, ShardedKey):
            return describe_non_instance("ShardedKey type-constraint violated", "ShardedKey", instance)
        if describe_mismatch(self.key_type, instance.key) is None:
            return None
        found = f"instead received an instance of type '{type(instance.key).__name__}'."
        return (
            f"{self} type-constraint violated. The type of key in 'ShardedKey' is incorrect. "
            f"Expected an instance of type '{show_type(self.key_type)}', {found}"
        )


ShardedKeyType = ShardedKeyTypeConstraint
