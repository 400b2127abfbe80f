"""Training steps that are timed: forward, loss, backward, update and a read of the loss.

Each function receives a framework, prepares a model and fixed data on its device, and returns the
step. The models are written against the API that vkML and PyTorch share.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from frameworks import Framework
from kernel_workloads import Call, normal


def training_step(
    framework: Framework,
    model: Any,
    optimizer: Any,
    inputs: np.ndarray,
    classes: int,
    recorded: bool = False,
    products: str | None = None,
) -> Call:
    """One step on fixed data; the classes of the labels are drawn.

    `recorded`: all but the read is what `vkml.jit` replays. Inputs of integers are token numbers,
    each of which has a label. `products`: the dtype of mixed precision; None computes in float32.
    """
    shape = inputs.shape if inputs.dtype.kind == "i" else inputs.shape[:1]
    labels = np.random.default_rng(1).integers(0, classes, shape, dtype=np.int64).reshape(-1)
    x, y = framework.array(inputs), framework.array(labels)
    cross_entropy = framework.lib.nn.functional.cross_entropy

    def precision() -> AbstractContextManager[Any]:
        return framework.autocast(products) if products else nullcontext()

    def step() -> Any:
        optimizer.zero_grad()
        with precision():
            loss = cross_entropy(model(x).reshape(-1, classes), y)
        loss.backward()
        optimizer.step()
        return loss

    run = framework.recorded(step) if recorded else step
    return lambda: run().item()


def optimizer_for(framework: Framework, name: str, model: Any) -> Any:
    """SGD with lr 0.01, or another with lr 1e-3, over the parameters of `model`."""
    optim = framework.lib.optim
    if name == "SGD":
        return optim.SGD(model.parameters(), lr=0.01)
    return getattr(optim, name)(model.parameters(), lr=1e-3)


def mlp(optimizer: str, recorded: bool, batch: int, framework: Framework) -> Call:
    """784-128-10 with ReLU."""
    nn = framework.lib.nn
    model = framework.to_device(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)))
    return training_step(
        framework,
        model,
        optimizer_for(framework, optimizer, model),
        normal(batch, 784),
        10,
        recorded,
    )


def cnn(batch: int, recorded: bool, framework: Framework) -> Call:
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
    optimizer = optimizer_for(framework, "SGD", model)
    return training_step(framework, model, optimizer, normal(batch, 3, 32, 32), 10, recorded)


def lstm(width: int, steps: int, batch: int, recorded: bool, framework: Framework) -> Call:
    """An LSTM as wide as its input, whose last state a linear layer classifies; SGD."""
    nn = framework.lib.nn

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(width, width, batch_first=True)
            self.head = nn.Linear(width, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(x)[0][:, -1])

    model = framework.to_device(Model())
    optimizer = optimizer_for(framework, "SGD", model)
    return training_step(framework, model, optimizer, normal(batch, steps, width), 10, recorded)


@dataclass(frozen=True)
class Gpt:
    """A transformer of pre-norm layers with learned positions, trained on next tokens."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    length: int
    batch: int
    optimizer: str
    products: str | None = None

    @property
    def tokens(self) -> int:
        """How many tokens a step trains on."""
        return self.batch * self.length


CHAR_GPT = Gpt(4, 128, 4, 65, 64, 8, "Adam")
GPT2_SMALL = Gpt(12, 768, 12, 50257, 1024, 8, "AdamW")
GPT2_SMALL_MIXED = replace(GPT2_SMALL, products="bfloat16")


def gpt(size: Gpt, recorded: bool, framework: Framework) -> Call:
    """One training step of such a model."""
    lib, nn, functional = framework.lib, framework.lib.nn, framework.lib.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            width = size.width
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.qkv(self.norm1(x)).chunk(3, -1)
            heads = (batch, length, size.heads, width // size.heads)
            query, key, value = (part.reshape(heads).transpose(1, 2) for part in parts)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(size.vocabulary, size.width)
            self.positions = nn.Embedding(size.length, size.width)
            self.blocks = nn.Sequential(*(Block() for _ in range(size.layers)))
            self.norm = nn.LayerNorm(size.width)
            self.head = nn.Linear(size.width, size.vocabulary, bias=False)

        def forward(self, tokens: Any) -> Any:
            positions = lib.arange(tokens.shape[1], device=tokens.device)
            x = self.tokens(tokens) + self.positions(positions)
            return self.head(self.norm(self.blocks(x)))

    model = framework.to_device(Model())
    optimizer = optimizer_for(framework, size.optimizer, model)
    tokens = np.random.default_rng(0).integers(0, size.vocabulary, (size.batch, size.length))
    return training_step(
        framework, model, optimizer, tokens, size.vocabulary, recorded, size.products
    )
