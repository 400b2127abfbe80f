"""Sizes that broke comparable frameworks, each with its right value or error, on every device."""

import os
from collections.abc import Callable

import pytest

import vkml

MUCH = pytest.mark.skipif(
    os.environ.get("VKML_REFERENCE") == "1",
    reason="the reference holds every element, in double precision",
)


def test_more_elements_than_workgroups_have_numbers(device: object) -> None:
    count = 2**24 + 257
    x = vkml.arange(count, dtype=vkml.int32, device=device) + 1
    assert x[-1].item() == count
    assert x[2**24 - 1].item() == 2**24


def test_a_thousand_dependent_additions(device: object) -> None:
    x = vkml.zeros(3, device=device)
    for _ in range(1000):
        x = x + 1
    assert x.tolist() == [1000] * 3


def test_an_impossible_size_is_an_error(device: object) -> None:
    """It names the operator, or the limit that the size is past."""
    limit = (
        r"\d+ of \d+ bytes of memory|the system has no \d+ bytes for cpu"
        if device == vkml.cpu
        else r"device's max\w+ is [\d.]+ \w+"
    )
    with pytest.raises(vkml.OutOfMemoryError, match=limit):
        (vkml.ones(2**40, dtype=vkml.uint8, device=device) + 1).realize()
    assert (vkml.ones(3, device=device) + 1).tolist() == [2] * 3
    with pytest.raises(vkml.OutOfMemoryError, match=r"^\[\w+\] .*\d{15}"):
        (vkml.ones(2**20, 2**20, 2**10, device=device) + 1).realize()
    with pytest.raises(vkml.ShapeError):
        vkml.zeros(-1, device=device)
    with pytest.raises(vkml.ShapeError, match=r"rank 5 exceeds kMaxDims=4"):
        vkml.zeros(1, 1, 1, 1, 1, device=device)
    assert (vkml.ones(3, device=device) + 1).tolist() == [2] * 3


VERY_LONG = {
    "sum": (lambda d: vkml.ones(2**29, device=d).sum() / 2**29, 1),
    "rows": (lambda d: vkml.ones(2, 3 * 2**27, device=d).sum(1)[1] / 2**27, 3),
    "columns": (lambda d: vkml.ones(2**26, 8, dtype=vkml.uint8, device=d).sum(0)[7] / 2**26, 1),
    "odd columns": (
        lambda d: vkml.ones(2**27, 3, dtype=vkml.uint8, device=d).sum(0)[1] / 2**27,
        1,
    ),
    "max": (lambda d: vkml.arange(3 * 2**28, dtype=vkml.int32, device=d).max(), 3 * 2**28 - 1),
    "argmax": (
        lambda d: vkml.arange(3 * 2**28, dtype=vkml.int32, device=d).argmax(),
        3 * 2**28 - 1,
    ),
    "any": (lambda d: (vkml.arange(2**29, dtype=vkml.int32, device=d) == 2**29 - 1).any(), True),
    "product": (
        lambda d: (vkml.ones(8, 2**20, device=d) @ vkml.ones(2**20, 8, device=d))[7, 7],
        2**20,
    ),
    "matrix and vector": (
        lambda d: (vkml.ones(2**20, 64, device=d).mT @ vkml.ones(2**20, 1, device=d))[63, 0],
        2**20,
    ),
}


@MUCH
@pytest.mark.parametrize("name", VERY_LONG)
def test_sums_of_a_billion_terms_are_whole(name: str, device: object) -> None:
    """Made as they are read, so that they take no memory."""
    function, expected = VERY_LONG[name]
    assert function(device).item() == expected


@MUCH
def test_rows_that_are_read_twice_are_whole_or_refused(device: object) -> None:
    row = vkml.zeros(2**28, device=device)
    message = ""
    try:
        found = row.softmax(0)[5].item()
    except vkml.UnsupportedError as error:
        message = str(error)
    if message:
        assert device != vkml.cpu
        assert message.startswith("[reduction] ")
        assert "loop turns" in message
    else:
        assert found == 2.0**-28


def test_long_loops_are_whole_or_refused(device: object) -> None:
    """A software Vulkan driver ends loops after 65,535 turns, without an error."""
    count = 300_000
    row = vkml.arange(count, dtype=vkml.float32, device=device) % 2
    assert vkml.softmax(row * 0, 0).sum().item() == pytest.approx(1, rel=1e-5)
    ones = row * 0 + 1
    assert ones.reshape(count, 1).sum(dim=0).tolist() == [count]
    assert (ones.reshape(1, count) @ ones.reshape(count, 1)).item() == count
    x = ones.reshape(1, 1, 500, 600)
    w = vkml.ones(1, 1, 1, 1, device=device, requires_grad=True)
    vkml.conv2d(x, w).sum().backward()
    assert w.grad.item() == count
    index = vkml.zeros(count, dtype=vkml.int64, device=device)
    assert one_or_refused(
        lambda: vkml.scatter_add(vkml.zeros(3, device=device), 0, index, ones)[0].item() / count
    )
    assert one_or_refused(lambda: vkml.avg_pool2d(x, (500, 600)).item())


def one_or_refused(compute: Callable[[], float]) -> bool:
    """Whether the result is 1, or a software driver has said that it cannot compute it."""
    try:
        return compute() == 1
    except vkml.UnsupportedError as error:
        return "software Vulkan driver" in str(error)
