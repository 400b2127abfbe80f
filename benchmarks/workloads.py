"""The table of what is timed: rows of the report, with the sizes that a device takes.

overhead_workloads.py, kernel_workloads.py and training_workloads.py hold the work itself, written
once for every framework. `work` says what one call counts for: bytes or operations for rates,
repetitions for times. Bytes are ideal traffic: each operand read once, each result written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import kernel_workloads as kernels
import overhead_workloads as overhead
import training_workloads as training
from frameworks import Framework
from kernel_workloads import Convolution, Product
from overhead_workloads import Run

Make = Callable[[Framework], Callable[[], float | None]]

RATES = {"GB/s": 1e9, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "tok/s": 1.0}
TIMES = {"ns": 1e9, "us": 1e6, "ms": 1e3}


@dataclass(frozen=True)
class Workload:
    """One row of the report."""

    name: str
    make: Make
    unit: str
    work: float = 1.0
    has_peers: bool = True  # otherwise vkML alone can do it
    times_itself: bool = False  # a call gives the seconds that count
    has_kernels: bool = True  # whose number and time on the device say something

    def value(self, seconds: float) -> float:
        """The figure in `unit` of a call that took `seconds`."""
        if self.unit in RATES:
            return self.work / seconds / RATES[self.unit]
        return seconds / self.work * TIMES[self.unit]


def squares(*sizes: int) -> tuple[Product, ...]:
    """Square products."""
    return tuple(Product(size, size, size) for size in sizes)


SHORT_DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Sizes:
    """How large the workloads are on a device."""

    transfer: int  # elements; 0 where the device shares the host's memory
    chain: tuple[int, ...]
    total: int
    rows: int
    products: dict[str, tuple[Product, ...]]
    batched: tuple[int, int, str]
    linear_gelu: dict[str, int]
    convolutions: tuple[Convolution, ...]
    attention: tuple[tuple[int, int, int, int], str]
    cross_entropy: tuple[int, int, str]
    adamw: tuple[int, int]
    cnn_batch: int
    lstm: tuple[int, int, int]
    gpt: dict[str, training.Gpt]


CPU_CONVOLUTIONS = tuple(
    Convolution(32, 64, 32, kernel, groups, backward=backward)
    for kernel, groups in ((3, 1), (1, 1), (3, 64))
    for backward in (False, True)
)
CPU = Sizes(
    transfer=0,
    chain=(1 << 24, 1 << 20, 1 << 16, 1 << 12),
    total=1 << 24,
    rows=4096,
    products={
        "float32": squares(256, 512, 1024, 2048, 4096),
        # PyTorch has no fast bf16 where the processor has none: larger ones take it minutes.
        "bfloat16": squares(256, 512, 1024),
    },
    batched=(64, 128, "float32"),
    linear_gelu={"float32": 1024, "bfloat16": 1024},
    convolutions=CPU_CONVOLUTIONS,
    attention=((4, 8, 1024, 64), "float32"),
    cross_entropy=(512, 8192, "float32"),
    adamw=(100, 10_000),
    cnn_batch=64,
    lstm=(128, 64, 16),
    gpt={"char-GPT": training.CHAR_GPT},
)
GPU = Sizes(
    transfer=1 << 26,
    chain=(1 << 28, 1 << 24, 1 << 20),
    total=1 << 28,
    rows=8192,
    products={
        "float32": squares(1024, 2048, 4096, 8192),
        "float16": (
            *squares(1000, 2048, 4096, 8192),
            *(Product(4096, 4096, 4096, layout) for layout in ("NT", "TN", "TT")),
            Product(8192, 50257, 768, "NT"),
            Product(4095, 4097, 4001),
            Product(8192, 768, 3072),
            Product(512, 512, 8192),
        ),
        "bfloat16": squares(2048, 4096, 8192),
    },
    batched=(64, 128, "float16"),
    linear_gelu={"float32": 4096, "bfloat16": 4096},
    convolutions=(
        Convolution(32, 64, 32, 3),
        Convolution(32, 64, 32, 1),
        *(
            Convolution(256, 64, 32, 3, dtype=dtype, backward=backward)
            for dtype in ("float32", "float16")
            for backward in (False, True)
        ),
    ),
    attention=((4, 16, 4096, 64), "float16"),
    cross_entropy=(8192, 50257, "bfloat16"),
    adamw=(100, 920_000),
    cnn_batch=256,
    lstm=(512, 128, 32),
    gpt={
        "GPT-2 small f32": training.GPT2_SMALL,
        "GPT-2 small bf16": training.GPT2_SMALL_MIXED,
    },
)
# A software Vulkan driver is a target for correctness; the sizes keep a run of it short.
SOFTWARE = Sizes(
    transfer=0,
    chain=(1 << 20,),
    total=1 << 20,
    rows=512,
    products={"float32": squares(256, 512)},
    batched=(16, 64, "float32"),
    linear_gelu={"float32": 256},
    convolutions=(Convolution(4, 32, 16, 3), Convolution(4, 32, 16, 1)),
    attention=((1, 2, 128, 32), "float32"),
    cross_entropy=(64, 1024, "float32"),
    adamw=(20, 1000),
    cnn_batch=8,
    lstm=(64, 16, 8),
    gpt={"char-GPT": training.CHAR_GPT},
)
QUICK = Sizes(
    transfer=0,
    chain=(1 << 20, 1 << 12),
    total=1 << 20,
    rows=1024,
    products={"float32": squares(256, 1024)},
    batched=(16, 64, "float32"),
    linear_gelu={"float32": 256},
    convolutions=(Convolution(32, 64, 32, 3), Convolution(32, 64, 32, 1)),
    attention=((1, 4, 256, 64), "float32"),
    cross_entropy=(128, 1024, "float32"),
    adamw=(20, 1000),
    cnn_batch=64,
    lstm=(64, 16, 8),
    gpt={"char-GPT": training.CHAR_GPT},
)
SIZES = {"cpu": CPU, "gpu": GPU, "software": SOFTWARE, "quick": QUICK}


def short(count: int) -> str:
    """16M, 64k, 512."""
    for letter, shift in (("M", 20), ("k", 10)):
        if count >> shift:
            return f"{count >> shift}{letter}"
    return str(count)


def overheads() -> Iterator[Workload]:
    """What recording and running cost where there is next to nothing to compute."""
    for name, count, when, unit in (
        ("record one add, nothing run", 1000, Run.NEVER, "ns"),
        ("overhead, 1000 adds run at once", 1000, Run.AT_THE_END, "us"),
        ("overhead, adds run one by one", 100, Run.ONE_BY_ONE, "us"),
    ):
        yield Workload(name, partial(overhead.adds, count, when), unit, count, has_kernels=False)
    for name, make in (
        (
            "planned step of 200 nodes, realize() until submitted",
            overhead.cached_realize,
        ),
        ("recorded step of 200 nodes, call until submitted", overhead.replay),
    ):
        yield Workload(name, make, "us", has_peers=False, times_itself=True)


def memory_bound(sizes: Sizes) -> Iterator[Workload]:
    """What memory bounds: transfers, elementwise chains, reductions, rows."""
    if sizes.transfer:
        for name, make in (("upload", kernels.upload), ("download", kernels.download)):
            yield Workload(
                f"{name} {short(4 * sizes.transfer)}B",
                partial(make, sizes.transfer),
                "GB/s",
                4 * sizes.transfer,
                has_kernels=False,
            )
    largest = max(sizes.chain)
    yield Workload(f"add {short(largest)}", partial(kernels.add, largest), "GB/s", 12 * largest)
    for size in sizes.chain:
        yield Workload(f"chain {short(size)}", partial(kernels.chain, size), "GB/s", 12 * size)
    yield Workload(
        f"sum of {short(sizes.total)}", partial(kernels.total, sizes.total), "GB/s", 4 * sizes.total
    )
    square = sizes.rows * sizes.rows * 4
    for title, make in (("softmax", kernels.softmax), ("layer norm", kernels.layer_norm)):
        name = f"{title} {sizes.rows}x{sizes.rows}"
        yield Workload(f"{name}, forward", partial(make, sizes.rows, False), "GB/s", 2 * square)
        yield Workload(
            f"{name}, with backward", partial(make, sizes.rows, True), "GB/s", 5 * square
        )
    rows, classes, dtype = sizes.cross_entropy
    element = 4 if dtype == "float32" else 2
    yield Workload(
        f"cross entropy with gradient {SHORT_DTYPES[dtype]} {rows}x{classes}",
        partial(kernels.cross_entropy, rows, classes, dtype),
        "GB/s",
        2 * element * rows * classes,
    )
    tensors, elements = sizes.adamw
    for recorded, ending in ((False, ""), (True, ", jit")):
        yield Workload(
            f"AdamW, {tensors} tensors of {elements}{ending}",
            partial(kernels.adamw, tensors, elements, recorded),
            "GB/s",
            28 * tensors * elements,
        )


def compute_bound(sizes: Sizes) -> Iterator[Workload]:
    """Products, convolutions, attention."""
    for dtype, products in sizes.products.items():
        for product in products:
            yield Workload(
                f"matmul {SHORT_DTYPES[dtype]} {product.name}",
                partial(kernels.matmul, product, dtype),
                "GFLOP/s",
                2 * product.m * product.n * product.k,
            )
    batch, size, dtype = sizes.batched
    yield Workload(
        f"matmul {SHORT_DTYPES[dtype]}, {batch} of {size}",
        partial(kernels.batched_matmul, batch, size, dtype),
        "GFLOP/s",
        2 * batch * size**3,
    )
    for dtype, size in sizes.linear_gelu.items():
        yield Workload(
            f"linear and GELU {SHORT_DTYPES[dtype]} {size}",
            partial(kernels.linear_gelu, size, dtype),
            "GFLOP/s",
            2 * size**3,
        )
    for one in sizes.convolutions:
        kind = f"{one.kernel}x{one.kernel}" + (", depthwise" if one.groups > 1 else "")
        shape = f"{one.batch}x{one.channels}x{one.size}x{one.size}"
        yield Workload(
            f"conv2d {SHORT_DTYPES[one.dtype]} {kind}, {shape}"
            + (", with backward" if one.backward else ""),
            partial(kernels.convolution, one),
            "GFLOP/s",
            one.operations,
        )
    extents, dtype = sizes.attention
    batch, heads, length, width = extents
    forward = 4 * batch * heads * length**2 * width
    name = f"attention {SHORT_DTYPES[dtype]} {'x'.join(map(str, extents))}"
    for causal in (False, True):
        for backward in (False, True):
            yield Workload(
                name + (", causal" if causal else "") + (", with backward" if backward else ""),
                partial(kernels.attention, extents, causal, dtype, backward),
                "GFLOP/s",
                forward * (3.5 if backward else 1) / (2 if causal else 1),
            )


def training_steps(sizes: Sizes) -> Iterator[Workload]:
    """Whole training steps."""
    for optimizer in ("SGD", "Adam"):
        yield Workload(f"MLP step, {optimizer}", partial(training.mlp, optimizer, False, 64), "ms")
        yield Workload(
            f"MLP step, {optimizer}, jit", partial(training.mlp, optimizer, True, 64), "ms"
        )
    batch = sizes.cnn_batch
    width, steps, sequences = sizes.lstm
    for recorded, ending in ((False, ""), (True, ", jit")):
        yield Workload(
            f"CNN step, batch {batch}{ending}", partial(training.cnn, batch, recorded), "ms"
        )
        yield Workload(
            f"LSTM step, {width} wide, {steps} steps, batch {sequences}{ending}",
            partial(training.lstm, width, steps, sequences, recorded),
            "ms",
        )
        for title, size in sizes.gpt.items():
            yield Workload(
                f"{title}{ending}", partial(training.gpt, size, recorded), "tok/s", size.tokens
            )


def workloads(sizes: Sizes) -> Iterator[Workload]:
    """All rows of the report, in its order."""
    yield from overheads()
    yield from memory_bound(sizes)
    yield from compute_bound(sizes)
    yield from training_steps(sizes)


DECADES = tuple(10**exponent for exponent in range(3, 8))


def scaling() -> Iterator[Workload]:
    """Time against size, over four decades: where overheads end and where caches do."""
    for size in DECADES:
        yield Workload(f"chain, elements {size}", partial(kernels.chain, size), "us")
    for size in DECADES:
        yield Workload(f"sum, elements {size}", partial(kernels.total, size), "us")
    for side in (10, 32, 100, 316, 1000, 3162):
        product = Product(side, side, side)
        yield Workload(
            f"matmul, products {side**3}", partial(kernels.matmul, product, "float32"), "us"
        )
    for batch in (1, 10, 100, 1000, 10_000):
        yield Workload(f"MLP step, batch {batch}", partial(training.mlp, "SGD", False, batch), "us")
    for count in (10, 100, 1000, 10_000, 100_000):
        yield Workload(
            f"dependent adds, nodes {count}",
            partial(overhead.adds, count, Run.AT_THE_END),
            "us",
            has_kernels=False,
        )


TABLES: dict[str, Callable[[], Iterator[Workload]]] = {
    **{name: partial(workloads, sizes) for name, sizes in SIZES.items()},
    "scaling": scaling,
}
