"""Parameter: a tensor that a module owns and an optimiser updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vkml import Tensor, no_grad
from vkml.pickling import State, rebuild, state_of


class Parameter(Tensor):
    """A leaf tensor that `Module` registers when it is set as an attribute.

    Args:
        data: The initial value, which the parameter shares where it is contiguous: an assignment
            to either shows in both.
        requires_grad: Whether `backward()` computes a gradient for it.
    """

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        with no_grad():
            super().__init__(data.detach().contiguous())
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[..., Parameter], State]:
        return _rebuild, state_of(self)


def _rebuild(array: Any, dtype: str, device: str, requires_grad: bool) -> Parameter:
    return Parameter(rebuild(array, dtype, device, False), requires_grad)
