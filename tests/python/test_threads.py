"""Threads that share tensors and graphs, and processes that fork while one runs."""

import contextlib
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vkml
from busy import product_that_takes


def run_together(*jobs: Callable[[], None]) -> list[BaseException]:
    """Runs each job on a thread of its own; what they raised."""
    raised = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_backward_passes_share_a_subgraph(device: object) -> None:
    """One of two passes wins; the other gets its gradients or hears that the graph is released."""
    for _ in range(15):
        w = vkml.full((8, 8), 0.1, requires_grad=True)
        h = w
        for _ in range(30):
            h = (h @ w).tanh()
        losses = [h.sum(), (h * 2).sum()]
        raised = run_together(*[loss.backward for loss in losses])
        assert len(raised) == 1
        assert isinstance(raised[0], vkml.AutogradError)
        assert np.isfinite(w.grad.numpy()).all()


def test_views_are_taken_while_their_base_is_computed(device: object) -> None:
    for _ in range(30):
        x = vkml.ones(6, 4) * 3
        view = x.transpose(0, 1)
        totals = []
        raised = run_together(
            lambda view=view: view.realize(),
            lambda view=view, totals=totals: totals.extend(view[i].sum().item() for i in range(4)),
        )
        assert not raised
        assert totals == [18] * 4


def test_a_tensor_is_read_while_others_assign_to_it(device: object) -> None:
    x = vkml.zeros(64)

    def assign(value: float) -> None:
        for _ in range(50):
            x.assign_(x * 0 + value)

    def read() -> None:
        for _ in range(50):
            array = x.numpy()
            assert (array == array[0]).all()
            assert array[0] in (0, 1, 2)

    assert not run_together(read, read, read, lambda: assign(1), lambda: assign(2))


def test_what_is_read_is_one_value_while_others_change_its_dtype(device: object) -> None:
    ones = vkml.ones(1_000_000, device=device).realize()
    x = vkml.tensor([7], dtype=vkml.uint8, device=device)
    done = threading.Event()

    def change() -> None:
        # Slow to read, and of another dtype each round: Python lets others run as a round begins.
        for dtype in itertools.cycle((vkml.uint8, vkml.int64)):
            x.data = (ones.sum(0, keepdim=True) * 0 + 7).to(dtype)
            if done.is_set():
                break

    def read() -> None:
        try:
            for _ in range(50):
                assert x.item() == 7
                assert x.tolist() == [7]
                assert x.numpy().tolist() == [7]
                assert repr(x).startswith("tensor([7], dtype")
        finally:
            done.set()

    assert not run_together(change, read)


def test_draws_of_threads_differ_while_one_records_and_replays(device: object) -> None:
    rows: list[list[float]] = []

    def replay() -> None:
        for _ in range(20):
            draw = vkml.jit(lambda: vkml.rand(4))
            rows.extend(draw().tolist() for _ in range(3))

    def draw() -> None:
        rows.extend(vkml.rand(4).tolist() for _ in range(200))

    assert not run_together(replay, draw, replay)
    assert len({tuple(row) for row in rows}) == len(rows) == 320


def test_a_step_is_replayed_while_its_state_changes_dtype(device: object) -> None:
    narrow = vkml.ones(4000, dtype=vkml.float16).realize()
    wide = vkml.ones(4000, dtype=vkml.float32).realize()
    state = vkml.ones(4000, dtype=vkml.float32)
    done = threading.Event()

    @vkml.jit
    def step() -> vkml.Tensor:
        return state * 2

    def change() -> None:
        for value in itertools.cycle((wide, narrow)):
            state.data = value
            if done.is_set():
                break

    def replay() -> None:
        try:
            for _ in range(200):
                with contextlib.suppress(vkml.ArgumentError):  # changed while it was recorded
                    assert (step().numpy() == 2).all()
        finally:
            done.set()

    step()
    state.data = narrow
    step()
    assert not run_together(change, replay)


def test_a_record_of_one_thread_leaves_eager_mode_to_others(device: object) -> None:
    recording, seen = threading.Event(), threading.Event()
    computed: list[bool] = []

    def look() -> None:
        assert recording.wait(60)
        computed.append((vkml.ones(3) + 1).is_computed)
        seen.set()

    def example(x: vkml.Tensor) -> vkml.Tensor:
        recording.set()
        assert seen.wait(60)
        y = x + 1
        computed.append(y.is_computed)
        return y

    vkml.set_eager(True)
    try:
        assert not run_together(look, lambda: vkml.func.vmap(example)(vkml.ones(2, 3)))
    finally:
        vkml.set_eager(False)
    assert computed == [True, False]


def test_an_eager_operator_lets_other_threads_run(device: object) -> None:
    x = product_that_takes(0.004)
    turns = 0
    progress: list[int] = []
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0)

    def compute() -> None:
        for _ in range(10):
            before = turns
            x @ x @ x @ x
            progress.append(turns - before)
        done.set()

    vkml.set_eager(True)
    try:
        assert not run_together(count, compute)
    finally:
        done.set()
        vkml.set_eager(False)
    assert sum(made > 0 for made in progress) > 5


def run_alone(code: str) -> int:
    """Runs a program that may hang; its exit status."""
    path = str(Path(vkml.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    ).returncode


def test_a_view_is_taken_again_under_an_observer_while_others_read_it() -> None:
    """The observer of anomaly mode takes the interpreter from whoever records."""
    code = """
import threading, vkml
w = vkml.ones(8, requires_grad=True)
x = w * 1
view = x[1:]
done = False
def read():
    while not done:
        view.shape
reader = threading.Thread(target=read)
with vkml.autograd.detect_anomaly():
    reader.start()
    for i in range(300):
        x.assign_(w * i)
        view.realize()
done = True
reader.join()
"""
    assert run_alone(code) == 0


def test_a_record_grows_under_an_observer_while_others_read_it() -> None:
    code = """
import sys, threading, vkml
sys.setswitchinterval(1e-6)
graph = vkml.autograd.ComputationGraph()
x = vkml.ones(3, requires_grad=True)
y = graph.apply("mul", x, x)
done = False
def read():
    while not done:
        len(graph)
reader = threading.Thread(target=read)
with vkml.autograd.detect_anomaly():
    reader.start()
    for _ in range(20_000):
        graph.record("mul", [x, x], y)
done = True
reader.join()
raise SystemExit(len(graph) != 20_001)
"""
    assert run_alone(code) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_waits_for_threads_that_compute() -> None:
    code = """
import os, threading, time, vkml
done = False
def work():
    x = vkml.ones(200, 200)
    while not done:
        (x @ x + x.sin()).sum().item()
def differentiate():
    w = vkml.ones(50, 50, requires_grad=True)
    w.register_hook(lambda gradient: gradient * 2)
    while not done:
        (w @ w).sum().backward()
state = vkml.zeros(50)
@vkml.jit
def step():
    state.assign_(state + 1)
    return state * 2
def replay():
    while not done:
        step().sum().item()
threads = [threading.Thread(target=job) for job in (work, differentiate, differentiate, replay)]
for thread in threads:
    thread.start()
failed = 0
for _ in range(20):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        os._exit(0 if (vkml.ones(10) + 1).sum().item() == 20 else 3)
    failed += os.waitpid(child, 0)[1] != 0
done = True
for thread in threads:
    thread.join()
raise SystemExit(failed)
"""
    assert run_alone(code) == 0
