"""Writes: what a bad index leaves behind, what unread writes hold, and what is written in place."""

import contextlib

import numpy as np
import pytest
from vkml._vkml import _live_nodes as live_nodes

import vkml


def floats(values: object, device: object, **options: object) -> object:
    return vkml.tensor(values, dtype=vkml.float32, device=device, **options)


def indices(values: object, device: object) -> object:
    return vkml.tensor(values, dtype=vkml.int64, device=device)


def kernels_of(device: object, action: object) -> int:
    before = vkml.cache_info(device).kernels
    action()
    return vkml.cache_info(device).kernels - before


def observe(tensors: list) -> None:
    """Computes tensors as one graph and reads the last."""
    vkml.realize(tensors)
    tensors[-1].tolist()


# A bad index. Each case returns the tensors that it would have changed, and what they hold: the
# last one is no view.


def scattered_over_an_uncomputed_value(device):
    x = vkml.zeros(4, device=device)
    x[indices([9], device)] = 1.0
    return [(x, [0, 0, 0, 0])]


def assigned_over_an_uncomputed_value(device):
    x = vkml.zeros(2, device=device) + 3
    x.assign_(x + vkml.ones(2, device=device).gather(0, indices([9, 0], device)))
    return [(x, [3, 3])]


def scattered_in_place(device):
    x = vkml.zeros(2, device=device)
    x.scatter_add_(0, indices([5], device), vkml.ones(1, device=device))
    return [(x, [0, 0])]


def a_window_of_a_computed_value(device):
    x = floats([1, 2, 3], device)
    x[0:1] = vkml.ones(2, device=device).gather(0, indices([9], device))
    return [(x, [1, 2, 3])]


def a_row_by_an_index(device):
    x = floats([[1, 2], [3, 4]], device)
    x[1, indices([7], device)] += 1
    return [(x, [[1, 2], [3, 4]])]


def a_column_by_an_index(device):
    x = floats([[1, 2], [3, 4]], device)
    x[:, 0][indices([7], device)] = 1
    return [(x, [[1, 2], [3, 4]])]


def a_view_and_its_base(device):
    x = floats([1, 2, 3], device)
    v = x[1:]
    v += vkml.ones(2, device=device).gather(0, indices([9, 0], device))
    return [(v, [2, 3]), (x, [1, 2, 3])]


def after_a_good_write(device):
    x = floats([1, 2], device)
    x.assign_(floats([5, 6], device))
    x.assign_(floats([1], device).gather(0, indices([3, 0], device)))
    return [(x, [5, 6])]


def after_another_bad_one(device):
    x = vkml.zeros(2, device=device)
    x.assign_(floats([1], device).gather(0, indices([3, 0], device)))
    x.assign_(floats([1], device).gather(0, indices([0, 4], device)))
    return [(x, [0, 0])]


BAD_WRITES = [
    scattered_over_an_uncomputed_value,
    assigned_over_an_uncomputed_value,
    scattered_in_place,
    a_window_of_a_computed_value,
    a_row_by_an_index,
    a_column_by_an_index,
    a_view_and_its_base,
    after_a_good_write,
    after_another_bad_one,
]


@pytest.mark.parametrize("write", BAD_WRITES)
def test_a_bad_index_leaves_what_was_there(write, device):
    changed = write(device)
    with pytest.raises(vkml.IndexError, match="out of bounds"):
        changed[0][0].tolist()
    for tensor, value in changed:
        for _ in range(2):
            assert tensor.tolist() == value
            assert (tensor + 1).tolist() == (np.array(value) + 1).tolist()
    tensor, value = changed[0]
    tensor += 1
    assert tensor.tolist() == (np.array(value) + 1).tolist()


@pytest.mark.parametrize("write", BAD_WRITES)
@pytest.mark.parametrize(
    "cure",
    [
        lambda x: x.assign_(vkml.full_like(x, 8)),
        lambda x: x.copy_(8),
        lambda x: x.__setitem__(slice(None), 8),
        lambda x: x.fill_(8),
    ],
)
def test_a_tensor_is_cured_before_anybody_reads_it(write, cure, device):
    tensor, value = write(device)[-1]
    cure(tensor)
    assert tensor.tolist() == np.full_like(value, 8).tolist()


@pytest.mark.parametrize("is_realized", [False, True])
def test_a_value_that_never_was_can_be_assigned_to(is_realized, device):
    for cure in (
        lambda y: y.assign_(vkml.ones(2, device=device)),
        lambda y: y.copy_(1),
        lambda y: y.__setitem__(slice(None), 1),
    ):
        y = vkml.ones(2, device=device).gather(0, indices([9, 0], device))
        if is_realized:
            with pytest.raises(vkml.IndexError):
                y.tolist()
        cure(y)
        assert y.tolist() == [1, 1]
        assert (y + 1).tolist() == [2, 2]


def test_a_bad_label_in_the_first_step_costs_that_step_alone(device):
    embedding = vkml.nn.Embedding(4, 3).to(device)
    norm = vkml.nn.BatchNorm1d(3).to(device)

    def step(rows):
        norm(embedding(indices(rows, device))).sum().backward()
        embedding.weight.grad.tolist()  # where the device runs ahead of the host

    with pytest.raises(vkml.IndexError, match="embedding"):
        step([0, 7])
    for _ in range(2):
        assert norm.running_mean.tolist() == [0, 0, 0]
        assert norm.running_var.tolist() == [1, 1, 1]
    embedding.weight.grad = None
    step([0, 1])
    assert norm.num_batches_tracked.item() in (1, 2)
    assert np.isfinite(embedding.weight.grad.numpy()).all()
    state = {name: vkml.full_like(value, 2) for name, value in norm.state_dict().items()}
    norm(embedding(indices([0, 7], device)))
    norm.load_state_dict(state)
    assert norm.running_mean.tolist() == [2, 2, 2]


def test_a_bad_index_is_the_error_of_what_depends_on_it_alone(device):
    x = vkml.ones(3, device=device).realize()
    fine = x.gather(0, indices([0, 2], device)) + 1
    first = x.gather(0, indices([0, 7], device)) * 2
    second = vkml.nn.functional.embedding(indices([9, 1], device), x.reshape(3, 1))
    both = (x.gather(0, indices([1, 2], device)) + first).sum()
    with contextlib.suppress(vkml.IndexError):
        vkml.realize([fine, first, second, both])
    for _ in range(2):
        assert fine.tolist() == [2, 2]
        assert (fine * 3).tolist() == [6, 6]
        with pytest.raises(vkml.IndexError, match=r"\[gather\].* extent 3"):
            first.tolist()
        with pytest.raises(vkml.IndexError, match=r"\[embedding\].* extent 3"):
            second.tolist()
        with pytest.raises(vkml.IndexError, match=r"\[gather\].* extent 3"):
            both.item()


def test_a_leaf_first_computed_beside_a_bad_index_is_usable(device):
    w = (vkml.ones(3, device=device) * 2).requires_grad_()
    beside = vkml.arange(3, device=device) + 1
    bad = (w * beside).gather(0, indices([9], device))
    with pytest.raises(vkml.IndexError):
        observe([w, beside, bad])
    for _ in range(2):
        assert w.tolist() == [2, 2, 2]
        assert beside.tolist() == [1, 2, 3]
    assert (w + beside).tolist() == [3, 4, 5]
    with vkml.no_grad():
        w += 1
    assert w.tolist() == [3, 3, 3]


def test_a_recorded_step_that_fails_late_has_written_nothing(device):
    x = floats([1, 2], device)
    rows = vkml.zeros(2, 2, device=device).realize()
    table = floats([5, 6], device)

    @vkml.jit
    def step(index):
        x.assign_(x + 1)
        rows[0] = x
        vkml.realize([x, rows])
        return table.gather(0, index).detach()

    assert step(indices([1], device)).tolist() == [6]
    before = x.tolist(), rows.tolist()
    assert before == ([2, 3], [[2, 3], [0, 0]])
    with pytest.raises(vkml.IndexError, match="gather"):
        step(indices([2], device)).tolist()
    for _ in range(2):
        assert (x.tolist(), rows.tolist()) == before
    assert step(indices([0], device)).tolist() == [5]
    assert (x.tolist(), rows.tolist()) == ([3, 4], [[3, 4], [0, 0]])


# Unread writes.


def test_unread_writes_are_bounded(device):
    limit = vkml.depth_limit()
    vkml.set_depth_limit(50)
    try:
        x = vkml.zeros(4, device=device)
        w = vkml.zeros(4, device=device).requires_grad_()
        alive = live_nodes()
        most = 0
        for i in range(500):
            x[i % 4] = float(i)
            x += 1
            with vkml.no_grad():
                w[i % 4 : i % 4 + 1] += 1
            most = max(most, live_nodes() - alive)
        assert most < 1000
        assert w.tolist() == [125] * 4
    finally:
        vkml.set_depth_limit(limit)
    expected = np.zeros(4)
    for i in range(500):
        expected[i % 4] = i
        expected += 1
    assert x.tolist() == expected.tolist()


def test_unread_assignments_hold_one_value(device):
    x = vkml.zeros(2**18, device=device).realize()
    alive = live_nodes()
    held = vkml.allocated_bytes(device)
    for i in range(100):
        x.assign_(vkml.full((2**18,), float(i), device=device).realize())
    assert live_nodes() - alive < 10
    assert vkml.allocated_bytes(device) - held < 8 * 2**20
    assert x[5].item() == 99


def test_a_forgotten_write_is_not_what_a_bad_index_brings_back(device):
    x = floats([1, 2], device)
    x.assign_(floats([3, 4], device))
    x.assign_(floats([5, 6], device))
    x.assign_(vkml.ones(1, device=device).gather(0, indices([9, 0], device)))
    with pytest.raises(vkml.IndexError):
        x.tolist()
    assert x.tolist() == [5, 6]


# In place.


def test_a_written_window_costs_the_window(device):
    x = vkml.zeros(1000, 1000, device=device).realize()
    x[3, 4] = 1.0
    x.realize()
    vkml.synchronize()
    held = vkml.allocated_bytes(device)

    def write() -> None:
        x[5, 6] = 2.0
        x.realize()

    assert kernels_of(device, write) == 1
    vkml.synchronize()
    assert vkml.allocated_bytes(device) == held
    assert x.sum().item() == 3
    assert (x[3, 4].item(), x[5, 6].item()) == (1, 2)


def test_a_window_is_not_written_where_the_old_value_is_needed(device):
    x = floats([1, 2, 3], device)
    reader = x * 10
    x[1] = 7
    assert x.tolist() == [1, 7, 3]
    assert reader.tolist() == [10, 20, 30]
    old = x.snapshot()
    x[0] = 9
    assert x.tolist() == [9, 7, 3]
    assert old.tolist() == [1, 7, 3]


def test_a_window_of_the_block_itself_is_saved_first(device):
    for source, target in (
        (slice(0, 5), slice(1, 6)),
        (slice(1, 6), slice(0, 5)),
        (slice(None, None, -1), slice(None)),
        (slice(None, None, 2), slice(0, 3)),
    ):
        x = vkml.arange(6, device=device).realize()
        expected = np.arange(6)
        x[target] = x[source]
        expected[target] = expected[source].copy()
        assert x.tolist() == expected.tolist()


def test_rows_filled_one_by_one_take_one_block(device):
    for is_read in (False, True):
        x = vkml.zeros(20, 3, device=device).realize()
        for i in range(20):
            x[i] = floats([i, i + 1, i + 2], device)
            if is_read:
                x.realize()
        launched = kernels_of(device, x.realize)
        assert launched <= (0 if is_read else 21)
        assert x.tolist() == [[i, i + 1, i + 2] for i in range(20)]


def test_rows_that_follow_from_each_other(device):
    x = vkml.zeros(6, device=device).realize()
    x[0] = 1
    for i in range(1, 6):
        x[i] = x[i - 1] * 2
    kept = x * 1
    x[2:4] = x[0:2]
    x += 1
    x[5] = 0
    assert kept.tolist() == [1, 2, 4, 8, 16, 32]
    assert x.tolist() == [2, 3, 2, 3, 17, 0]


def test_a_shared_part_of_a_pending_value_keeps_the_old_block(device):
    """What is computed on the way, and not kept, is computed again for whoever else needs it."""
    x = floats([1, 2, 3], device)
    part = x * 3
    other = part + 1
    x.assign_(x + part)
    del part
    assert x.tolist() == [4, 8, 12]
    assert other.tolist() == [4, 7, 10]


def test_two_updates_between_reads_stay_in_place(device):
    x = vkml.zeros(2**18, device=device).realize()
    for _ in range(3):
        x += 1
        x[7] = 5
        x.realize()
    vkml.synchronize()
    held = vkml.allocated_bytes(device)
    x += 1
    x[7] = 5
    x.realize()
    vkml.synchronize()
    assert vkml.allocated_bytes(device) == held
    assert (x[7].item(), x[8].item()) == (5, 4)
