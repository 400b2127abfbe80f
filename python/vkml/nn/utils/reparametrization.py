"""Weights computed from other parameters before each call: weight and spectral normalisation.

The weight stops being a parameter; a hook before `forward` computes it anew, so that gradients
reach what it is computed from. Names of parameters and buffers are PyTorch's.
"""

from __future__ import annotations

from typing import Any, TypeVar

import vkml
from vkml import Tensor, no_grad
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.nn.hooks import RemovableHandle
from vkml.nn.module import Module
from vkml.nn.parameter import Parameter

ModuleT = TypeVar("ModuleT", bound=Module)


class _Computed:
    """The hook that computes one weight of a module."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.handle: RemovableHandle | None = None

    def weight(self, module: Module) -> Tensor:
        """The weight from what the module holds now."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.weight(module))

    def attach(self, module: Module) -> None:
        """Computes the weight from now on, before each call."""
        self.handle = module.register_forward_pre_hook(self)
        self(module, ())


class _WeightNorm(_Computed):
    """A direction v, and its length g along an axis, or over all (None)."""

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = dim

    def length(self, direction: Tensor) -> Tensor:
        """The norm of each slice along the axis."""
        if self.dim is None:
            return vkml.norm(direction, 2)
        axis = self.dim % direction.ndim
        others = tuple(other for other in range(direction.ndim) if other != axis)
        return vkml.norm(direction, 2, others, True) if others else vkml.abs(direction)

    def weight(self, module: Module) -> Tensor:
        direction: Tensor = getattr(module, f"{self.name}_v")
        length: Tensor = getattr(module, f"{self.name}_g")
        return direction * (length / self.length(direction))


def _taken(operator: str, module: Module, name: str) -> Parameter:
    """Takes a parameter out of a module, to be computed instead."""
    weight = module._parameters.get(name)
    if weight is None:
        raise vkml.ArgumentError(
            f"[{operator}] {type(module).__name__} has no parameter {name!r}. Pass the name of one "
            f"of {', '.join(module._parameters) or 'none'}."
        )
    del module._parameters[name]
    return weight


def _found(operator: str, module: Module, name: str, kind: type[_Computed]) -> Any:
    """The hook that computes a weight of a module."""
    for entry in module._forward_pre_hooks.values():
        hook = entry.function
        if isinstance(hook, kind) and hook.name == name:
            return hook
    raise vkml.ArgumentError(f"[{operator}] {name!r} of {type(module).__name__} is not computed.")


def _given_back(module: Module, hook: _Computed, weight: Tensor) -> None:
    """Makes a weight a parameter again."""
    assert hook.handle is not None
    hook.handle.remove()
    delattr(module, hook.name)
    setattr(module, hook.name, Parameter(weight.detach().clone()))


def weight_norm(module: ModuleT, name: str = "weight", dim: int | None = 0) -> ModuleT:
    """Splits a weight into length and direction (Salimans and Kingma, 2016): w = g v / |v|.

    Args:
        module: Gets the parameters `weight_g` and `weight_v` in place of `weight`.
        name: Which parameter.
        dim: The axis whose slices have a length each; None for one length of all.

    Returns:
        The module.
    """
    hook = _WeightNorm(name, dim)
    direction = _taken("weight_norm", module, name)
    with no_grad():
        length = hook.length(direction.detach()).clone()
    module.register_parameter(f"{name}_g", Parameter(length))
    module.register_parameter(f"{name}_v", Parameter(direction.detach().clone()))
    hook.attach(module)
    return module


def remove_weight_norm(module: ModuleT, name: str = "weight") -> ModuleT:
    """Makes a weight that `weight_norm` has split a parameter again, with its value of now."""
    hook: _WeightNorm = _found("remove_weight_norm", module, name, _WeightNorm)
    with no_grad():
        weight = hook.weight(module)
    del module._parameters[f"{name}_g"], module._parameters[f"{name}_v"]
    _given_back(module, hook, weight)
    return module


class _SpectralNorm(_Computed):
    """A weight over its largest singular value, which power iteration follows."""

    def __init__(self, name: str, iterations: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.iterations, self.eps, self.dim = iterations, eps, dim

    def matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix whose rows are its slices along the axis."""
        return vkml.movedim(weight, self.dim, 0).reshape(weight.shape[self.dim], -1)

    def unit(self, vector: Tensor) -> Tensor:
        """A vector of length 1."""
        return vector / vkml.clamp(vkml.norm(vector, 2), min=self.eps)

    def improve(self, module: Module, iterations: int) -> None:
        """Steps of power iteration towards the singular vectors."""
        with no_grad():
            matrix = self.matrix(getattr(module, f"{self.name}_orig").detach())
            left: Tensor = getattr(module, f"{self.name}_u")
            right: Tensor = getattr(module, f"{self.name}_v")
            u, v = left.detach(), right.detach()
            for _ in range(iterations):
                v = self.unit(matrix.T @ u)
                u = self.unit(matrix @ v)
            left.copy_(u)
            right.copy_(v)

    def weight(self, module: Module) -> Tensor:
        if module.training:
            self.improve(module, self.iterations)
        original: Tensor = getattr(module, f"{self.name}_orig")
        u: Tensor = getattr(module, f"{self.name}_u").clone()
        v: Tensor = getattr(module, f"{self.name}_v").clone()
        largest: Tensor = (u * (self.matrix(original) @ v)).sum()
        return original / largest


def spectral_norm(
    module: ModuleT,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> ModuleT:
    """Divides a weight by its largest singular value (Miyato et al., 2018).

    Each call in training mode takes steps of power iteration towards it.

    Args:
        module: Gets the parameter `weight_orig` and the buffers `weight_u` and `weight_v`.
        name: Which parameter.
        n_power_iterations: Steps for each call.
        eps: The least length that a vector is divided by.
        dim: The axis of outputs; 0 if None, but 1 for transposed convolutions.

    Returns:
        The module.
    """
    if n_power_iterations < 1:
        raise vkml.ArgumentError(
            f"[spectral_norm] n_power_iterations is {n_power_iterations}. Pass 1 or more."
        )
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    hook = _SpectralNorm(name, n_power_iterations, eps, dim)
    original = _taken("spectral_norm", module, name)
    rows, columns = hook.matrix(original.detach()).shape
    module.register_parameter(f"{name}_orig", original)
    for suffix, extent in (("u", rows), ("v", columns)):
        start = vkml.randn(extent, device=original.device).to(original.dtype)
        module.register_buffer(f"{name}_{suffix}", hook.unit(start))
    hook.improve(module, 15)
    hook.attach(module)
    return module


def remove_spectral_norm(module: ModuleT, name: str = "weight") -> ModuleT:
    """Makes a weight that `spectral_norm` computes a parameter again, with its value of now."""
    hook: _SpectralNorm = _found("remove_spectral_norm", module, name, _SpectralNorm)
    with no_grad():
        training, module.training = module.training, False
        weight = hook.weight(module)
        module.training = training
    del module._parameters[f"{name}_orig"]
    del module._buffers[f"{name}_u"], module._buffers[f"{name}_v"]
    _given_back(module, hook, weight)
    return module


_check_arguments(globals())
