"""Names of one value: views, detach() and data show what is written through any of them."""

import pytest
from vkml._vkml import _live_nodes as live_nodes

import vkml


def floats(values: object, device: object, **options: object) -> object:
    return vkml.tensor(values, dtype=vkml.float32, device=device, **options)


def test_writes_through_data_reach_the_parameter(device: object) -> None:
    p = floats([1, 2, 3], device, requires_grad=True)
    p.data[0] = 5
    assert p.tolist() == [5, 2, 3]
    p.data.copy_(floats([7, 8, 9], device))
    assert p.tolist() == [7, 8, 9]
    p.data += 1
    assert p.tolist() == [8, 9, 10]
    alias = p.data
    alias.assign_(alias * 2)
    assert p.tolist() == alias.tolist() == [16, 18, 20]
    assert p.is_leaf
    assert p.requires_grad
    assert not alias.requires_grad
    (p * p).sum().backward()
    assert p.grad.tolist() == [32, 36, 40]


def test_writes_through_a_detached_alias_and_its_base_are_seen_by_both(device: object) -> None:
    x = floats([1, 2], device)
    alias = x.detach()
    alias[0] = 5
    assert x.tolist() == [5, 2]
    x += 1
    assert alias.tolist() == [6, 3]
    recorded = alias * 10
    x[1] = 0
    assert recorded.tolist() == [60, 30]
    window = x.detach()[1:]
    window.assign_(floats([4], device))
    assert x.tolist() == alias.tolist() == [6, 4]


def test_a_detached_leaf_of_its_own_stays_one(device: object) -> None:
    x = floats([1, 2], device)
    leaf = x.detach().requires_grad_()
    x += 1
    assert leaf.is_leaf
    assert leaf.requires_grad
    assert not x.requires_grad
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [4, 6]
    with vkml.no_grad():
        leaf *= 10
    assert x.tolist() == [20, 30]
    assert not x.requires_grad


def test_a_detached_value_of_a_recorded_one_is_its_own(device: object) -> None:
    """An alias would keep the record, and every value in it, alive."""
    x = floats([1, 2], device, requires_grad=True)
    held = []
    alive = live_nodes()
    for _ in range(50):
        y = x
        for _ in range(20):
            y = (y * 2).tanh()
        held.append(y.sum().detach().realize())
    del y
    assert live_nodes() - alive < 50 * 4
    held[0] += 1
    assert held[0].item() == held[1].item() + 1


def test_a_parameter_is_updated_in_place_where_its_data_is_gone(device: object) -> None:
    p = vkml.nn.Parameter(vkml.zeros(1000, device=device))
    p.realize()
    held = []
    for _ in range(5):
        with vkml.no_grad():
            p.assign_(p + 1)
        p.realize()
        vkml.synchronize()
        held.append(vkml.allocated_bytes(device))
    assert len(set(held)) == 1
    assert p[0].item() == 5
    assert p.is_leaf


def test_a_parameter_shares_the_tensor_it_was_made_of(device: object) -> None:
    data = vkml.zeros(3, device=device)
    p = vkml.nn.Parameter(data)
    optimizer = vkml.optim.SGD([p], lr=1.0)
    (p * floats([1, 2, 3], device)).sum().backward()
    optimizer.step()
    assert p.tolist() == data.tolist() == [-1, -2, -3]


def test_a_broadcast_view_refuses_writes(device: object) -> None:
    x = floats([[1], [2]], device)
    for wide in (x.broadcast_to((2, 3)), x.expand(2, 3), x.expand(2, 3).detach()):
        for write in (
            lambda w: w.copy_(1),
            lambda w: w.__iadd__(1),
            lambda w: w.__setitem__(0, 1),
            lambda w: w[1].copy_(3),
        ):
            with pytest.raises(vkml.ArgumentError, match=r"broadcast view .* 3 times"):
                write(wide)
    assert x.tolist() == [[1], [2]]
    x[0] = 9
    assert x.expand(2, 2).tolist() == [[9, 9], [2, 2]]
    same = x.expand(2, 1)
    same[1] = 4
    assert x.tolist() == [[9], [4]]


def test_a_broadcast_view_shows_what_its_base_becomes(device: object) -> None:
    x = floats([1], device)
    wide = x.expand(3)
    x += 1
    assert wide.tolist() == [2, 2, 2]


def test_copy_converts_broadcasts_and_takes_any_view(device: object) -> None:
    x = vkml.zeros(2, 3, dtype=vkml.int32, device=device)
    x[:, 0].copy_(vkml.tensor([1.9, -2.9], device=vkml.cpu))
    x[:, 1:].copy_(vkml.tensor([[7], [8]], device=device))
    assert x.tolist() == [[1, 7, 7], [-2, 8, 8]]
    x.copy_(5)
    assert x.tolist() == [[5] * 3] * 2
    with pytest.raises(vkml.ShapeError, match=r"\(4,\)"):
        x.copy_(vkml.ones(4, device=device))


def test_leaves_refuse_changes_while_gradients_are_recorded(device: object) -> None:
    p = floats([1, 2], device, requires_grad=True)
    for write in (lambda: p.copy_(3), lambda: p[:1].copy_(3), lambda: p[:1].__iadd__(1)):
        with pytest.raises(vkml.AutogradError, match="no_grad"):
            write()
    assert p.tolist() == [1, 2]
    assert p.is_leaf
    with vkml.no_grad():
        p[:1] += 1
        p[1:].copy_(7)
    assert p.tolist() == [2, 7]
    assert p.is_leaf
    assert p.requires_grad
    (p * p).sum().backward()
    assert p.grad.tolist() == [4, 14]


def test_gradients_cross_a_write_through_a_window_but_not_through_detach(device: object) -> None:
    x = floats([1, 2], device, requires_grad=True)
    y = x * 2
    y[:1] *= 3
    y.sum().backward()
    assert x.grad.tolist() == [6, 2]
    v = floats([5.0], device, requires_grad=True)
    base = vkml.zeros(2, device=device)
    base.detach()[:1].copy_(v)
    assert base.tolist() == [5, 0]
    assert not base.requires_grad


def test_a_snapshot_keeps_the_value_of_its_time(device: object) -> None:
    p = floats([1, 2], device, requires_grad=True)
    before = p.snapshot()
    assert not before.requires_grad
    with vkml.no_grad():
        p += 1
    before *= 10
    assert p.tolist() == [2, 3]
    assert before.tolist() == [10, 20]


def test_a_snapshot_keeps_its_value_when_the_update_is_computed_from_it(device: object) -> None:
    p = floats([1, 2], device)
    with vkml.no_grad():
        p.assign_(p * 1)  # a block of its own, which the next assignment may write to
        vkml.realize([p])
        before = p.snapshot()
        for _ in range(2):
            p.assign_(before + 10)
            vkml.realize([p])
            assert p.tolist() == [11, 12]
    assert before.tolist() == [1, 2]


def test_a_long_chain_of_views_is_one_step_from_its_tensor(device: object) -> None:
    count = 100_000
    x = vkml.zeros(count + 2, device=device).realize()
    view = x
    for _ in range(count):
        view = view[1:]
    x += 1
    assert view.tolist() == [1, 1]
    view[1] = 5
    assert x[-3:].tolist() == [1, 1, 5]


def test_views_of_a_tensor_that_does_not_lie_densely_follow_it(device: object) -> None:
    """What full() and expand() make has strides of 0 until it is assigned to."""
    x = vkml.full((3, 4), 2.0, device=device)
    corner = x[1:].transpose(0, 1)[2:]
    x[2, 3] = 7
    assert corner.tolist() == [[2, 2], [2, 7]]
    corner[0, 0] = 9
    assert x.tolist() == [[2, 2, 2, 2], [2, 2, 9, 2], [2, 2, 2, 7]]


def test_gradients_of_a_broadcast_view_that_is_taken_again_are_summed(device: object) -> None:
    x = floats([[1], [2]], device)
    wide = x[1:].expand(2, 1, 3)[:, :, 1:]
    w = floats([[3], [4]], device, requires_grad=True)
    x.assign_(w * 2)
    assert wide.tolist() == [[[8, 8]], [[8, 8]]]
    wide.sum().backward()
    assert w.grad.tolist() == [[0], [8]]


def test_a_leaf_that_was_none_for_a_while_gets_gradients_recorded_before(device: object) -> None:
    p = floats([1, 2], device, requires_grad=True)
    early, missed, late = (p * 2).sum(), (p * 5).sum(), (p * 10).sum()
    early.backward()
    p.requires_grad_(False)
    missed.backward()
    assert p.grad.tolist() == [2, 2]
    p.requires_grad_(True)
    late.backward()
    (p * 100).sum().backward()
    assert p.grad.tolist() == [112, 112]


def test_separate_windows_are_a_view(device: object) -> None:
    x = floats([[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12, 13]], device)
    windows = x.unfold(1, 2, 3)
    assert windows.tolist() == [[[0, 1], [3, 4]], [[7, 8], [10, 11]]]
    windows += 100
    assert x.tolist() == [[100, 101, 2, 103, 104, 5, 6], [107, 108, 9, 110, 111, 12, 13]]
    x.fill_(1)
    assert windows.tolist() == [[[1, 1]] * 2] * 2
    rows = x.T.unfold(0, 3, 3)  # of memory that is not dense: a copy
    rows += 1
    assert x.sum().item() == 14
    weight = floats([1, 2, 3, 4, 5], device, requires_grad=True)
    (weight.unfold(0, 2, 2) * floats([[1, 10], [100, 1000]], device)).sum().backward()
    assert weight.grad.tolist() == [1, 10, 100, 1000, 0]
    overlapping = weight.detach().unfold(0, 2, 1)
    with pytest.raises(vkml.ArgumentError, match="several times"):
        overlapping += 1
    assert weight.tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(vkml.ShapeError, match="kMaxDims"):
        vkml.ones(1, 1, 1, 4, device=device).unfold(3, 2, 2)
