"""State dicts of modules: saving a tree of modules by dotted names, and loading it again.

Loading checks everything before it writes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import vkml
from vkml import Tensor, no_grad
from vkml.foreign import tensor_from

if TYPE_CHECKING:
    from vkml.nn.module import Module

EXTRA = "_extra_state"  # the name of what get_extra_state returns, as in PyTorch


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(strict=False)` could not match."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def has_extra_state(module: Module) -> bool:
    """Whether a module's class says what else belongs to its state."""
    from vkml.nn.module import Module

    return type(module).get_extra_state is not Module.get_extra_state


def cast_on_cpu(tensor: Tensor, dtype: vkml.dtype) -> Tensor:
    """Another dtype on the same device, by way of the CPU: the device may lack one of the two."""
    if tensor.dtype == dtype:
        return tensor
    return tensor.cpu().to(dtype).to(tensor.device)


def save(module: Module, state: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Adds the state of a module and of all below it to a dictionary."""
    for hook in tuple(module._state_dict_pre_hooks.values()):
        hook(module, prefix, keep_vars)
    for name, tensor in module._own_state():
        dtype = module._state_dtypes.get(name, tensor.dtype)
        state[prefix + name] = tensor if keep_vars else cast_on_cpu(tensor.snapshot(), dtype)
    if has_extra_state(module):
        state[prefix + EXTRA] = module.get_extra_state()
    for name, child in module._modules.items():
        if child is not None:
            save(child, state, f"{prefix}{name}.", keep_vars)
    for hook in tuple(module._state_dict_hooks.values()):
        hook(module, state, prefix, {})


def load(
    module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool = False
) -> IncompatibleKeys:
    """Copies values into a module and all below it; see `Module.load_state_dict`."""
    state = dict(state_dict)  # hooks may change it
    missing: list[str] = []
    unexpected: list[str] = []
    faults: list[str] = []
    owners = [
        (f"{name}." if name else "", owner)
        for name, owner in module.named_modules(remove_duplicate=False)
    ]
    for prefix, owner in owners:
        for hook in tuple(owner._load_state_dict_pre_hooks.values()):
            hook(owner, state, prefix, {}, strict, missing, unexpected, faults)
    own = {prefix + name: tensor for prefix, owner in owners for name, tensor in owner._own_state()}
    extra = {prefix + EXTRA: owner for prefix, owner in owners if has_extra_state(owner)}
    optional = {prefix + name for prefix, owner in owners for name in owner._optional_state}
    missing += [name for name in (*own, *extra) if name not in state and name not in optional]
    unexpected += [name for name in state if name not in own and name not in extra]
    if strict and missing:
        faults.append(f"missing keys: {', '.join(missing)}")
    if strict and unexpected:
        faults.append(f"unexpected keys: {', '.join(unexpected)}")
    matched = [(name, own[name], value) for name, value in state.items() if name in own]
    faults += [
        f"size mismatch for {name}: {tuple(value.shape)} in the state, "
        f"{tuple(destination.shape)} in the model"
        for name, destination, value in matched
        if tuple(value.shape) != tuple(destination.shape)
    ]
    if faults:
        raise vkml.ArgumentError(
            f"[load_state_dict] {type(module).__name__}: "
            + "; ".join(faults)
            + ". Nothing was loaded. Build the model that the state was saved from, "
            "or pass strict=False to skip names."
        )
    with no_grad():
        for _, destination, value in matched:
            given = tensor_from(value).detach()
            if assign:
                destination.data = given.clone()
                continue
            given = cast_on_cpu(given, destination.dtype)
            destination.assign_(given.to(destination.device))
    for name, owner in extra.items():
        if name in state:
            owner.set_extra_state(state[name])
    result = IncompatibleKeys(missing, unexpected)
    for _, owner in reversed(owners):
        for hook in tuple(owner._load_state_dict_post_hooks.values()):
            hook(owner, result)
    return result
