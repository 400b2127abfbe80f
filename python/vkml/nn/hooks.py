"""Hooks of modules: their handles, and the calls that a backward pass makes.

A module with hooks on its gradients stands between two identities: one that its results pass on
their way out, one that its inputs pass on their way in. Their gradients arrive in the opposite
order, and are what hooks see and may replace.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import vkml
from vkml import Tensor
from vkml.autograd.function import Function
from vkml.trees import flatten, unflatten

if TYPE_CHECKING:
    from typing_extensions import Self

    from vkml.nn.module import Module

Hook = Callable[..., Any]
Kind = TypeVar("Kind")
Gradients = tuple[Tensor | None, ...]


class RemovableHandle:
    """Takes a hook out of its table again: by `remove()` or at the end of a `with` block."""

    _next_key = count()

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self.id = next(RemovableHandle._next_key)

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register(hooks: OrderedDict[int, Kind], hook: Kind, prepend: bool = False) -> RemovableHandle:
    """Files a hook, behind those that are there or before them."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class ForwardHook(NamedTuple):
    """A hook round `forward`, and how it is called."""

    function: Hook
    with_kwargs: bool
    always_call: bool = False

    def __call__(
        self, module: Module, inputs: tuple[Any, ...], keywords: dict[str, Any], *result: Any
    ) -> Any:
        """Calls the function, with the keywords if it wants them."""
        if self.with_kwargs:
            return self.function(module, inputs, keywords, *result)
        return self.function(module, inputs, *result)


def call_with_forward_hooks(
    module: Module, inputs: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """A module's result between its hooks on inputs and on results, which may replace them."""
    for hook in tuple(module._forward_pre_hooks.values()):
        replaced = hook(module, inputs, keywords)
        if replaced is None:
            continue
        if hook.with_kwargs:
            if not isinstance(replaced, tuple) or len(replaced) != 2:
                raise vkml.DTypeError(
                    f"[{type(module).__name__}] a hook before forward gave {replaced!r}. With "
                    "with_kwargs=True it returns (inputs, keywords), or None."
                )
            inputs, keywords = replaced
        else:
            inputs = replaced if isinstance(replaced, tuple) else (replaced,)
    hooks = tuple(module._forward_hooks.values())
    called = 0
    try:
        result = module._call_forward(inputs, keywords)
        for hook in hooks:
            called += 1
            replaced = hook(module, inputs, keywords, result)
            if replaced is not None:
                result = replaced
    except Exception:
        for hook in hooks[called:]:
            if hook.always_call:
                hook(module, inputs, keywords, None)
        raise
    return result


class _Identity(Function):
    """Tensors as they are, with a function that gets their gradients and may replace them."""

    @staticmethod
    def forward(ctx: Any, arrived: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        """The tensors."""
        ctx.arrived = arrived
        return tensors if len(tensors) > 1 else tensors[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """What `arrived` makes of their gradients."""
        return (None, *ctx.arrived(gradients))


def _marked(
    tensors: Sequence[Any], arrived: Callable[[Gradients], Gradients]
) -> tuple[list[Any], bool]:
    """The tensors, those that need gradients behind an identity; whether there are any."""
    places = [
        place
        for place, each in enumerate(tensors)
        if isinstance(each, Tensor) and each.requires_grad
    ]
    result = list(tensors)
    if not places:
        return result, False

    def of_all(gradients: Gradients) -> Gradients:
        every: list[Tensor | None] = [None] * len(tensors)
        for place, gradient in zip(places, gradients, strict=True):
            every[place] = gradient
        replaced = arrived(tuple(every))
        return tuple(replaced[place] for place in places)

    passed = _Identity.apply(of_all, *(tensors[place] for place in places))
    for place, each in zip(places, passed if isinstance(passed, tuple) else [passed], strict=True):
        result[place] = each
    return result, True


def _replaced(found: Any, gradients: Gradients, module: Module, what: str) -> Gradients:
    """What a hook has returned instead of gradients; they themselves if it returned None."""
    if found is None:
        return gradients
    given = tuple(found) if isinstance(found, tuple | list) else (found,)
    if len(given) != len(gradients):
        raise vkml.AutogradError(
            f"[{type(module).__name__}] a hook gave {len(given)} gradients of {len(gradients)} "
            f"{what}. Return one for each, or None to change nothing."
        )
    return given


def call_between_hooks(module: Module, inputs: tuple[Any, ...], call: Hook) -> Any:
    """`call(*inputs)`, with the hooks of a module on the gradients of its inputs and results."""
    of_results: list[Gradients] = []

    def at_results(gradients: Gradients) -> Gradients:
        for hook in tuple(module._backward_pre_hooks.values()):
            gradients = _replaced(hook(module, gradients), gradients, module, "results")
        if has_inputs:
            of_results.append(gradients)
        else:
            for hook in tuple(module._backward_hooks.values()):
                hook(module, (None,) * len(inputs), gradients)
        return gradients

    def at_inputs(gradients: Gradients) -> Gradients:
        # Without any, this is a derivative of the pass itself, which comes in by another way.
        seen = of_results.pop() if of_results else None
        for hook in tuple(module._backward_hooks.values() if seen is not None else ()):
            found = hook(module, gradients, seen)
            gradients = _replaced(found, gradients, module, "inputs")
        return gradients

    marked, has_inputs = _marked(inputs, at_inputs)
    result = call(*marked)
    tensors, _ = _marked(flatten(result), at_results)
    return unflatten(result, tensors)
