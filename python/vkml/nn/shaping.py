"""Layers that change shape: Flatten, Unflatten."""

from __future__ import annotations

from collections.abc import Sequence

from vkml import Tensor
from vkml.nn.module import Module


class Flatten(Module):
    """Joins the axes from `start_dim` to `end_dim` into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Returns a view where strides allow."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits axis `dim` into axes of the extents `unflattened_size`."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Returns a view where strides allow."""
        axis = self.dim % input.ndim
        shape = tuple(input.shape)
        return input.reshape(*shape[:axis], *self.unflattened_size, *shape[axis + 1 :])

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
