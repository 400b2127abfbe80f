"""Inputs that broke comparable frameworks, each with its right value, on every device."""

import concurrent.futures
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vkml
from checking import assert_ulps, exact

MUCH = pytest.mark.skipif(
    os.environ.get("VKML_REFERENCE") == "1",
    reason="the reference holds every element, in double precision",
)


def floats(values: object, device: object, **options: object) -> object:
    return vkml.tensor(values, dtype=vkml.float32, device=device, **options)


# Lazy graph


def resident_bytes() -> int:
    """What of this process is in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


MOST_NODES = 20_000  # of a chain before it is computed, with what the last ones still hold
MOST_GROWTH = 32 << 20  # of a process that has computed as much before


def test_a_long_unread_chain_is_dropped(device: object) -> None:
    nodes, resident = vkml._vkml._live_nodes(), 0
    for length in (50_000, 300_000):
        x = floats([1.0], device)
        for _ in range(length):
            x = 2 * x
        assert vkml._vkml._live_nodes() - nodes < MOST_NODES
        resident, before = resident_bytes(), resident
    assert resident - before < MOST_GROWTH
    del x
    gc.collect()
    assert vkml._vkml._live_nodes() <= nodes
    assert (floats([1.0], device) + 1).item() == 2


def test_a_recurrence_that_is_never_read(device: object) -> None:
    t, u = vkml.zeros(4, device=device), vkml.zeros(4, device=device)
    nodes, resident = vkml._vkml._live_nodes(), 0
    for length in (56_000, 200_000):
        for _ in range(length):
            t = 0.1 * t + 0.9 * u
        assert vkml._vkml._live_nodes() - nodes < MOST_NODES
        resident, before = resident_bytes(), resident
    assert resident - before < MOST_GROWTH
    assert t.tolist() == [0, 0, 0, 0]


def test_a_recurrence_that_is_read_stays_flat(device: object) -> None:
    t, u = vkml.zeros(1000, device=device), vkml.ones(1000, device=device)
    held = []
    nodes, resident = vkml._vkml._live_nodes(), 0
    for step in range(6_000):
        t = 0.1 * t + 0.9 * u
        assert t[0].item() == pytest.approx(1 - 0.1 ** (step + 1), rel=1e-5)
        held.append(vkml.allocated_bytes(device))
        if step == 1_000:
            resident = resident_bytes()
    assert max(held[20:]) == min(held[20:])
    assert vkml._vkml._live_nodes() - nodes < 20
    assert resident_bytes() - resident < MOST_GROWTH


def test_adding_the_same_element_a_hundred_times(device: object) -> None:
    x, y = floats([1.5], device), floats([0.25, 9], device)
    for _ in range(100):
        x += y[0]
    assert x.tolist() == [26.5]


@pytest.mark.parametrize("first", ["r", "x"])
def test_a_value_recorded_before_an_assignment_keeps_the_old(first: str, device: object) -> None:
    x = floats([1, 2], device)
    r = x + 10
    x[:1] = 9
    read = {}
    for name in (first, "x" if first == "r" else "r"):
        read[name] = {"r": r, "x": x}[name].tolist()
    assert read == {"r": [11, 12], "x": [9, 2]}


def test_the_order_of_reading_draws_changes_neither(device: object) -> None:
    vkml.manual_seed(5)
    first, second = vkml.rand(8, device=device), vkml.rand(8, device=device)
    expected = first.tolist(), second.tolist()
    vkml.manual_seed(5)
    first, second = vkml.rand(8, device=device), vkml.rand(8, device=device)
    reversed_reading = second.tolist(), first.tolist()
    assert reversed_reading == (expected[1], expected[0])
    assert expected[0] != expected[1]


def test_doubling_sixty_times_is_linear(device: object) -> None:
    x = vkml.tensor([1], dtype=vkml.int64, device=device)
    for _ in range(60):
        x = x + x
    assert x.item() == 2**60


# Views


def test_adding_to_a_reversed_view(device: object) -> None:
    x = vkml.zeros(6, device=device)
    x[::-1] += 2 * vkml.arange(6, device=device)[::-1]
    assert x.tolist() == [0, 2, 4, 6, 8, 10]


def test_changing_a_column_of_bools(device: object) -> None:
    x = vkml.zeros(10, 2, dtype=vkml.bool, device=device)
    x[:, 0] ^= True
    assert exact(x[:, 0]).all()
    assert not exact(x[:, 1]).any()


@pytest.mark.parametrize("shape", [(0,), (5,), (3, 4)])
def test_nonzero_of_all_false(shape: tuple[int, ...], device: object) -> None:
    x = vkml.zeros(shape, dtype=vkml.bool, device=device)
    assert vkml.nonzero(x).shape == (0, len(shape))
    assert [indices.shape for indices in vkml.nonzero(x, as_tuple=True)] == [(0,)] * len(shape)
    assert x[x].shape == (0,)


def test_softmax_of_a_strided_view(device: object) -> None:
    x = vkml.randn(4, 4, device=device)[:, :2]
    np.testing.assert_allclose(exact(vkml.softmax(x, 1)).sum(1), 1, rtol=1e-6)


def test_a_product_beside_a_sum(device: object) -> None:
    a = vkml.ones(2, 2, device=device)
    left, right = vkml.zeros(2, 0, device=device), vkml.zeros(0, 2, device=device)
    assert (2 * a + left @ right).tolist() == [[2, 2], [2, 2]]


def test_products_of_broadcast_and_transposed_operands(device: object) -> None:
    wide = vkml.ones(1, 32, 32, device=device).broadcast_to((32, 32, 32))
    product = exact(wide @ vkml.ones(32, 32, 32, device=device))
    assert (product == 32).all()
    x = vkml.randn(2, 5, 3, 4, device=device)
    turned = x.transpose(1, 2)
    y = vkml.randn(4, 6, device=device)
    expected = exact(x).swapaxes(1, 2) @ exact(y)
    np.testing.assert_allclose(exact(turned @ y), expected, atol=1e-5)
    np.testing.assert_array_equal(exact(turned @ y), exact(turned.contiguous() @ y))


# Autograd


def test_the_branch_not_taken_leaks_nothing(device: object) -> None:
    x = floats([-1, -4], device, requires_grad=True)
    vkml.where(x > 0, vkml.sqrt(x), x).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_powers_of_zero(device: object) -> None:
    x, y = (floats([3.0], device, requires_grad=True) for _ in range(2))
    ((x - y) ** 2).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([0], [0])
    a, b = (floats([1.0], device, requires_grad=True) for _ in range(2))
    vkml.pow(a - b, b).backward(floats([123], device))
    assert (a.grad.tolist(), b.grad.tolist()) == ([123], [-123])


@pytest.mark.parametrize(("values", "expected"), [([0, 2, 3], [6, 0, 0]), ([0, 0, 3], [0, 0, 0])])
def test_products_of_zeros(values: list, expected: list, device: object) -> None:
    x = floats(values, device, requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == expected


def test_gradients_of_repeated_indices_add(device: object) -> None:
    x = floats([1.0], device, requires_grad=True)
    picked = vkml.gather(x, 0, vkml.tensor([0, 0], device=device))
    picked.backward(floats([0.2, 0.3], device))
    assert_ulps(x.grad, [0.5], 1)


def test_gradients_of_copies_and_of_the_value_add(device: object) -> None:
    x = floats(np.ones((3, 3)), device, requires_grad=True)
    wide = x.unsqueeze(1).unsqueeze(3).broadcast_to((3, 2, 3, 2)).reshape(6, 6)
    (wide.sum() + x.sum()).backward()
    assert x.grad.tolist() == [[5] * 3] * 3


def test_smooth_activations_at_zero(device: object) -> None:
    for function in (vkml.softplus, vkml.log_sigmoid):
        x = floats([0.0], device, requires_grad=True)
        function(x).backward(floats([1], device))
        assert x.grad.tolist() == [0.5]


def test_a_gradient_never_reads_the_new_value(device: object) -> None:
    x = floats([[1, 2]], device)
    w = floats([[3], [4]], device, requires_grad=True)
    y = x @ w
    x.assign_(x + 1)
    x.realize()
    y.backward(floats([[1]], device))
    assert w.grad.tolist() == [[1], [2]]


@pytest.mark.parametrize("index", [3, -1, 2**31 - 1])
def test_an_index_past_the_end_writes_nothing(index: int, device: object) -> None:
    x = floats([1, 2, 3], device)
    bad = vkml.tensor([index], dtype=vkml.int64, device=device)
    message = rf"\[gather\] index {index} is out of bounds for an axis of extent 3"
    with pytest.raises(vkml.IndexError, match=message):
        vkml.gather(x, 0, bad).tolist()
    assert x.tolist() == [1, 2, 3]
    assert (x + 1).tolist() == [2, 3, 4]


def observe(*tensors: object) -> None:
    """Computes tensors as one graph and reads them."""
    vkml.realize(tensors)
    for tensor in tensors:
        tensor.tolist()


@pytest.mark.parametrize("in_place", [True, False])
def test_a_bad_index_leaves_assigned_tensors_as_they_were(in_place: bool, device: object) -> None:
    bad = vkml.tensor([7], dtype=vkml.int64, device=device)
    x = floats([1, 2, 3], device)
    other = floats([5, 6], device)
    reader = None if in_place else x + 10
    x.assign_(x + vkml.gather(x, 0, bad))
    other.assign_(other * 2 + x[:2])
    with pytest.raises(vkml.IndexError, match=r"\[gather\] index 7 .* extent 3"):
        observe(x, other)
    assert x.tolist() == [1, 2, 3]
    assert other.tolist() == [5, 6]
    assert reader is None or reader.tolist() == [11, 12, 13]
    y = floats([1, 2, 3], device)
    y.assign_(vkml.scatter_add(y, 0, bad, floats([100], device)))
    with pytest.raises(vkml.IndexError, match=r"scatter_add"):
        observe(y)
    assert y.tolist() == [1, 2, 3]


def test_a_bad_index_in_a_training_step_leaves_the_parameters(device: object) -> None:
    w = floats(np.ones((4, 2)), device, requires_grad=True)
    optimizer = vkml.optim.SGD([w], lr=0.5)

    def step(indices: list[int]) -> None:
        optimizer.zero_grad()
        loss = vkml.embedding(vkml.tensor(indices, device=device), w).sum()
        loss.backward()
        optimizer.step()
        loss.item()

    step([0, 1])
    before = w.tolist()
    assert before == [[0.5, 0.5], [0.5, 0.5], [1, 1], [1, 1]]
    with pytest.raises(vkml.IndexError, match=r"index 9 .* extent 4"):
        step([0, 9])
    assert w.tolist() == before
    step([2, 3])
    assert w.tolist() == [[0.5, 0.5]] * 4


def test_gradients_have_the_layout_of_the_weight(device: object) -> None:
    w = floats(np.arange(6).reshape(2, 3), device, requires_grad=True)
    x = floats(np.arange(24).reshape(2, 4, 3), device)
    y = x @ w.transpose(0, 1).broadcast_to((2, 3, 2))
    upstream = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
    y.backward(floats(upstream, device))
    assert w.grad.shape == (2, 3)
    np.testing.assert_allclose(exact(w.grad), np.einsum("bio,bik->ok", upstream, exact(x)))


# Numerics


def test_logsumexp(device: object) -> None:
    assert vkml.logsumexp(floats([np.inf, 2, 3], device), 0).item() == np.inf
    assert vkml.logsumexp(floats([4, 5, 6], device), 0).item() == pytest.approx(
        6.40760596, rel=1e-6
    )


def test_halves_do_not_overflow_on_the_way(device: object) -> None:
    signs = np.where(np.arange(64) % 2, 1, -1).reshape(1, 8, 8) * 512.0
    x = vkml.tensor(signs, dtype=vkml.float16, device=device)
    np.testing.assert_allclose(exact(vkml.normalize(x, (1, 2))), signs / 512, rtol=1e-3)
    ones = vkml.ones(256, 256, dtype=vkml.float16, device=device)
    assert ones.mean().item() == 1


def test_nan_wins_extremes(device: object) -> None:
    x = floats([3, np.nan, 1, 5], device)
    assert vkml.argmax(x).item() == 1
    assert np.isnan(vkml.max(x).item())


def test_extremes_of_integers(device: object) -> None:
    x = ~vkml.tensor([2, 2], dtype=vkml.int32, device=device)
    assert vkml.argmax(x).item() == 0
    least = vkml.tensor([5, -(2**31), 7], dtype=vkml.int32, device=device)
    assert vkml.argmin(least).item() == 1


def test_numbers_without_an_integer(device: object) -> None:
    """Floats truncate and saturate; NaN gives 0."""
    x = floats([np.nan, np.inf, -np.inf, 1e30, -1.9], device)
    assert x.to(vkml.int32).tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -1]
    assert x.to(vkml.uint8).tolist() == [0, 255, 0, 255, 0]
    assert floats([0.5], device).to(vkml.bool).tolist() == [True]


@MUCH
def test_a_long_sum_is_exact(device: object) -> None:
    """Past 2^24 = 1 + 1 + ..., a sum in float32 stays where it is."""
    count = 2**25
    for ones in (
        vkml.ones(count, device=device).contiguous().realize(),  # 128 MiB
        vkml.ones(2, count, dtype=vkml.float16, device=device),  # read over and over
        (vkml.arange(count, device=device) >= 0).to(vkml.float32),  # made as it is added
    ):
        total, mean = ones.sum(-1, dtype=vkml.float32), ones.mean(-1)
        assert set(np.ravel(total.tolist())) == {count}
        assert set(np.ravel(mean.tolist())) == {1}
    columns = vkml.ones(count, 2, dtype=vkml.float16, device=device).contiguous().realize()
    assert columns.sum(0, dtype=vkml.float32).tolist() == [count] * 2
    thousand = vkml.ones(1000, device=device)
    assert thousand.sum().item() == 1000


@pytest.mark.parametrize("shape", [(2**20,), (2, 2**14), (2**14, 9)])
def test_a_long_running_sum_keeps_its_digits(shape: tuple[int, ...], device: object) -> None:
    """Added up plainly, a million tenths are off by 2,000 units of the last place."""
    x = vkml.full(shape, 0.1, device=device)
    expected = np.cumsum(np.full(shape, np.float32(0.1), dtype=np.float64), axis=0)
    np.testing.assert_allclose(x.cumsum(0).numpy(), expected, rtol=2**-23)
    if len(shape) == 1:
        x[1000] = np.inf
        sums = x.cumsum(0).numpy()
        assert np.isfinite(sums[:1000]).all()
        assert np.isposinf(sums[1000:]).all()


def test_integer_division(device: object) -> None:
    a = vkml.tensor([110, -7, 1], device=device)
    b = vkml.tensor([55, 2, 2], device=device)
    assert (a // b).tolist() == [2, -4, 0]
    assert (a % b).tolist() == [0, 1, 1]
    assert (a / b).tolist() == [2, -3.5, 0.5]


# Convolution, pooling, layers


def test_the_input_gradient_of_a_grouped_convolution(device: object) -> None:
    x = floats(np.zeros((1, 2, 1, 4)), device, requires_grad=True)
    w = floats(np.array([[1, 2], [3, 4]]).reshape(2, 1, 1, 2), device)
    y = vkml.conv2d(x, w, stride=(1, 2), groups=2)
    y.backward(vkml.ones_like(y))
    assert exact(x.grad).reshape(2, 4).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]


@pytest.mark.parametrize("dtype", [vkml.float32, vkml.float64], ids=str)
@pytest.mark.parametrize(
    ("size", "stride", "padding"), [(3, 1, 1), (3, 3, 3), (1, 1, 1), (5, 2, 2), (9, 1, 2)]
)
def test_padding_times_infinity_is_nan(
    size: int, stride: int, padding: int, dtype: object, device: object
) -> None:
    """Padding is zeros like others, and 0 * inf is NaN, whatever computes the convolution."""
    image = np.arange(1.0, 1 + size * size).reshape(size, size)
    padded = np.pad(image, padding)
    places = range(0, size + 2 * padding - 2, stride)
    for weight in (np.full((3, 3), np.inf), np.array([[np.inf, 1, 1], [1, 1, 1], [1, 1, np.nan]])):
        with np.errstate(invalid="ignore"):
            expected = [
                [(padded[i : i + 3, j : j + 3] * weight).sum() for j in places] for i in places
            ]
        x = vkml.tensor(image[None, None], dtype=dtype, device=device)
        w = vkml.tensor(weight[None, None], dtype=dtype, device=device)
        found = vkml.conv2d(x, w, stride=stride, padding=padding)
        np.testing.assert_array_equal(exact(found)[0, 0], expected)
    # The gradient of the weight multiplies padding with the gradient that arrives.
    w = vkml.ones(1, 1, 3, 3, dtype=dtype, device=device, requires_grad=True)
    y = vkml.conv2d(x, w, stride=stride, padding=padding)
    y.backward(vkml.full_like(y, float("inf")))
    with np.errstate(invalid="ignore"):
        tiles = sum(padded[i : i + 3, j : j + 3] * np.inf for i in places for j in places)
    np.testing.assert_array_equal(exact(w.grad)[0, 0], tiles)


def test_a_convolution_padded_past_its_kernel(device: object) -> None:
    x = floats(np.zeros((1, 1, 11, 14)), device, requires_grad=True)
    y = vkml.conv2d(x, vkml.ones(1, 1, 3, 3, device=device), padding=4)
    assert y.shape == (1, 1, 17, 20)
    y.backward(vkml.ones_like(y))
    assert (exact(x.grad) == 9).all()


def test_padding_never_wins_a_maximum(device: object) -> None:
    x = vkml.full((1, 1, 3, 3), -5.0, device=device)
    assert (exact(vkml.max_pool2d(x, 3, stride=1, padding=1)) == -5).all()


def test_running_variance_is_unbiased(device: object) -> None:
    layer = vkml.nn.BatchNorm2d(1, momentum=0.1).to(device)
    layer(floats(np.array([1, 2, 3, 4]).reshape(4, 1, 1, 1), device))
    assert layer.running_var.item() == pytest.approx(1.0667, abs=1e-4)


def test_cross_entropy_without_labels(device: object) -> None:
    """The mean over no rows is NaN, as in PyTorch; the sum is 0 and the gradient too."""
    logits = floats(np.ones((2, 3)), device, requires_grad=True)
    ignored = vkml.tensor([-100, -100], device=device)
    assert np.isnan(vkml.cross_entropy(logits, ignored).item())
    total = vkml.cross_entropy(logits, ignored, reduction="sum")
    assert total.item() == 0
    total.backward()
    assert logits.grad.tolist() == [[0] * 3] * 2


def test_label_smoothing_skips_ignored_rows(device: object) -> None:
    values = np.array([[1.0, 2, 3], [9, -5, 4]])
    loss = vkml.cross_entropy(
        floats(values, device), vkml.tensor([0, -100], device=device), label_smoothing=0.3
    )
    log_p = values[0] - np.log(np.exp(values[0]).sum())
    assert loss.item() == pytest.approx(-(0.7 * log_p[0] + 0.3 * log_p.mean()), rel=1e-6)


@pytest.mark.parametrize("label", [10, -1])
def test_a_label_outside_the_classes(label: int, device: object) -> None:
    logits = vkml.zeros(2, 10, device=device)
    target = vkml.tensor([3, label], device=device)
    message = rf"\[cross_entropy\] index {label} is out of bounds for an axis of extent 10"
    with pytest.raises(vkml.IndexError, match=message):
        vkml.cross_entropy(logits, target).item()


# Plans


def test_a_region_with_many_results_is_split(device: object) -> None:
    x = vkml.ones(8, 8)
    total, s = vkml.zeros(8, 8), x
    for _ in range(40):
        s = s + x
        total = total + s @ x
    assert total.sum().item() == 64 * 8 * sum(range(2, 42))


def test_an_empty_row_writes_nothing(device: object) -> None:
    a = vkml.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = vkml.tensor([0.5, 0.6, 0.7], requires_grad=True)
    index = vkml.tensor([0, 0, 1])
    empty = vkml.broadcast_to(b.sum(), (0,)) + b.sum()
    loss = vkml.sin(empty).sum() * 0.25 + vkml.sin(b.scatter_add(0, index, a)).sum() * 0.5
    gradients = vkml.grad(loss, [a, b], create_graph=True)
    sum((g * g).sum() for g in gradients).backward()
    sums = np.array([3.5, 3.6, 0.7])
    expected = 0.5 * np.cos(sums)
    np.testing.assert_allclose(gradients[1].detach().numpy(), expected, rtol=1e-5)


# Processes


def test_eight_threads_build_and_evaluate_their_own_graphs(device: object) -> None:
    def work(seed: int) -> bool:
        array = np.random.default_rng(seed).uniform(-1, 1, (32, 32)).astype(np.float32)
        x = vkml.tensor(array, device=device, requires_grad=True)
        for _ in range(10):
            ((x @ x).tanh() * seed).sum().backward()
            x.grad = None
        y = ((x * seed + 1) ** 2).sum().item()
        return abs(y - ((array.astype(np.float64) * seed + 1) ** 2).sum()) < 1e-3 * abs(y)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(1, 9)))


def run_python(code: str) -> subprocess.CompletedProcess:
    path = str(Path(vkml.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )


def test_import_create_nothing_exit() -> None:
    result = run_python("import vkml")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_forked_child_works_on_the_cpu_or_gets_an_error(device: object) -> None:
    code = f"""
import os, sys, vkml
(vkml.ones(1000, device="{device}") + 1).sum().item()
child = os.fork()
if child == 0:
    total = (vkml.ones(1000, device="cpu") + 1).sum().item()
    if total != 2000:
        os._exit(3)
    try:
        again = (vkml.ones(1000, device="{device}") + 1).sum().item()
        os._exit(0 if again == 2000 and "{device}" == "cpu" else 4)
    except vkml.DeviceError as error:
        os._exit(0 if "fork" in str(error) and "{device}" != "cpu" else 5)
pid, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    result = run_python(code)
    assert result.returncode == 0, result.stderr
