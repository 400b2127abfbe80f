"""Threads that share tensors and graphs, and processes that fork while one runs."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vkml


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_waits_for_threads_that_compute() -> None:
    code = """
import os, threading, time, vkml
done = False
def work():
    x = vkml.ones(200, 200)
    while not done:
        (x @ x + x.sin()).sum().item()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
failed = 0
for _ in range(10):
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
    path = str(Path(vkml.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert result.returncode == 0
