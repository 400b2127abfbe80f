"""`grad` and `backward` of several outputs, by PyTorch's arguments, from the native pass of one.

The gradients of several outputs are those of one number: the sum of each output's elements times
the gradient that arrives there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vkml
from vkml import _vkml
from vkml._vkml import AutogradError, Tensor
from vkml.argument_errors import check_arguments as _check_arguments

__all__ = ["grad"]

Gradients = Tensor | Sequence[Tensor | None] | None


def _listed(value: Any) -> list[Any]:
    return [value] if value is None or isinstance(value, Tensor) else list(value)


def _one_output(
    operator: str, outputs: Tensor | Sequence[Tensor], gradients: Gradients
) -> tuple[Tensor, Tensor | None]:
    """One output and the gradient that arrives there, in the place of several."""
    listed = _listed(outputs)
    arriving = [None] * len(listed) if gradients is None else _listed(gradients)
    if not listed or len(arriving) != len(listed):
        raise vkml.ArgumentError(
            f"[{operator}] {len(arriving)} gradients for {len(listed)} outputs. Pass one for each."
        )
    if len(listed) == 1:
        return listed[0], arriving[0]
    parts = []
    for output, gradient in zip(listed, arriving, strict=True):
        if gradient is None and output.numel() != 1:
            raise AutogradError(
                f"[{operator}] an output has shape {tuple(output.shape)}. Pass its gradient, or "
                "reduce it to one element."
            )
        if gradient is not None and tuple(gradient.shape) != tuple(output.shape):
            raise vkml.ShapeError(
                f"[{operator}] a gradient has shape {tuple(gradient.shape)}, its output "
                f"{tuple(output.shape)}."
            )
        parts.append(output.sum() if gradient is None else (output * gradient).sum())
    total = parts[0]
    for part in parts[1:]:
        total = total + part.to(total.device)
    return total, None


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients of outputs with respect to tensors, without touching their `grad`.

    Args:
        outputs: One tensor or several, whose gradients add up.
        inputs: What the gradients are of.
        grad_outputs: The gradient that arrives at each output; None for 1, of one element.
        retain_graph: Whether another pass over the same graph may follow; as `create_graph` if
            None.
        create_graph: Whether the gradients can be differentiated again.
        only_inputs: True: gradients of other leaves are what `backward` adds up.
        allow_unused: Whether an input that the outputs do not depend on has the gradient None
            instead of raising; as `materialize_grads` if None.
        is_grads_batched: Whether `grad_outputs` have a first axis more, of gradients to pull back
            one by one; the results have that axis too.
        materialize_grads: Whether such an input has zeros.

    Returns:
        One gradient for each input.

    Raises:
        AutogradError: For an input that the outputs do not depend on, unless told otherwise.
    """
    if not only_inputs:
        raise vkml.ArgumentError("[grad] only_inputs is False. Use backward, or pass True.")
    if materialize_grads and allow_unused is False:
        raise vkml.ArgumentError(
            "[grad] materialize_grads gives zeros where nothing arrives. Leave out allow_unused."
        )
    wanted = _listed(inputs)
    if is_grads_batched:
        found = _batched(outputs, wanted, grad_outputs, retain_graph, create_graph)
    else:
        output, arriving = _one_output("grad", outputs, grad_outputs)
        keep = create_graph if retain_graph is None else retain_graph
        found = list(_vkml._grad(output, wanted, arriving, keep, create_graph))
    if materialize_grads:
        found = [
            vkml.zeros_like(tensor) if gradient is None else gradient
            for tensor, gradient in zip(wanted, found, strict=True)
        ]
    elif not allow_unused and any(gradient is None for gradient in found):
        missing = next(i for i, gradient in enumerate(found) if gradient is None)
        raise AutogradError(
            f"[grad] the outputs do not depend on input {missing}, of shape "
            f"{tuple(wanted[missing].shape)}. Pass allow_unused=True for None in its place, or "
            "materialize_grads=True for zeros."
        )
    return tuple(found)


def _batched(
    outputs: Tensor | Sequence[Tensor],
    wanted: list[Tensor],
    gradients: Gradients,
    retain_graph: bool | None,
    create_graph: bool,
) -> list[Any]:
    batches = _listed(gradients)
    if not batches or any(batch is None for batch in batches):
        raise vkml.ArgumentError("[grad] is_grads_batched needs grad_outputs with a first axis.")
    count = batches[0].shape[0]
    rows = []
    for i in range(count):
        output, arriving = _one_output("grad", outputs, [batch[i] for batch in batches])
        keep = i + 1 < count or bool(create_graph if retain_graph is None else retain_graph)
        rows.append(_vkml._grad(output, wanted, arriving, keep, create_graph))
    return [
        None if any(each is None for each in column) else vkml.stack(list(column))
        for column in zip(*rows, strict=True)
    ]


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradient of outputs with respect to every leaf below to that leaf's `grad`.

    Args:
        tensors: One output or several, whose gradients add up.
        grad_tensors: The gradient that arrives at each; None for 1, of one element.
        retain_graph: Whether another pass over the same graph may follow; as `create_graph` if
            None.
        create_graph: Whether the gradients can be differentiated again.
        inputs: The leaves whose `grad` is added to; all if None.
    """
    output, arriving = _one_output("backward", tensors, grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        output._backward(arriving, keep, create_graph)
        return
    leaves = _listed(inputs)
    if not leaves:
        raise vkml.ArgumentError("[backward] inputs is empty. Name the leaves, or leave it out.")
    for leaf in leaves:
        if not leaf.requires_grad or not leaf.is_leaf:
            raise AutogradError(
                f"[backward] an input of shape {tuple(leaf.shape)} is no leaf that requires a "
                "gradient. Use vkml.grad for other tensors."
            )
    found = _vkml._grad(output, leaves, arriving, keep, create_graph)
    for leaf, gradient in zip(leaves, found, strict=True):
        if gradient is not None:
            leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient


_check_arguments(globals(), ("grad", "backward"))
