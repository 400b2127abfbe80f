"""Gradient checkpointing: memory for time.

The intermediate results of a checkpointed function are not kept for the backward pass, but computed
again when it comes to them (Chen et al., 2016). The function is recorded twice when it is called:
once without gradients, for its value, and once with gradients. The second record is not computed
before a gradient arrives, and then gives up its memory with the backward pass. Random draws of the
second record are those of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import vkml
from vkml import Tensor, _vkml, enable_grad, no_grad
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.autograd.function import Context, Function
from vkml.tracing import noted_draws, recording_only, repeated_draws
from vkml.trees import flatten, unflatten


class _Recomputed(Function):
    """Results of the record without gradients, with the gradients of the other record."""

    @staticmethod
    def forward(
        ctx: Context, values: list[Tensor], recorded: list[Tensor], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.recorded, ctx.inputs = recorded, inputs  # type: ignore[attr-defined]
        return tuple(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        found = _vkml._cotangents(ctx.recorded, gradients, ctx.inputs, vkml.is_grad_enabled())
        return (None, None, *found)


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Calls a function whose intermediate results are recomputed for the backward pass, not kept.

    The function is called twice, at once: what it changes besides, such as running statistics, it
    changes twice (PyTorch calls it again in the backward pass). Gradients arrive at its arguments
    and at whatever else it uses, parameters of modules among it, and may be differentiated again.

    Args:
        function: Takes and returns tensors, or tuples, lists and dictionaries of them.
        *args: Its arguments.
        use_reentrant: Accepted as PyTorch's; there is one way here, which has the limitations of
            neither.
        **kwargs: Its keyword arguments.

    Returns:
        What the function returns.
    """
    if not vkml.is_grad_enabled():
        return function(*args, **kwargs)
    given = [tensor for tensor in flatten((args, kwargs)) if tensor.requires_grad]
    with recording_only():
        with enable_grad(), noted_draws() as draws:
            recorded = flatten(function(*args, **kwargs))
        differentiable = [i for i, tensor in enumerate(recorded) if tensor.requires_grad]
        with no_grad(), repeated_draws(draws):
            result = function(*args, **kwargs)
    values = flatten(result)
    outputs = [recorded[i] for i in differentiable]
    inputs = [*given, *_vkml._other_leaves(outputs, given)]
    if differentiable:
        parts = _Recomputed.apply([values[i] for i in differentiable], outputs, *inputs)
        for position, part in zip(differentiable, parts, strict=True):
            values[position] = part
    return unflatten(result, values)


def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
) -> Any:
    """Calls functions one after the other, in checkpointed segments; the last one is kept.

    Args:
        functions: A Sequential module, or any list of functions of one argument.
        segments: How many. About the square root of their number takes the least memory.
        input: The first one's argument.
        use_reentrant: As in `checkpoint`.
    """
    steps = list(functions)
    if not 1 <= segments <= max(len(steps), 1):
        raise vkml.ArgumentError(
            f"[checkpoint_sequential] segments is {segments} for {len(steps)} functions. Pass a "
            "number from 1 to theirs."
        )
    size = len(steps) // segments

    def run(start: int, stop: int) -> Callable[[Any], Any]:
        def segment(value: Any) -> Any:
            for step in steps[start:stop]:
                value = step(value)
            return value

        return segment

    for number in range(segments - 1):
        input = checkpoint(
            run(number * size, (number + 1) * size), input, use_reentrant=use_reentrant
        )
    return run((segments - 1) * size, len(steps))(input)


_check_arguments(globals())
