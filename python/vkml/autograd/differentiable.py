"""Operators by name: the interface, how one is called, and the record's orders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from vkml import _vkml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vkml._vkml import ComputationGraph, OpRegistry, Tensor


class Differentiable(ABC):
    """An operator in both directions.

    Written with vkML's functions it is fused, runs on every device and can be differentiated
    again. Register it under a name::

        class Swish(Differentiable):
            def forward(self, inputs):
                return inputs[0] * inputs[0].sigmoid()

            def backward(self, output_gradient, inputs, output):
                s = inputs[0].sigmoid()
                return [output_gradient * (s + output * (1 - s))]

        vkml.autograd.registry.register_op("swish", Swish())
        y = vkml.autograd.apply("swish", x)
    """

    @abstractmethod
    def forward(self, inputs: list[Tensor]) -> Tensor:
        """The operator's value. Called with gradients off: `backward` says what they are."""

    @abstractmethod
    def backward(
        self, output_gradient: Tensor, inputs: list[Tensor], output: Tensor
    ) -> Sequence[Tensor | None] | Tensor | None:
        """The gradient of each input.

        Args:
            output_gradient: The gradient of the output; its shape.
            inputs: What `forward` was called with.
            output: What it returned.

        Returns:
            One gradient for each input, with that input's shape, or None for no gradient. With one
            input, the gradient alone will do.
        """


Differentiable.register(_vkml.BuiltinOperator)


def apply(op_name: str, *inputs: Tensor | float, registry: OpRegistry | None = None) -> Tensor:
    """Calls a registered operator, built in or custom.

    Args:
        op_name: Its name.
        inputs: Tensors and numbers.
        registry: Where to look; by default vkML's own.

    Raises:
        UnregisteredOpError: No operator has that name. The message names the nearest one.
    """
    return _vkml._apply_operator(op_name, inputs, registry or _vkml._registry)


def grad_fn_index(tensor: Tensor) -> int:
    """The position of the node that made a tensor in the record that holds it, or -1."""
    return tensor.grad_fn_index


def topological_backward_order(graph: ComputationGraph, output: Tensor | None = None) -> list[int]:
    """Positions in `graph.nodes`, users before their sources.

    Args:
        graph: The record.
        output: Only its ancestors are listed, by depth-first search. Without it, all nodes in
            reversed order of recording.
    """
    return _vkml._topological_backward_order(graph, output)
