"""Idioms of PyTorch programs: the same calls, run with both, give the same."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkml
from torch_agreement import torch


def plain(value: Any) -> Any:
    """Tensors as lists, sizes as tuples."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


SAME: dict[str, Callable[[Any], Any]] = {
    "a range as an index": lambda m: m.arange(6).reshape(3, 2)[range(2)],
    "a range beside a slice": lambda m: m.arange(6).reshape(3, 2)[:, range(1, 2)],
    "a number in a matrix": lambda m: [v in m.tensor([[1.0, 2.0]]) for v in (1.0, 3, True)],
    "a tensor in a tensor": lambda m: m.tensor(3.0) in m.tensor([3.0, 4.0]),
    "covariance of one row": lambda m: m.cov(m.tensor([[1.0, 2.0, 6.0]])),
    "correlation of one row": lambda m: m.corrcoef(m.tensor([[1.0, 2.0, 4.0]])),
    "negative indices to fill": lambda m: m.zeros(3, 2).index_fill(0, m.tensor([-1, 0]), 5.0),
    "pseudo-inverses of nothing": lambda m: [
        tuple(m.linalg.pinv(m.zeros(*shape)).shape) for shape in ((0, 4), (4, 0), (2, 0, 3))
    ],
    "ranks of nothing": lambda m: [
        m.linalg.matrix_rank(m.zeros(*shape)) for shape in ((0, 4), (4, 0), (2, 0, 3))
    ],
    "least squares of nothing": lambda m: [
        m.linalg.lstsq(m.zeros(rows, columns), m.zeros(rows, 2)).solution.shape
        for rows, columns in ((0, 4), (4, 0), (0, 0))
    ],
    "the least norm of no vectors": lambda m: m.linalg.vector_norm(
        m.zeros(0, 3), float("-inf"), dim=-1
    ),
    "a histogram of nothing": lambda m: list(m.histogram(m.zeros(0), bins=4)),
    "a type": lambda m: m.tensor([0.0, 2.0]).type(m.bool),
    "the default dtype": lambda m: str(m.get_default_dtype()).split(".")[1],
    "whether it is on CUDA": lambda m: m.ones(2).is_cuda,
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_as_pytorch(name: str) -> None:
    assert plain(SAME[name](vkml)) == plain(SAME[name](torch))


def kept(module: Any, keeps_first: bool) -> Any:
    x = module.ones(2, requires_grad=True)
    y = x * 2
    if keeps_first:
        y.retain_grad()
    y.register_hook(lambda gradient: gradient * 3)
    if not keeps_first:
        y.retain_grad()
    y.register_hook(lambda gradient: gradient + 1)
    (y * 5).sum().backward()
    return plain([y.grad, x.grad])


@pytest.mark.parametrize("keeps_first", [True, False])
def test_a_kept_gradient_is_what_hooks_leave(keeps_first: bool) -> None:
    assert kept(vkml, keeps_first) == kept(torch, keeps_first)


def seen_by_backward(module: Any, materializes: bool) -> list[Any]:
    seen = []

    class Two(module.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(materializes)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            seen.append([None if each is None else each.tolist() for each in gradients])
            return next(each for each in gradients if each is not None)

    x = module.ones(2, requires_grad=True)
    for used in (0, 1):
        Two.apply(x)[used].sum().backward()
    first, second = Two.apply(x)
    (first + second).sum().backward()
    return [*seen, x.grad.tolist()]


@pytest.mark.parametrize("materializes", [True, False])
def test_results_without_a_gradient(materializes: bool) -> None:
    assert seen_by_backward(vkml, materializes) == seen_by_backward(torch, materializes)


@pytest.mark.parametrize("name", ["fmax", "fmin", "maximum", "minimum"])
def test_gradients_at_ties(name: str, device: object) -> None:
    def gradients(module: Any, **options: Any) -> list[Any]:
        values = [[1.0, 2.0, 0.0, 3.0], [1.0, 1.0, -0.0, 4.0]]
        pair = [module.tensor(each, requires_grad=True, **options) for each in values]
        getattr(module, name)(*pair).sum().backward()
        return [each.grad.tolist() for each in pair]

    assert gradients(vkml, device=device) == gradients(torch)


def test_saving_to_an_object_and_loading_from_it() -> None:
    file = io.BytesIO()
    state = {"weight": vkml.tensor([[1.0, 2.0]]), "step": 3}
    vkml.save(state, file)
    file.seek(0)
    loaded = vkml.load(file)
    assert loaded["step"] == 3
    assert loaded["weight"].tolist() == [[1, 2]]
    with pytest.raises(vkml.FileError, match="not a valid safetensors file"):
        vkml.load(io.BytesIO(b"nothing"))


def test_cosines_of_very_large_vectors(device: object) -> None:
    def cosine(*values: list[float]) -> Any:
        return vkml.nn.functional.cosine_similarity(
            *(vkml.tensor([each], device=device, dtype=vkml.float32) for each in values)
        ).item()

    assert cosine([1e20, 1e30, 0], [2e25, 2e35, 0]) == pytest.approx(1, rel=1e-6)
    assert cosine([3e38, 0], [3e38, 3e38]) == pytest.approx(0.5**0.5, rel=1e-6)
    assert cosine([1e-12, 0], [1, 0]) == pytest.approx(1e-4, rel=1e-5)  # eps bounds the norm
    assert np.isnan(cosine([np.inf, 0], [1, 0]))
    x = vkml.tensor([[1e25, 2e25]], device=device, requires_grad=True)
    y = vkml.tensor([[2.0, 1.0]], device=device)
    vkml.nn.functional.cosine_similarity(x, y).sum().backward()
    # (y - cos * x / |x|) / (|x| |y|), of [1, 2] and [2, 1]: [0.36, -0.18] / sqrt(5)... times 1e-25
    expected = (np.array([2, 1]) / 5**0.5 - 0.8 * np.array([1, 2]) / 5**0.5) / 5**0.5 * 1e-25
    np.testing.assert_allclose(x.grad.numpy()[0], expected, rtol=1e-5)


def test_errors_of_index_reduce_name_it() -> None:
    x, ones = vkml.zeros(3, 2), vkml.ones(1, 2)
    with pytest.raises(vkml.IndexError, match=r"\[index_reduce\] index 7"):
        x.index_reduce(0, vkml.tensor([7]), ones, "prod").realize()
    with pytest.raises(vkml.ShapeError, match=r"\[index_reduce\] needs a vector of 1 indices"):
        x.index_reduce(0, vkml.tensor([0, 1]), ones, "prod")
    with pytest.raises(vkml.ArgumentError, match=r"\[index_reduce\] reduce is 'most'"):
        x.index_reduce(0, vkml.tensor([0]), ones, "most")
    with pytest.raises(vkml.IndexError, match=r"\[index_fill\] index -\d"):
        x.index_fill(0, vkml.tensor([-4]), 1.0).realize()
    with pytest.raises(vkml.DTypeError, match=r"\[in\] looks for 'a'"):
        "a" in x  # noqa: B015


LAYERS = [
    *("Conv1d(1, 2, 3, padding='same')", "Conv2d(2, 4, (3, 5), stride=2, groups=2, bias=False)"),
    *("ConvTranspose2d(1, 2, 3, stride=2, output_padding=1)", "Fold((4, 4), 2, stride=(1, 2))"),
    *("Unfold((2, 3), padding=1)", "AvgPool1d(2)", "AvgPool2d((3, 2), 2, 1, True)"),
    *("MaxPool1d(3)", "MaxPool2d((3, 2), return_indices=True)", "AdaptiveMaxPool2d(2)"),
    *("AdaptiveAvgPool1d(2)", "LPPool2d(2, 3)", "MaxUnpool1d(2)", "MaxUnpool2d(2, (1, 2))"),
    *("ConstantPad2d(1, 2.0)", "ZeroPad2d(1)", "Bilinear(1, 2, 3)", "RNNCell(2, 3)"),
    *("GRUCell(2, 3, bias=False)", "LSTM(2, 3, num_layers=2)", "Linear(2, 3)", "Embedding(3, 4)"),
]


@pytest.mark.parametrize("text", LAYERS)
def test_layers_are_shown_as_pytorch_shows_them(text: str) -> None:
    expected = repr(eval(text, vars(torch.nn).copy()))
    assert repr(eval(text, vars(vkml.nn).copy())) == expected
