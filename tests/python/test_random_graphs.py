"""Random graphs of up to 50 operators: lazy, eager, unfused and reference runs, and NumPy.

A graph is a list of steps over earlier values. NumPy runs it in double precision, with the gradient
of the sum of its last values by differences along one random direction. The reference backend and
plans without fusion need a process of their own (`VKML_REFERENCE`, `VKML_FUSE`): each writes what
it computes of the same graphs, every value and the gradient of every leaf, for comparison here.
Every operator keeps magnitudes near 1, so that errors do not grow.
"""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vkml
from checking import exact

MAX_STEPS = 50
MAX_ELEMENTS = 600
FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

Function = Callable[..., Any]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


# name: (function of tensors, function of arrays), smooth everywhere.
UNARY: dict[str, tuple[Function, Function]] = {
    "sin": (vkml.sin, np.sin),
    "tanh": (vkml.tanh, np.tanh),
    "sigmoid": (vkml.sigmoid, sigmoid),
    "exp of tanh": (lambda x: vkml.exp(vkml.tanh(x)), lambda x: np.exp(np.tanh(x))),
    "root": (lambda x: (x * x + 1).sqrt(), lambda x: np.sqrt(x * x + 1)),
    "log": (lambda x: (x * x + 2).log(), lambda x: np.log(x * x + 2)),
    "atan": (vkml.atan, np.arctan),
    "reciprocal": (lambda x: 1 / (x * x + 1), lambda x: 1 / (x * x + 1)),
    "softplus": (vkml.softplus, lambda x: np.logaddexp(0, x)),
    "silu": (vkml.silu, lambda x: x * sigmoid(x)),
    "half": (lambda x: x * 0.5 - 0.25, lambda x: x * 0.5 - 0.25),
}
BINARY: dict[str, tuple[Function, Function]] = {
    "mean of two": (lambda a, b: (a + b) * 0.5, lambda a, b: (a + b) * 0.5),
    "difference": (lambda a, b: (a - b) * 0.5, lambda a, b: (a - b) * 0.5),
    "product": (lambda a, b: vkml.sin(a) * b, lambda a, b: np.sin(a) * b),
    "quotient": (lambda a, b: a / (b * b + 1), lambda a, b: a / (b * b + 1)),
    "choice": (
        lambda a, b: vkml.where(a > 0, a * b, a - a),
        lambda a, b: np.where(a > 0, a * b, 0),
    ),
}


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# Along one axis, from (value, axis).
ALONG: dict[str, tuple[Function, Function]] = {
    "sum": (lambda x, d: x.sum(d) * 0.3, lambda x, d: x.sum(d) * 0.3),
    "mean": (lambda x, d: x.mean(d, keepdim=True), lambda x, d: x.mean(d, keepdims=True)),
    "logsumexp": (
        lambda x, d: x.logsumexp(d),
        lambda x, d: np.log(np.exp(x).sum(d)),
    ),
    "softmax": (lambda x, d: vkml.softmax(x, d), softmax),
    "variance": (
        lambda x, d: x.var(d, correction=0, keepdim=True),
        lambda x, d: x.var(d, keepdims=True),
    ),
    "cumsum": (lambda x, d: x.cumsum(d) * 0.3, lambda x, d: np.cumsum(x, d) * 0.3),
    "flip": (lambda x, d: x.flip(d), np.flip),
    "roll": (lambda x, d: x.roll(1, d), lambda x, d: np.roll(x, 1, d)),
    "halves joined": (
        lambda x, d: vkml.cat([x.narrow(d, 0, 1), x], d),
        lambda x, d: np.concatenate([x.take([0], d), x], d),
    ),
    "each second": (
        lambda x, d: x.transpose(0, d)[::2].transpose(0, d),
        lambda x, d: np.swapaxes(np.swapaxes(x, 0, d)[::2], 0, d),
    ),
    "picked": (
        lambda x, d: x.index_select(d, vkml.tensor([0, 0], device=x.device)),
        lambda x, d: np.take(x, [0, 0], d),
    ),
    "moved": (lambda x, d: x.movedim(d, 0), lambda x, d: np.moveaxis(x, d, 0)),
    "rows multiplied": (
        lambda x, d: vkml.tanh(x.movedim(d, -1) @ x.movedim(d, -1).transpose(-1, -2)),
        lambda x, d: np.tanh(np.moveaxis(x, d, -1) @ np.swapaxes(np.moveaxis(x, d, -1), -1, -2)),
    ),
}


# Picks one of several.
Choose = Callable[[Sequence[Any]], Any]


def make_graph(choose: Choose, attempts: int) -> tuple[list[tuple[int, ...]], list[tuple]]:
    """Shapes of leaves, and steps (kind, name, positions of operands, axis)."""
    extents = [1, 2, 3, 4, 5, 8]
    base = tuple(choose(extents) for _ in range(choose([1, 2, 3])))
    shapes = [base, tuple(choose([extent, 1]) for extent in base)]
    known = list(shapes)
    steps: list[tuple] = []
    for _ in range(attempts):
        # Mostly recent values, so that the graph is deep.
        near = max(0, len(known) - 8) if choose([True, False]) else 0
        place = choose(range(near, len(known)))
        kind = choose(["unary", "unary", "binary", "binary", "along"])
        if kind == "unary":
            step: tuple = (kind, choose(list(UNARY)), (place,), 0)
        elif kind == "binary":
            partners = [i for i, shape in enumerate(known) if fit(known[place], shape)]
            step = (kind, choose(list(BINARY)), (place, choose(partners[-6:])), 0)
        else:
            rank = len(known[place])
            name = choose(list(ALONG))
            if rank == 0 or (name == "rows multiplied" and rank < 2):
                continue
            step = (kind, name, (place,), choose(range(rank)))
        result = run_step(step, [np.zeros(shape) for shape in known], 1).shape
        if len(result) > 4 or np.prod(result) > MAX_ELEMENTS:
            continue
        steps.append(step)
        known.append(result)
    return shapes, steps


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[tuple]]:
    """A graph that Hypothesis chooses, and makes smaller where it fails."""
    attempts = draw(st.integers(5, MAX_STEPS))
    return make_graph(lambda options: draw(st.sampled_from(options)), attempts)


def seeded_graph(seed: int) -> tuple[list[tuple[int, ...]], list[tuple]]:
    """The same graph in every process."""
    generator = random.Random(seed)
    return make_graph(generator.choice, generator.randint(20, MAX_STEPS))


def fit(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def run_step(step: tuple, values: list, side: int) -> Any:
    """One step on tensors (side 0) or arrays (side 1)."""
    kind, name, places, axis = step
    table = {"unary": UNARY, "binary": BINARY, "along": ALONG}[kind]
    operands = [values[place] for place in places]
    return table[name][side](*operands, *([axis] if kind == "along" else []))


def run(leaves: list, steps: list[tuple], side: int) -> list:
    """The last values of a graph, which others may use too."""
    values = list(leaves)
    for step in steps:
        values.append(run_step(step, values, side))
    return values[len(leaves) :][-3:] or values


def total(results: list, side: int) -> Any:
    """A number that depends on all results."""
    parts = [result.mean() if side == 0 else np.mean(result) for result in results]
    return sum(parts[1:], parts[0])


def assert_near(actual: Any, expected: np.ndarray, bound: float, context: str) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=bound * scale, err_msg=context)


def leaf_values(generator: np.random.Generator, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Numbers that float32 holds, in double precision."""
    return [generator.uniform(-1, 1, shape).astype(np.float32).astype(float) for shape in shapes]


def forward_and_backward(
    arrays: list[np.ndarray], steps: list[tuple], device: object, dtype: object
) -> tuple[list, list]:
    """Leaves with gradients, and results."""
    leaves = [
        vkml.tensor(array, dtype=dtype, device=device, requires_grad=True) for array in arrays
    ]
    results = run(leaves, steps, 0)
    total(results, 0).backward(retain_graph=True)
    return leaves, results


def check_graph(
    shapes: list[tuple[int, ...]], steps: list[tuple], device: object, dtype: object, context: str
) -> None:
    generator = np.random.default_rng([len(steps), *shapes[0]])
    arrays = leaf_values(generator, shapes)
    leaves, results = forward_and_backward(arrays, steps, device, dtype)
    wide = dtype == vkml.float64
    for result, expected in zip(results, run(arrays, steps, 1), strict=True):
        assert_near(exact(result), expected, 1e-11 if wide else 1e-4, context)
    directions = [generator.uniform(-1, 1, shape) for shape in shapes]
    step = 1e-6
    ends = [
        total(run([a + s * d for a, d in zip(arrays, directions, strict=True)], steps, 1), 1)
        for s in (step, -step)
    ]
    expected = (ends[0] - ends[1]) / (2 * step)
    slopes = [
        np.sum(exact(leaf.grad) * direction)
        for leaf, direction in zip(leaves, directions, strict=True)
        if leaf.grad is not None
    ]
    assert_near(np.float64(sum(slopes)), expected, 1e-7 if wide else 1e-3, f"{context}: gradient")


@FEW
@given(graph=graphs())
def test_lazy_graphs(graph: tuple, device: object) -> None:
    check_graph(*graph, device, vkml.float32, "lazy")


@FEW
@given(graph=graphs())
def test_double_precision(graph: tuple) -> None:
    check_graph(*graph, vkml.cpu, vkml.float64, "float64")


@FEW
@given(graph=graphs())
def test_eager_graphs(graph: tuple, device: object) -> None:
    """Each operator by itself, so that nothing is fused."""
    vkml.set_eager(True)
    try:
        check_graph(*graph, device, vkml.float32, "eager")
    finally:
        vkml.set_eager(False)


SEEDS = range(16)


def outcome(seed: int, device: object) -> dict[str, np.ndarray]:
    """Results and gradients of one seeded graph, by name."""
    shapes, steps = seeded_graph(seed)
    arrays = leaf_values(np.random.default_rng(seed), shapes)
    leaves, results = forward_and_backward(arrays, steps, device, vkml.float32)
    found = {f"{seed}: result {i}": exact(result) for i, result in enumerate(results)}
    found |= {
        f"{seed}: gradient {i}": exact(leaf.grad)
        for i, leaf in enumerate(leaves)
        if leaf.grad is not None
    }
    return found


def write_outcomes(path: str, device: str) -> None:
    """For a process of its own: the outcomes of all seeds, as a file of NumPy's."""
    found: dict[str, np.ndarray] = {}
    for seed in SEEDS:
        found |= outcome(seed, vkml.device(device))
    np.savez(path, **found)  # type: ignore[arg-type]


def outcomes_elsewhere(path: Path, device: object, **environment: str) -> dict[str, np.ndarray]:
    """What a process with other switches computes."""
    tests = str(Path(__file__).parent)
    places = [tests, str(Path(vkml.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"import test_random_graphs as t; t.write_outcomes({str(path)!r}, {str(device)!r})",
        ],
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(places)},
        check=True,
        timeout=300,
    )
    with np.load(path) as file:
        return dict(file)


@pytest.fixture(scope="module")
def of_the_reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """What the reference backend computes."""
    path = tmp_path_factory.mktemp("graphs") / "reference.npz"
    return outcomes_elsewhere(path, vkml.cpu, VKML_REFERENCE="1")


def test_seeded_graphs_are_large(of_the_reference: dict[str, np.ndarray]) -> None:
    counts = [len(seeded_graph(seed)[1]) for seed in SEEDS]
    assert max(counts) > 40
    assert min(counts) >= 10
    kinds = {step[:2] for seed in SEEDS for step in seeded_graph(seed)[1]}
    assert len(kinds) == len(UNARY) + len(BINARY) + len(ALONG)
    assert sum("gradient" in name for name in of_the_reference) >= len(SEEDS)


@pytest.mark.parametrize("eager", [False, True], ids=["lazy", "eager"])
@pytest.mark.parametrize("seed", SEEDS)
def test_graphs_against_the_reference(
    seed: int, eager: bool, device: object, of_the_reference: dict[str, np.ndarray]
) -> None:
    vkml.set_eager(eager)
    try:
        found = outcome(seed, device)
    finally:
        vkml.set_eager(False)
    assert set(found) == {name for name in of_the_reference if name.startswith(f"{seed}:")}
    for name, array in found.items():
        assert_near(array, of_the_reference[name], 1e-5, name)


def test_fused_and_unfused_graphs(device: object, tmp_path: Path) -> None:
    unfused = outcomes_elsewhere(tmp_path / "unfused.npz", device, VKML_FUSE="0")
    for seed in SEEDS:
        for name, array in outcome(seed, device).items():
            assert_near(array, unfused[name], 1e-5, name)


@pytest.mark.parametrize("table", [UNARY, BINARY], ids=["unary", "binary"])
def test_the_tables_say_the_same(table: dict) -> None:
    a, b = np.linspace(-2, 2, 9), np.linspace(3, -1, 9)
    for name, (ours, theirs) in table.items():
        count = 1 if table is UNARY else 2
        arrays = [a, b][:count]
        tensors = [vkml.tensor(array, dtype=vkml.float64) for array in arrays]
        np.testing.assert_allclose(exact(ours(*tensors)), theirs(*arrays), rtol=1e-13, err_msg=name)
