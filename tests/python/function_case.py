"""A call of a public Python function, to check against PyTorch's of the same name.

Tables of these are the specification of `vkml.nn.functional`, `vkml.linalg` and `vkml.special`, as
those of `case.Case` are for the native module. PyTorch is needed to run a reference, not to read
the tables.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray
FLOATS = ("float64", "float32", "float16", "bfloat16")

# (function, arrays, options)
Call = tuple[str, list[Array], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class FunctionCase:
    """A call to check.

    Attributes:
        space: The module that holds the function, under `vkml` and under `torch`; none for those at
            the top. Functions at the top and layers are called by the package.
        name: The function that it covers.
        arrays: What to call both with; floating arrays are float32.
        options: Keyword arguments of both.
        call: Takes the module and tensors; calls the function by its name if None.
        reference: Takes `torch` and its tensors, where PyTorch has no such function or cannot
            differentiate it.
        units: The largest error of value and derivatives, in units of the last place of the dtype
            (2^-23 for float32) at the largest magnitude of what is expected, or at 1 if that is
            smaller.
        half_units: The same for values in float16 and bfloat16.
        double_units: The same for float64, where PyTorch's own formula is that far off.
        no_gradient: Why there is no gradient, or none but 0.
        no_second: Why there is no second derivative at these operands.
        dtypes: What the floating operands may be.
        on_cpu_alone: Whether other devices refuse.
        label: Tells the cases of one function apart.
    """

    space: str
    name: str
    arrays: Sequence[Array]
    options: dict[str, Any] = field(default_factory=dict)
    call: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    units: float = 64
    half_units: float = 2
    double_units: float | None = None
    no_gradient: str = ""
    no_second: str = ""
    dtypes: tuple[str, ...] = FLOATS
    on_cpu_alone: bool = False
    label: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.space, self.name, self.label)))

    @property
    def key(self) -> str:
        """The name with its module."""
        return f"{self.space or 'vkml'}.{self.name}"

    def _from(self, package: str, tensors: Sequence[Any]) -> Any:
        if self.call is not None and self.space in ("", "nn"):
            return self.call(importlib.import_module(package), *tensors)
        module = importlib.import_module(f"{package}.{self.space}")
        if self.call is not None:
            return self.call(module, *tensors)
        return getattr(module, self.name)(*tensors, **self.options)

    def function(self, *tensors: Any) -> Any:
        """What vkML returns: a tensor or several."""
        return self._from("vkml", tensors)

    def expected(self, *tensors: Any) -> Any:
        """What PyTorch returns for its tensors."""
        if self.reference is not None:
            return self.reference(importlib.import_module("torch"), *tensors)
        return self._from("torch", tensors)


def numbered(space: str, calls: Sequence[Call], **settings: Any) -> list[FunctionCase]:
    """Cases of calls, told apart by their place in the list."""
    return [
        FunctionCase(space, name, arrays, options, label=str(place), **settings)
        for place, (name, arrays, options) in enumerate(calls)
    ]
