"""Modes and devices: eager mode, plans and their cache, coverage, depth, seeds, devices."""

import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vkml
from checking import exact, inputs


@pytest.fixture
def eager():
    vkml.set_eager(True)
    yield
    vkml.set_eager(False)


def fresh(device: object, *shape: int) -> object:
    return vkml.tensor(inputs(shape, -1, 1), device=device)


def test_nothing_runs_until_it_is_observed(device: object) -> None:
    kernels = vkml.cache_info(device).kernels
    x = fresh(device, 8)
    y = (x * 2 + 1).tanh()
    assert not y.is_computed
    assert vkml.cache_info(device).kernels == kernels
    y.realize()
    assert y.is_computed
    assert vkml.cache_info(device).kernels == kernels + 1


@pytest.mark.usefixtures("eager")
def test_eager_mode_computes_after_every_operator(device: object) -> None:
    assert vkml.is_eager()
    kernels = vkml.cache_info(device).kernels
    y = fresh(device, 8) * 2
    assert y.is_computed
    z = y + 1
    assert z.is_computed
    assert vkml.cache_info(device).kernels == kernels + 2


@pytest.mark.usefixtures("eager")
def test_eager_mode_fails_where_the_error_is(device: object) -> None:
    bad = vkml.tensor([5], device=device)
    x = fresh(device, 3)
    with pytest.raises(vkml.IndexError, match="gather"):
        vkml.gather(x, 0, bad)


def test_eager_mode_gives_the_same_numbers(device: object) -> None:
    x = fresh(device, 4, 5)

    def compute() -> list:
        w = vkml.tensor(inputs((5, 3), -1, 1), device=device, requires_grad=True)
        loss = vkml.softmax(x @ w, 1).log().sum()
        loss.backward()
        return [loss.item(), exact(w.grad)]

    lazy = compute()
    vkml.set_eager(True)
    try:
        eager = compute()
    finally:
        vkml.set_eager(False)
    np.testing.assert_allclose(eager[0], lazy[0], rtol=1e-6)
    np.testing.assert_allclose(eager[1], lazy[1], atol=1e-5)


def python(code: str, **environment: str) -> str:
    path = str(Path(vkml.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    return result.stdout.strip()


def test_eager_mode_by_environment() -> None:
    code = "import vkml; print(vkml.is_eager(), (vkml.ones(2) + 1).is_computed)"
    assert python(code, VKML_EAGER="1") == "True True"
    assert python(code, VKML_EAGER="0") == "False False"


@pytest.mark.parametrize(
    ("value", "is_on"), [("1", True), ("true", True), ("2", True), ("0", False), ("", False)]
)
def test_switches_are_on_when_they_hold_anything_but_0(value: str, is_on: bool) -> None:
    code = "import vkml; print(vkml.devices()[0].name, vkml.is_eager())"
    name, eager = python(code, VKML_REFERENCE=value, VKML_EAGER=value).rsplit(" ", 1)
    assert eager == str(is_on)
    assert ("reference" in name) == is_on


def test_fusion_off_by_environment() -> None:
    code = """
import vkml
x = vkml.ones(8)
x.realize()
before = vkml.cache_info().kernels
y = ((x * 2 + 1).tanh() - x).tolist()
print(vkml.cache_info().kernels - before, y[0] == y[7])
"""
    assert python(code, VKML_FUSE="1") == "1 True"
    assert python(code, VKML_FUSE="0") == "4 True"


def test_an_expression_is_one_kernel(device: object) -> None:
    a, b = fresh(device, 16), fresh(device, 16)
    assert "1 kernels" in vkml.explain(vkml.sigmoid(a * b + a) * vkml.tanh(b) - a / 2)
    x = fresh(device, 6, 10)
    for y in (vkml.softmax(x, 1), vkml.layer_norm(x, 10), vkml.log_softmax(x, -1)):
        assert "1 kernels" in vkml.explain(y)
    assert "already computed" in vkml.explain(vkml.ones(3, device=device).realize())


def test_equal_structures_share_a_plan_and_others_do_not(device: object) -> None:
    x, y = fresh(device, 9), fresh(device, 9)
    vkml.clear_cache(device)

    def misses(function: object, *arguments: object) -> int:
        before = vkml.cache_info(device).misses
        function(*arguments).realize()
        return vkml.cache_info(device).misses - before

    assert misses(lambda a, b: a * b, x, y) == 1
    assert misses(lambda a, b: a * b, y, x) == 0
    assert misses(lambda a, b: a * b, x, x) == 1
    assert misses(lambda a: a * 2.0, x) == 1
    assert misses(lambda a: a * 3.5, y) == 0
    wide = fresh(device, 90)
    assert misses(lambda a: a * 2.0, wide[10:19]) == 0
    assert misses(lambda a: a * 2.0, wide[40:49]) == 0
    assert misses(lambda a: a * 2.0, wide[0:18:2]) == 1
    info = vkml.cache_info(device)
    assert info.plans == 4
    vkml.clear_cache(device)
    assert vkml.cache_info(device).plans == 0


def test_coverage(device: object) -> None:
    vkml.clear_coverage()
    vkml.set_coverage(True)
    (fresh(device, 3).tanh() + 1).realize()
    vkml.set_coverage(False)
    fresh(device, 3).tanh().realize()
    counts = vkml.coverage()
    assert counts[str(device)]["tanh"] == 1
    assert counts[str(device)]["add"] == 1
    vkml.clear_coverage()
    assert vkml.coverage() == {}


def test_depth_limit_bounds_unread_chains(device: object) -> None:
    limit = vkml.depth_limit()
    assert limit > 0
    vkml.set_depth_limit(50)
    try:
        kernels = vkml.cache_info(device).kernels
        x = vkml.zeros(4, device=device)
        for _ in range(200):
            x = x + 1
        assert vkml.cache_info(device).kernels > kernels
        assert x.tolist() == [200] * 4
    finally:
        vkml.set_depth_limit(limit)


def test_realize_computes_several_tensors_as_one_graph(device: object) -> None:
    x = fresh(device, 5)
    lookups = vkml.cache_info(device)
    a, b = x + 1, x * 2
    vkml.realize([a, b])
    after = vkml.cache_info(device)
    assert a.is_computed
    assert b.is_computed
    assert after.hits + after.misses == lookups.hits + lookups.misses + 1


def test_seeds() -> None:
    vkml.manual_seed(123)
    assert vkml.initial_seed() == 123
    first = vkml.rand(8).tolist()
    assert vkml.rand(8).tolist() != first
    vkml.manual_seed(123)
    assert vkml.rand(8).tolist() == first
    vkml.manual_seed(124)
    assert vkml.rand(8).tolist() != first


def test_devices(device: object) -> None:
    found = vkml.devices()
    assert found[0].device == vkml.cpu
    here = next(info for info in found if info.device == device)
    assert here.name
    assert here.memory_bytes > 0
    assert isinstance(here.features, list)
    assert str(here.device) == str(device)
    with pytest.raises(vkml.DeviceError):
        vkml.device("cuda")
    with pytest.raises(vkml.DeviceError, match=r"vulkan:77"):
        vkml.ones(1, device="vulkan:77").realize()


def test_default_device(device: object) -> None:
    assert vkml.default_device() == device
    assert vkml.ones(2).device == device
    assert (vkml.ones(2) + 1).device == device
    with pytest.raises(vkml.DeviceError):
        vkml.set_default_device("vulkan:77")
    assert vkml.default_device() == device


def test_operands_on_two_devices_are_an_error() -> None:
    others = [info.device for info in vkml.devices() if info.device != vkml.cpu]
    if not others:
        pytest.skip("there is one device")
    here, there = vkml.ones(2), vkml.ones(2, device=others[0])
    with pytest.raises(vkml.DeviceError, match=rf"cpu.*{others[0]}"):
        here + there
    with pytest.raises(vkml.DeviceError, match=rf"cpu.*{others[0]}"):
        vkml.realize([here + 1, there + 1])
    assert (here + there.cpu()).tolist() == [2, 2]
    assert (here.to(others[0]) + there).tolist() == [2, 2]


def test_memory_returns(device: object) -> None:
    held = []
    for _ in range(40):
        x = vkml.rand(1000, 1000, device=device).realize()
        del x
        vkml.synchronize(device)
        held.append(vkml.allocated_bytes(device))
    assert held[-1] == held[4]


def test_gradient_mode_is_of_the_thread() -> None:
    x = vkml.ones(2, requires_grad=True)
    with vkml.no_grad(), concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert not vkml.is_grad_enabled()
        assert pool.submit(vkml.is_grad_enabled).result()
        assert pool.submit(lambda: (x * 2).requires_grad).result()
        assert not (x * 2).requires_grad
    assert vkml.is_grad_enabled()
    previous = vkml.is_grad_enabled()
    vkml.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    vkml.set_grad_enabled(previous)
    assert (x * 2).requires_grad


def test_from_numpy_copies_to_the_cpu(device: object) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = vkml.from_numpy(array)
    array[0, 0] = 100
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.device == vkml.cpu
    assert (x.to(device) + 1).tolist() == [[1, 2, 3], [4, 5, 6]]
