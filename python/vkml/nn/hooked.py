"""The hooks that a module has, and how they are registered."""

from __future__ import annotations

from collections import OrderedDict

from vkml.nn.hooks import ForwardHook, Hook, RemovableHandle, register

TABLES_OF_HOOKS = (
    *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
    *("_state_dict_hooks", "_state_dict_pre_hooks"),
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)
"""Their tables, which every module has."""


class Hooked:
    """What has hooks: a module."""

    _forward_hooks: OrderedDict[int, ForwardHook]
    _forward_pre_hooks: OrderedDict[int, ForwardHook]
    _backward_hooks: OrderedDict[int, Hook]
    _backward_pre_hooks: OrderedDict[int, Hook]
    _state_dict_hooks: OrderedDict[int, Hook]
    _state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_post_hooks: OrderedDict[int, Hook]

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, inputs, output)` after `forward`; what it returns replaces output.

        Args:
            hook: The function.
            prepend: Whether it comes before the hooks that are there.
            with_kwargs: Whether it is called as `hook(module, inputs, keywords, output)`.
            always_call: Whether it is called, with None as the output, when `forward` raises.
        """
        wrapped = ForwardHook(hook, with_kwargs, always_call)
        return register(self._forward_hooks, wrapped, prepend)

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, inputs)` before `forward`; what it returns replaces the inputs.

        Args:
            hook: The function.
            prepend: Whether it comes before the hooks that are there.
            with_kwargs: Whether it is called as `hook(module, inputs, keywords)`, and returns both
                or None.
        """
        return register(self._forward_pre_hooks, ForwardHook(hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when gradients reach the inputs.

        Both are tuples, with None for what has no gradient; what the hook returns replaces
        `grad_input`. Gradients of tensors among the positional inputs count.
        """
        return register(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_output)` when gradients reach the results.

        What it returns replaces them.
        """
        return register(self._backward_pre_hooks, hook, prepend)

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before the module's state is saved."""
        return register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after it was saved.

        The hook may change the dictionary in place; the metadata are empty.
        """
        return register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Calls a hook before anything of a state is compared or written.

        Its arguments are PyTorch's: module, state_dict (a copy, to change in place), prefix,
        local_metadata (empty), strict, missing_keys, unexpected_keys, error_msgs (lists to add to).
        """
        return register(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after a state that fits was loaded.

        The hook may change both lists of names, which the caller gets.
        """
        return register(self._load_state_dict_post_hooks, hook)
