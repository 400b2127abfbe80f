"""Attention in tiles: long sequences, halves, masks, what a step keeps, what it falls back to."""

import os

import numpy as np
import pytest

import vkml
from attention_cases import attention, operands
from checking import assert_close, exact, inputs
from vkml.nn import functional

# Units of the last place of each dtype that a result, of magnitude 1, may be off.
DTYPES = {vkml.float32: 2.0**-23, vkml.float16: 2.0**-10, vkml.bfloat16: 2.0**-7}


def gradients_of(arrays: list[np.ndarray], cotangent: np.ndarray, causal: bool) -> list[np.ndarray]:
    """The closed forms, in double precision, of one batch of unshared heads."""
    query, key, value = arrays
    scale = query.shape[-1] ** -0.5
    scores = query @ key.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    of_weights = cotangent @ value.swapaxes(-1, -2)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))
    return [
        of_scores @ key * scale,
        of_scores.swapaxes(-1, -2) @ query * scale,
        weights.swapaxes(-1, -2) @ cotangent,
    ]


def half_exact(array: np.ndarray, dtype: vkml.dtype) -> np.ndarray:
    """The nearest numbers of the dtype, in double precision."""
    return exact(vkml.tensor(array, device=vkml.cpu).to(dtype)).astype(np.float64)


LENGTHS_AND_WIDTHS = [
    ((70, 75, 64, 64), vkml.float32),
    ((70, 75, 64, 64), vkml.float16),
    ((70, 75, 64, 64), vkml.bfloat16),
    ((40, 131, 32, 96), vkml.float32),
    ((66, 40, 128, 40), vkml.float32),
    ((97, 97, 48, 48), vkml.float16),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("sizes", "dtype"), LENGTHS_AND_WIDTHS, ids=str)
def test_long_sequences(
    sizes: tuple[int, int, int, int], dtype: vkml.dtype, causal: bool, device: object
) -> None:
    """Several tiles on both sides, the last ones cut off."""
    arrays = [half_exact(x, dtype) for x in operands((1, 2), *sizes)]
    tensors = [
        vkml.tensor(x.astype(np.float32), device=device).to(dtype).requires_grad_() for x in arrays
    ]
    result = functional.scaled_dot_product_attention(*tensors, is_causal=causal)
    assert result.dtype == dtype
    expected = attention(*arrays, causal=causal)
    cotangent = half_exact(inputs(expected.shape, -1, 1, seed=7), dtype)
    result.backward(vkml.tensor(cotangent.astype(np.float32), device=device).to(dtype))
    units = 4 if dtype != vkml.float32 else 64
    pairs = zip(
        [result, *(t.grad for t in tensors)],
        [expected, *gradients_of(arrays, cotangent, causal)],
        strict=True,
    )
    for mine, wanted in pairs:
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(exact(mine), wanted, rtol=0, atol=units * DTYPES[dtype] * scale)


def test_shared_heads_of_long_sequences(device: object) -> None:
    query, key, value = operands((2, 6), 50, 60, 32, 32)
    key, value = key[:, :2], value[:, :2]
    tensors = [vkml.tensor(x, device=device, requires_grad=True) for x in (query, key, value)]
    result = functional.scaled_dot_product_attention(*tensors, is_causal=True, enable_gqa=True)
    wide = [x.astype(np.float64) for x in (query, key.repeat(3, 1), value.repeat(3, 1))]
    assert_close(result, attention(*wide, causal=True), 64)
    cotangent = inputs(result.shape, -1, 1, seed=3)
    result.backward(vkml.tensor(cotangent, device=device))
    expected = gradients_of(wide, cotangent.astype(np.float64), True)
    assert_close(tensors[0].grad, expected[0], 64)
    for tensor, each in zip(tensors[1:], expected[1:], strict=True):
        assert_close(tensor.grad, each.reshape(2, 2, 3, *each.shape[2:]).sum(2), 64)


def test_heads_as_projections_leave_them(device: object) -> None:
    """Views of (batch, length, heads * width), as a layer makes them."""
    joint = vkml.tensor(inputs((2, 70, 3 * 4 * 16), -1, 1), device=device)
    heads = [x.reshape(2, 70, 4, 16).transpose(1, 2) for x in joint.chunk(3, -1)]
    arrays = [x.numpy().astype(np.float64) for x in heads]
    assert_close(functional.scaled_dot_product_attention(*heads), attention(*arrays), 32)


@pytest.mark.parametrize("shape", [(70, 80), (1, 80), (2, 1, 70, 80), (3, 70, 1)])
def test_masks_broadcast(shape: tuple[int, ...], device: object) -> None:
    arrays = operands((2, 3), 70, 80, 16, 16)
    wide = [x.astype(np.float64) for x in arrays]
    tensors = [vkml.tensor(x, device=device) for x in arrays]
    visible = inputs(shape, -1, 1) > -0.3
    added = inputs(shape, -2, 2)
    for mask in (visible, added):
        mine = functional.scaled_dot_product_attention(*tensors, vkml.tensor(mask, device=device))
        assert_close(mine, attention(*wide, np.broadcast_to(mask, (2, 3, 70, 80))), 64)


def test_a_mask_that_learns(device: object) -> None:
    """Its gradient is that of the scores, summed over what it broadcasts to."""
    arrays = operands((2, 3), 5, 6, 4, 4)
    bias = vkml.tensor(inputs((3, 5, 6), -1, 1), device=device, requires_grad=True)
    tensors = [vkml.tensor(x, device=device) for x in arrays]
    functional.scaled_dot_product_attention(*tensors, bias).sum().backward()
    step = 1e-4
    wide = [x.astype(np.float64) for x in arrays]
    start = exact(bias).astype(np.float64)
    moved = start.copy()
    moved[1, 2, 3] += step
    slope = (attention(*wide, moved).sum() - attention(*wide, start).sum()) / step
    assert abs(bias.grad.numpy()[1, 2, 3] - slope) < 1e-3


def test_special_values(device: object) -> None:
    """As softmax has them: what is not finite reaches the queries that see it, and no others."""
    arrays = operands((1,), 4, 5, 8, 8)
    visible = np.ones((4, 5), dtype=bool)
    visible[1, 2] = False
    arrays[1][0, 2, 0] = np.nan
    tensors = [vkml.tensor(x, device=device) for x in arrays]
    result = functional.scaled_dot_product_attention(
        *tensors, vkml.tensor(visible, device=device)
    ).numpy()
    assert np.isnan(result[0, [0, 2, 3]]).all()
    assert np.isfinite(result[0, 1]).all()
    arrays[1][0, 2, 0] = 0
    arrays[2][0, 4, 3] = np.inf
    tensors = [vkml.tensor(x, device=device) for x in arrays]
    result = functional.scaled_dot_product_attention(*tensors).numpy()
    assert np.isinf(result[0, :, 3]).all()
    assert np.isfinite(np.delete(result, 3, -1)).all()


def test_queries_that_see_nothing(device: object) -> None:
    """0, without gradients; NaN where no mask says so."""
    arrays = operands((2,), 70, 66, 8, 8)
    mask = inputs((70, 66), -1, 1)
    mask[5] = mask[69] = -np.inf
    tensors = [vkml.tensor(x, device=device, requires_grad=True) for x in arrays]
    result = functional.scaled_dot_product_attention(*tensors, vkml.tensor(mask, device=device))
    assert not result.numpy()[:, [5, 69]].any()
    result.sum().backward()
    assert all(np.isfinite(t.grad.numpy()).all() for t in tensors)
    assert not tensors[0].grad.numpy()[:, [5, 69]].any()
    opposite = vkml.tensor([[[np.inf, 0.0]]], device=device)
    keys = vkml.tensor([[[-1.0, 1.0], [-2.0, 1.0]]], device=device)
    assert np.isnan(functional.scaled_dot_product_attention(opposite, keys, keys).numpy()).all()


def whole_step(tensors: list[vkml.Tensor]) -> vkml.Tensor:
    """A number that needs the result and every gradient, not computed yet."""
    result = functional.scaled_dot_product_attention(*tensors)
    gradients = vkml.grad(result.sum(), tensors, create_graph=True)
    return result.sum() + sum(g.sum() for g in gradients)


def test_no_scores_are_held(device: object) -> None:
    """A step takes far less memory than one matrix of scores for each head."""
    length, heads = 1024, 8
    arrays = operands((1, heads), length, length, 16, 16)
    total = whole_step([vkml.tensor(x, device=device, requires_grad=True) for x in arrays])
    first_line = vkml.explain(total).splitlines()[1]
    arena = int(first_line.split("arena ")[1].split()[0])
    assert 0 < arena < heads * length * length * 4 // 4


@pytest.mark.skipif(
    os.environ.get("VKML_MIN_SPEC") == "1", reason="one kernel has no room for two results"
)
def test_forward_and_backward_are_three_kernels(device: object) -> None:
    """The log-sum-exp comes with the result, the gradient of values with that of keys."""
    arrays = operands((2,), 40, 40, 16, 16)
    plan = vkml.explain(
        whole_step([vkml.tensor(x, device=device, requires_grad=True) for x in arrays])
    )
    kernels = [line.split()[2] for line in plan.splitlines() if line.startswith("kernel")]
    assert sorted(name for name in kernels if "attention" in name) == [
        "attention_key_gradient",
        "attention_query_gradient",
        "scaled_dot_product_attention",
    ]
    assert plan.count("core store") == 2


def test_backward_after_the_result_was_read(device: object) -> None:
    """A later pass reads what the first kept, and gives the same bits as one with it."""
    arrays = operands((2,), 100, 90, 16, 16)

    def gradients(reads_first: bool) -> list[np.ndarray]:
        tensors = [vkml.tensor(x, device=device, requires_grad=True) for x in arrays]
        result = functional.scaled_dot_product_attention(*tensors)
        total = (result * result).sum()
        if reads_first:
            total.item()
        vkml.clear_coverage()
        vkml.set_coverage(True)
        try:
            total.backward()
            found = [t.grad.numpy() for t in tensors]
            ran = vkml.coverage()[str(device)]
        finally:
            vkml.set_coverage(False)
        expected = 0 if reads_first else 1
        assert ran.get("scaled_dot_product_attention", 0) == expected
        assert ran.get("attention_log_sum_exp", 0) == expected
        return found

    for one, other in zip(gradients(False), gradients(True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_run_gives_the_same_bits(device: object) -> None:
    arrays = operands((2, 3), 70, 75, 32, 32)

    def run() -> list[np.ndarray]:
        tensors = [vkml.tensor(x, device=device, requires_grad=True) for x in arrays]
        result = functional.scaled_dot_product_attention(*tensors, is_causal=True)
        result.sum().backward()
        return [result.numpy(), *(t.grad.numpy() for t in tensors)]

    first = run()
    for _ in range(2):
        for one, other in zip(first, run(), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shared", [3, 1])
def test_second_derivatives(shared: int, device: object) -> None:
    """The gradients of the gradients agree with those of the expression in double precision."""
    query, key, value = operands((3,), 4, 5, 4, 4)
    arrays = [query, key[:shared], value[:shared]]
    visible = inputs((4, 5), -1, 1) > -0.6
    weights = [inputs(x.shape, 0.5, 1.5, seed=i) for i, x in enumerate([query, *arrays])]

    def second(dtype: vkml.dtype) -> list[np.ndarray]:
        tensors = [vkml.tensor(x, device=device).to(dtype).requires_grad_() for x in arrays]
        fixed = [vkml.tensor(x, device=device).to(dtype) for x in weights]
        result = functional.scaled_dot_product_attention(
            *tensors, vkml.tensor(visible, device=device), enable_gqa=True
        )
        first = vkml.grad((result * result * fixed[0]).sum(), tensors, create_graph=True)
        along = sum((g * w).sum() for g, w in zip(first, fixed[1:], strict=True))
        return [exact(g) for g in vkml.grad(along, tensors)]

    for mine, wanted in zip(second(vkml.float32), second(vkml.float64), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


def test_forward_mode_and_batches(device: object) -> None:
    arrays = operands((3,), 6, 7, 4, 4)
    tensors = [vkml.tensor(x, device=device) for x in arrays]
    directions = [vkml.tensor(inputs(x.shape, -1, 1, seed=5), device=device) for x in arrays]
    _, tangent = vkml.func.jvp(
        functional.scaled_dot_product_attention, tuple(tensors), tuple(directions)
    )
    step = 1e-6
    wide = [x.astype(np.float64) for x in arrays]
    moved = [
        [
            x + sign * step * d.numpy().astype(np.float64)
            for x, d in zip(wide, directions, strict=True)
        ]
        for sign in (1, -1)
    ]
    slope = (attention(*moved[0]) - attention(*moved[1])) / (2 * step)
    assert_close(tangent, slope, 64)
    batched = vkml.vmap(functional.scaled_dot_product_attention)(*tensors)
    assert_close(batched, attention(*wide), 32)
    one_key = vkml.vmap(functional.scaled_dot_product_attention, in_dims=(0, None, None))(
        tensors[0], tensors[1][0], tensors[2][0]
    )
    assert_close(
        one_key, attention(wide[0], wide[1][:1].repeat(3, 0), wide[2][:1].repeat(3, 0)), 32
    )


def test_wide_heads_and_dropout_fall_back(device: object) -> None:
    wide_heads = [vkml.tensor(x, device=device) for x in operands((2,), 5, 6, 130, 4)]
    result = functional.scaled_dot_product_attention(*wide_heads)
    assert_close(result, attention(*(t.numpy().astype(np.float64) for t in wide_heads)), 32)
    ones = vkml.ones(2, 400, 4, device=device)
    dropped = functional.scaled_dot_product_attention(ones, ones, ones, dropout_p=0.5).numpy()
    assert abs(dropped.mean() - 1) < 0.05
    assert dropped.std() > 0


def test_mixed_precision(device: object) -> None:
    """A product, to autocast: its operands are halves, its gradients what the operands were."""
    tensors = [
        vkml.tensor(x, device=device, requires_grad=True) for x in operands((2,), 5, 6, 8, 8)
    ]
    with vkml.autocast(dtype=vkml.bfloat16):
        result = functional.scaled_dot_product_attention(*tensors)
    assert result.dtype == vkml.bfloat16
    result.sum().backward()
    assert all(t.grad.dtype == vkml.float32 for t in tensors)


def test_errors(device: object) -> None:
    q = vkml.zeros(2, 3, 4, device=device)
    with pytest.raises(vkml.ShapeError, match=r"differ: query \(2, 3, 4\)"):
        functional.scaled_dot_product_attention(q, q[..., :2], q)
    with pytest.raises(vkml.DTypeError, match="takes floats, not int32"):
        functional.scaled_dot_product_attention(q.to(vkml.int32), q, q)
    with pytest.raises(vkml.DTypeError, match="a mask is bool"):
        functional.scaled_dot_product_attention(q, q, q, vkml.zeros(3, 3, dtype=vkml.int32))
    three = vkml.zeros(3, 3, 4, device=device)
    with pytest.raises(vkml.ShapeError, match="do not share 2 heads"):
        functional.scaled_dot_product_attention(three, q, q, enable_gqa=True)
    with pytest.raises(vkml.ShapeError, match="batches do not broadcast"):
        functional.scaled_dot_product_attention(q, vkml.zeros(3, 3, 4, device=device), q)
    empty = functional.scaled_dot_product_attention(q[:, :0], q, q)
    assert empty.shape == (2, 0, 4)
