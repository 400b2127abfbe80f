"""A call to check: the unit of the specification of structural operators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from checking import inputs

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """A call to check.

    Attributes:
        name: The public function that it covers.
        function: Takes tensors, returns a tensor.
        reference: Takes arrays, returns an array.
        arrays: What to call both with.
        units: The largest error, in units of the result's largest magnitude; 0 is exact.
        gradient: Whether the result depends smoothly on the floating arrays.
        label: Tells the cases of one function apart.
    """

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    arrays: Sequence[Array]
    units: float = 16
    gradient: bool = True
    label: str = ""

    def __str__(self) -> str:
        return f"{self.name}-{self.label}" if self.label else self.name


def small(*shape: int) -> Array:
    """Numbers in [-2, 2]."""
    return inputs(shape, -2, 2)
