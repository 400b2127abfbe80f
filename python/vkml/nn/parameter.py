"""Parameter: a tensor that a module owns and an optimiser updates."""

from __future__ import annotations

from vkml import Tensor, no_grad


class Parameter(Tensor):
    """A leaf tensor that `Module` registers when it is set as an attribute.

    Args:
        data: The initial value. The parameter is a tensor of its own: later assignments to
            either leave the other as it is.
        requires_grad: Whether `backward()` computes a gradient for it.
    """

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        with no_grad():
            super().__init__(data.detach())
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    __hash__ = Tensor.__hash__
