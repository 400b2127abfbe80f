"""The work that is timed, written once for every framework.

A workload's `make` receives a framework, prepares fixed data on its device, and returns the
function that is timed. `work` says what one call counts for: bytes or operations for rates,
repetitions for times. Bytes are ideal traffic: each operand read once, each result written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from frameworks import Framework

Make = Callable[[Framework], Callable[[], None]]

RATES = {"GB/s": 1e9, "GFLOP/s": 1e9, "TFLOP/s": 1e12}
TIMES = {"ns": 1e9, "us": 1e6, "ms": 1e3}


@dataclass(frozen=True)
class Workload:
    """One row of the report."""

    name: str
    make: Make
    unit: str
    work: float = 1.0

    def value(self, seconds: float) -> float:
        """The figure in `unit` of a call that took `seconds`."""
        if self.unit in RATES:
            return self.work / seconds / RATES[self.unit]
        return seconds / self.work * TIMES[self.unit]


@dataclass(frozen=True)
class Sizes:
    """How large the workloads are on a device."""

    chain: tuple[int, ...]
    total: int
    rows: int
    matmul: tuple[int, ...]
    cnn_batch: int


# A software Vulkan driver is a target for correctness; the sizes keep a run of it short.
SIZES = {
    "cpu": Sizes(
        (1 << 24, 1 << 20, 1 << 16, 1 << 12), 1 << 24, 4096, (256, 512, 1024, 2048, 4096), 64
    ),
    "gpu": Sizes((1 << 28, 1 << 24, 1 << 20), 1 << 28, 8192, (1024, 2048, 4096, 8192), 256),
    "software": Sizes((1 << 20,), 1 << 20, 512, (256, 512), 8),
    "quick": Sizes((1 << 20, 1 << 12), 1 << 20, 1024, (256, 1024), 64),
}


def normal(*extents: int, seed: int = 0) -> np.ndarray:
    """Standard normal values, f32, the same in every process."""
    return np.random.default_rng(seed).standard_normal(extents, dtype=np.float32)


def record(count: int, framework: Framework) -> Callable[[], None]:
    """`x = x + y` on one element; nothing reads the result."""
    start, y = framework.array(normal(1)), framework.array(normal(1, seed=1))
    framework.run(start, y)

    def call() -> None:
        x = start
        for _ in range(count):
            x = x + y

    return call


def record_and_run(count: int, framework: Framework) -> Callable[[], None]:
    """`x = x + y` on one element, recorded `count` times and then run."""
    start, y = framework.array(normal(1)), framework.array(normal(1, seed=1))
    framework.run(start, y)

    def call() -> None:
        x = start
        for _ in range(count):
            x = x + y
        framework.run(x)

    return call


def run_one_by_one(count: int, framework: Framework) -> Callable[[], None]:
    """`x = x + y` on one element, run after each."""
    start, y = framework.array(normal(1)), framework.array(normal(1, seed=1))
    framework.run(start, y)

    def call() -> None:
        x = start
        for _ in range(count):
            x = x + y
            framework.run(x)

    return call


def chain(size: int, framework: Framework) -> Callable[[], None]:
    """`sigmoid(a*b+a)*tanh(b) - a/2` into a new tensor."""
    sigmoid, tanh = framework.lib.sigmoid, framework.lib.tanh
    a, b = framework.array(normal(size)), framework.array(normal(size, seed=1))
    return lambda: framework.run(sigmoid(a * b + a) * tanh(b) - a / 2)


def total(size: int, framework: Framework) -> Callable[[], None]:
    """The sum of all elements."""
    x = framework.array(normal(size))
    return lambda: framework.run(x.sum())


def softmax(rows: int, framework: Framework) -> Callable[[], None]:
    """Softmax of each row of a square matrix."""
    x = framework.array(normal(rows, rows))
    apply = framework.lib.nn.functional.softmax
    return lambda: framework.run(apply(x, dim=-1))


def softmax_gradient(rows: int, framework: Framework) -> Callable[[], None]:
    """Softmax of each row, and its gradient."""
    x = framework.array(normal(rows, rows), requires_grad=True)
    gradient = framework.array(normal(rows, rows, seed=1))
    apply = framework.lib.nn.functional.softmax

    def call() -> None:
        x.grad = None
        apply(x, dim=-1).backward(gradient)
        framework.run(x.grad)

    return call


def layer_norm(rows: int, framework: Framework) -> Callable[[], None]:
    """Layer norm of each row of a square matrix, affine."""
    x = framework.array(normal(rows, rows))
    weight, bias = framework.array(normal(rows, seed=1)), framework.array(normal(rows, seed=2))
    apply = framework.lib.nn.functional.layer_norm
    return lambda: framework.run(apply(x, (rows,), weight, bias))


def layer_norm_gradient(rows: int, framework: Framework) -> Callable[[], None]:
    """Layer norm of each row, and the gradients of input, weight and bias."""
    leaves = [
        framework.array(normal(*extents, seed=seed), requires_grad=True)
        for seed, extents in enumerate([(rows, rows), (rows,), (rows,)])
    ]
    gradient = framework.array(normal(rows, rows, seed=3))
    apply = framework.lib.nn.functional.layer_norm

    def call() -> None:
        for leaf in leaves:
            leaf.grad = None
        x, weight, bias = leaves
        apply(x, (rows,), weight, bias).backward(gradient)
        framework.run(*(leaf.grad for leaf in leaves))

    return call


def matmul(size: int, framework: Framework) -> Callable[[], None]:
    """The product of two square matrices, f32."""
    a, b = framework.array(normal(size, size)), framework.array(normal(size, size, seed=1))
    return lambda: framework.run(a @ b)


def convolution(kernel: int, framework: Framework) -> Callable[[], None]:
    """conv2d, N 32, C 64 -> 64, 32x32, stride 1, same size."""
    x = framework.array(normal(32, 64, 32, 32))
    weight = framework.array(normal(64, 64, kernel, kernel, seed=1))
    apply = framework.lib.nn.functional.conv2d
    return lambda: framework.run(apply(x, weight, padding=kernel // 2))


def training_step(
    framework: Framework,
    model: Any,
    optimizer: Any,
    inputs: np.ndarray,
    classes: int,
    recorded: bool = False,
) -> Callable[[], None]:
    """Forward, cross entropy, backward, update and a read of the loss, on fixed data.

    `recorded`: all but the read is what `vkml.jit` replays.
    """
    labels = np.random.default_rng(1).integers(0, classes, len(inputs), dtype=np.int64)
    x, y = framework.array(inputs), framework.array(labels)
    cross_entropy = framework.lib.nn.functional.cross_entropy

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = framework.recorded(step) if recorded else step
    return lambda: run().item()


def optimizer_for(framework: Framework, name: str, model: Any) -> Any:
    """SGD with lr 0.01 or Adam with lr 1e-3 over the parameters of `model`."""
    optim = framework.lib.optim
    if name == "SGD":
        return optim.SGD(model.parameters(), lr=0.01)
    return optim.Adam(model.parameters(), lr=1e-3)


def mlp(optimizer: str, recorded: bool, framework: Framework) -> Callable[[], None]:
    """784-128-10 with ReLU, batch 64."""
    nn = framework.lib.nn
    model = framework.to_device(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)))
    return training_step(
        framework, model, optimizer_for(framework, optimizer, model), normal(64, 784), 10, recorded
    )


def cnn(batch: int, framework: Framework) -> Callable[[], None]:
    """Two 3x3 convolutions with pooling and a linear layer, 32x32 images, SGD."""
    nn = framework.lib.nn
    model = framework.to_device(
        nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(4096, 10),
        )
    )
    return training_step(
        framework, model, optimizer_for(framework, "SGD", model), normal(batch, 3, 32, 32), 10
    )


def short(count: int) -> str:
    """16M, 64k, 512."""
    for letter, shift in (("M", 20), ("k", 10)):
        if count >> shift:
            return f"{count >> shift}{letter}"
    return str(count)


def workloads(sizes: Sizes) -> Iterator[Workload]:
    """All rows of the report, in its order."""
    yield Workload("record one add, nothing run", partial(record, 1000), "ns", 1000)
    yield Workload("overhead, 1000 adds run at once", partial(record_and_run, 1000), "us", 1000)
    yield Workload("overhead, adds run one by one", partial(run_one_by_one, 100), "us", 100)
    for size in sizes.chain:
        yield Workload(f"chain {short(size)}", partial(chain, size), "GB/s", 12 * size)
    yield Workload(
        f"sum of {short(sizes.total)}", partial(total, sizes.total), "GB/s", 4 * sizes.total
    )
    square = sizes.rows * sizes.rows * 4
    name = f"{sizes.rows}x{sizes.rows}"
    yield Workload(f"softmax {name}, forward", partial(softmax, sizes.rows), "GB/s", 2 * square)
    yield Workload(
        f"softmax {name}, with backward", partial(softmax_gradient, sizes.rows), "GB/s", 5 * square
    )
    yield Workload(
        f"layer norm {name}, forward", partial(layer_norm, sizes.rows), "GB/s", 2 * square
    )
    yield Workload(
        f"layer norm {name}, with backward",
        partial(layer_norm_gradient, sizes.rows),
        "GB/s",
        5 * square,
    )
    for size in sizes.matmul:
        yield Workload(f"matmul f32 {size}", partial(matmul, size), "GFLOP/s", 2 * size**3)
    for kernel in (3, 1):
        yield Workload(
            f"conv2d {kernel}x{kernel}, 32x64x32x32",
            partial(convolution, kernel),
            "GFLOP/s",
            2 * 32 * 64 * 64 * 32 * 32 * kernel**2,
        )
    for optimizer in ("SGD", "Adam"):
        yield Workload(f"MLP step, {optimizer}", partial(mlp, optimizer, False), "ms")
        yield Workload(f"MLP step, {optimizer}, jit", partial(mlp, optimizer, True), "ms")
    yield Workload(f"CNN step, batch {sizes.cnn_batch}", partial(cnn, sizes.cnn_batch), "ms")
