"""Kernels that are timed.

Each function receives a framework, prepares fixed data on its device, and returns what is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from frameworks import Framework

Call = Callable[[], None]


def normal(*extents: int, seed: int = 0) -> np.ndarray:
    """Standard normal values, f32, the same in every process."""
    return np.random.default_rng(seed).standard_normal(extents, dtype=np.float32)


def upload(size: int, framework: Framework) -> Call:
    """Ordinary host memory to the device."""
    host = normal(size)
    return lambda: framework.run(framework.array(host))


def download(size: int, framework: Framework) -> Call:
    """The device's memory to ordinary host memory, a new array each time."""
    x = framework.array(normal(size))
    framework.run(x)
    return lambda: framework.to_host(x)


def add(size: int, framework: Framework) -> Call:
    """`a + b` into a new tensor."""
    a, b = framework.array(normal(size)), framework.array(normal(size, seed=1))
    return lambda: framework.run(a + b)


def chain(size: int, framework: Framework) -> Call:
    """`sigmoid(a*b+a)*tanh(b) - a/2` into a new tensor."""
    sigmoid, tanh = framework.lib.sigmoid, framework.lib.tanh
    a, b = framework.array(normal(size)), framework.array(normal(size, seed=1))
    return lambda: framework.run(sigmoid(a * b + a) * tanh(b) - a / 2)


def total(size: int, framework: Framework) -> Call:
    """The sum of all elements."""
    x = framework.array(normal(size))
    return lambda: framework.run(x.sum())


def with_gradients(
    function: Callable[..., Any], leaves: list[Any], gradient: Any, framework: Framework
) -> Call:
    """`function` of the leaves, and its gradients with respect to all of them."""

    def call() -> None:
        for leaf in leaves:
            leaf.grad = None
        function(*leaves).backward(gradient)
        framework.run(*(leaf.grad for leaf in leaves))

    return call


def softmax(rows: int, backward: bool, framework: Framework) -> Call:
    """Softmax of each row of a square matrix."""
    softmax_of = framework.lib.nn.functional.softmax
    x = framework.array(normal(rows, rows), requires_grad=backward)

    def apply(x: Any) -> Any:
        return softmax_of(x, dim=-1)

    if not backward:
        return lambda: framework.run(apply(x))
    return with_gradients(apply, [x], framework.array(normal(rows, rows, seed=1)), framework)


def layer_norm(rows: int, backward: bool, framework: Framework) -> Call:
    """Layer norm of each row of a square matrix, affine; gradients of input, weight and bias."""
    leaves = [
        framework.array(normal(*extents, seed=seed), requires_grad=backward)
        for seed, extents in enumerate([(rows, rows), (rows,), (rows,)])
    ]
    norm = framework.lib.nn.functional.layer_norm

    def apply(x: Any, weight: Any, bias: Any) -> Any:
        return norm(x, (rows,), weight, bias)

    if not backward:
        return lambda: framework.run(apply(*leaves))
    return with_gradients(apply, leaves, framework.array(normal(rows, rows, seed=3)), framework)


@dataclass(frozen=True)
class Product:
    """The product of an (m, k) and a (k, n) matrix.

    `layout` holds one letter an operand: "N" as it lies, "T" the transpose of what lies there.
    """

    m: int
    n: int
    k: int
    layout: str = "NN"

    @property
    def name(self) -> str:
        """512, or 8192x768x3072 NN."""
        if self.m == self.n == self.k and self.layout == "NN":
            return str(self.m)
        return f"{self.m}x{self.n}x{self.k} {self.layout}"


def matmul(size: Product, dtype: str, framework: Framework) -> Call:
    """One such product."""

    def operand(rows: int, columns: int, letter: str, seed: int) -> Any:
        extents = (columns, rows) if letter == "T" else (rows, columns)
        lying = framework.array(normal(*extents, seed=seed), dtype=dtype)
        return lying.mT if letter == "T" else lying

    a = operand(size.m, size.k, size.layout[0], 0)
    b = operand(size.k, size.n, size.layout[1], 1)
    return lambda: framework.run(a @ b)


def batched_matmul(batch: int, size: int, dtype: str, framework: Framework) -> Call:
    """Products of square matrices, one for each member of the batch."""
    a = framework.array(normal(batch, size, size), dtype=dtype)
    b = framework.array(normal(batch, size, size, seed=1), dtype=dtype)
    return lambda: framework.run(a @ b)


def linear_gelu(size: int, dtype: str, framework: Framework) -> Call:
    """A product, a bias and GELU."""
    functional = framework.lib.nn.functional
    x = framework.array(normal(size, size), dtype=dtype)
    weight = framework.array(normal(size, size, seed=1), dtype=dtype)
    bias = framework.array(normal(size, seed=2), dtype=dtype)
    return lambda: framework.run(functional.gelu(functional.linear(x, weight, bias)))


@dataclass(frozen=True)
class Convolution:
    """A 2-D convolution with as many output as input channels that keeps the image's size."""

    batch: int
    channels: int
    size: int
    kernel: int
    groups: int = 1
    dtype: str = "float32"
    backward: bool = False

    @property
    def operations(self) -> float:
        """Multiplications and additions of a call."""
        taps = self.kernel**2 * self.channels // self.groups
        forward = 2.0 * self.batch * self.channels * self.size**2 * taps
        return forward * (3 if self.backward else 1)


def convolution(one: Convolution, framework: Framework) -> Call:
    """One such convolution, and both gradients where they are asked for."""
    apply_2d = framework.lib.nn.functional.conv2d
    image = (one.batch, one.channels, one.size, one.size)
    filters = (one.channels, one.channels // one.groups, one.kernel, one.kernel)
    x = framework.array(normal(*image), one.backward, one.dtype)
    weight = framework.array(normal(*filters, seed=1), one.backward, one.dtype)

    def apply(x: Any, weight: Any) -> Any:
        return apply_2d(x, weight, padding=one.kernel // 2, groups=one.groups)

    if not one.backward:
        return lambda: framework.run(apply(x, weight))
    gradient = framework.array(normal(*image, seed=2), dtype=one.dtype)
    return with_gradients(apply, [x, weight], gradient, framework)


def attention(
    extents: tuple[int, int, int, int],
    causal: bool,
    dtype: str,
    backward: bool,
    framework: Framework,
) -> Call:
    """Scaled dot-product attention over (batch, heads, length, width)."""
    apply_to = framework.lib.nn.functional.scaled_dot_product_attention
    leaves = [framework.array(normal(*extents, seed=seed), backward, dtype) for seed in range(3)]

    def apply(query: Any, key: Any, value: Any) -> Any:
        return apply_to(query, key, value, is_causal=causal)

    if not backward:
        return lambda: framework.run(apply(*leaves))
    return with_gradients(
        apply, leaves, framework.array(normal(*extents, seed=3), dtype=dtype), framework
    )


def cross_entropy(rows: int, classes: int, dtype: str, framework: Framework) -> Call:
    """Mean cross entropy of logits, and their gradient."""
    logits = framework.array(normal(rows, classes), True, dtype)
    labels = framework.array(np.random.default_rng(1).integers(0, classes, rows, dtype=np.int64))
    loss_of = framework.lib.nn.functional.cross_entropy

    def call() -> None:
        logits.grad = None
        loss = loss_of(logits, labels)
        loss.backward()
        framework.run(loss, logits.grad)

    return call


def adamw(tensors: int, elements: int, recorded: bool, framework: Framework) -> Call:
    """One AdamW step over many tensors with fixed gradients."""
    leaves = [framework.array(normal(elements, seed=seed), True) for seed in range(tensors)]
    optimizer = framework.lib.optim.AdamW(leaves, lr=1e-3)
    for leaf in leaves:
        leaf.grad = leaf.detach() * 0.5

    step = framework.recorded(optimizer.step) if recorded else optimizer.step

    def call() -> None:
        step()
        framework.run(*leaves)

    return call
