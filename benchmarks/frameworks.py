"""What the workloads need of a framework beyond the API that vkML and PyTorch share."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Kernels:
    """Kernels that ran, and the seconds that they took, each by itself, on the device."""

    count: int
    seconds: float


class Framework(Protocol):
    """One framework on one device. `lib` is its top module, used as `torch` would be."""

    lib: Any

    def array(
        self, value: np.ndarray, requires_grad: bool = False, dtype: str | None = None
    ) -> Any:
        """A tensor on the device, in `dtype` (by name) or in the array's."""

    def to_host(self, tensor: Any) -> np.ndarray:
        """The tensor's values in ordinary memory."""

    def to_device(self, module: Any) -> Any:
        """A module with its parameters on the device."""

    def run(self, *tensors: Any) -> None:
        """See to it that the values of these are computed, or queued to be."""

    def recorded(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """The function, replayed without Python where the framework can."""

    def autocast(self, dtype: str) -> AbstractContextManager[Any]:
        """Mixed precision with products in `dtype`."""

    def synchronize(self) -> None:
        """Wait for the device."""

    def kernels_of(self, run: Callable[[], None]) -> Kernels | None:
        """The kernels that ran while `run` was called; None where the framework cannot say."""

    def describe(self) -> str:
        """Version and device, for the report."""


class _SharedApi:
    """What vkML and PyTorch spell alike."""

    lib: Any
    device: str

    def array(
        self, value: np.ndarray, requires_grad: bool = False, dtype: str | None = None
    ) -> Any:
        kind = getattr(self.lib, dtype) if dtype else None
        return self.lib.tensor(value, dtype=kind, device=self.device, requires_grad=requires_grad)

    def to_device(self, module: Any) -> Any:
        return module.to(self.device)

    def autocast(self, dtype: str) -> AbstractContextManager[Any]:
        mode: AbstractContextManager[Any] = self.lib.autocast(
            self.device, dtype=getattr(self.lib, dtype)
        )
        return mode


class Vkml(_SharedApi):
    """vkML on `cpu` or `vulkan`."""

    def __init__(self, device: str) -> None:
        self.lib = importlib.import_module("vkml")
        importlib.import_module("vkml.nn")
        importlib.import_module("vkml.optim")
        importlib.import_module("vkml.func")
        self.device = device

    def to_host(self, tensor: Any) -> np.ndarray:
        values: np.ndarray = tensor.numpy()
        return values

    def run(self, *tensors: Any) -> None:
        for tensor in tensors:
            tensor.realize()

    def recorded(self, function: Callable[[], Any]) -> Callable[[], Any]:
        recorded: Callable[[], Any] = self.lib.jit(function)
        return recorded

    def synchronize(self) -> None:
        self.lib.synchronize()

    def kernels_of(self, run: Callable[[], None]) -> Kernels | None:
        with self.lib.profile() as p:
            run()
        return Kernels(len(p.runs), sum(kernel.seconds for kernel in p.runs))

    def describe(self) -> str:
        return f"vkML {self.lib.__version__} on {self.device}"


class Torch(_SharedApi):
    """PyTorch, eager. Its device for Vulkan's is CUDA where there is one, else the CPU."""

    def __init__(self, device: str) -> None:
        self.lib = importlib.import_module("torch")
        self.device = "cuda" if device == "vulkan" and self.lib.cuda.is_available() else "cpu"
        # float32 means float32 in convolutions, as it does in PyTorch's matrix products.
        self.lib.backends.cudnn.allow_tf32 = False

    def to_host(self, tensor: Any) -> np.ndarray:
        values: np.ndarray = tensor.cpu().numpy()
        return values

    def run(self, *tensors: Any) -> None:
        """PyTorch has started them already."""

    def recorded(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """Eager: the peer of the other rows."""
        return function

    def synchronize(self) -> None:
        if self.device == "cuda":
            self.lib.cuda.synchronize()

    def kernels_of(self, run: Callable[[], None]) -> Kernels | None:
        """On CUDA; None where its profiling interface is closed to this process, too."""
        if self.device != "cuda":
            return None
        profiler = self.lib.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as p:
            run()
            self.synchronize()
        on_device = self.lib.autograd.DeviceType.CUDA
        taken = [e.time_range.elapsed_us() for e in p.events() if e.device_type == on_device]
        return Kernels(len(taken), 1e-6 * sum(taken)) if taken else None

    def describe(self) -> str:
        threads = f", {self.lib.get_num_threads()} threads" if self.device == "cpu" else ""
        return f"PyTorch {self.lib.__version__} on {self.device}{threads}"


FRAMEWORKS = {"vkml": Vkml, "torch": Torch}
