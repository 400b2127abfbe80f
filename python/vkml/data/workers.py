"""Processes that read batches.

Workers are spawned, never forked: a fork would copy this process's threads and device handles in a
state nobody can use. Batch k of a pass goes to worker k modulo their number, over its own pipe, so
that the order of batches, and what each worker draws at random, depend on nothing but the seed.
A worker joins its items into a batch, puts the arrays into shared memory, and sends the rest.
Bound: the slowest worker; each has two batches in hand.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import vkml
from vkml.data.dataset import IterableDataset, item_of
from vkml.data.shared_batches import PackedBatch, block_name, discard, discard_block, pack, unpack

Collate = Callable[[Any], Any]


class WorkerInfo(NamedTuple):
    """What a worker knows of itself."""

    id: int
    """Its number, from 0."""
    num_workers: int
    seed: int
    """What its random draws of this pass begin with."""
    dataset: Any
    """Its copy of the dataset."""


class WorkerSettings(NamedTuple):
    """What a worker is started with."""

    dataset: Any
    collate: Collate
    initialize: Callable[[int], None] | None
    batch_size: int | None
    """None for single items."""
    drop_last: bool


class _Begin(NamedTuple):
    """A new pass."""

    seed: int


class _Failure(NamedTuple):
    """What the dataset, or the collate function, raised."""

    error: BaseException | None
    text: str


class _End(NamedTuple):
    """An iterable dataset has no more items."""


class RemoteTraceback(Exception):  # noqa: N818 (shown as the cause, it is no error of its own)
    """Where in a worker an exception was raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


# In a worker.

_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a DataLoader, what it is; None elsewhere."""
    return _worker_info


def _work(connection: Connection, number: int, count: int, settings: WorkerSettings) -> None:
    """A worker's life: one answer for each request, until the loader closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the loader's to handle
    vkml.set_default_device(vkml.cpu)
    batches: Iterator[Any] = iter(())
    failure: _Failure | None = None
    requests = 0
    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):
            return
        answer: Any = failure
        try:
            if isinstance(request, _Begin):
                failure = None
                batches = _begin_pass(settings, number, count, request.seed)
                continue
            requests += 1
            if failure is None:
                items = next(batches) if request is None else _items(settings, request)
                answer = pack(settings.collate(items), block_name(os.getpid(), requests))
        except StopIteration:
            answer = _End()
        except Exception as error:
            answer = _failure_of(error)
            if isinstance(request, _Begin):
                failure = answer  # told with the first batch
                continue
        try:
            connection.send(answer)
        except (BrokenPipeError, OSError):  # the loader has gone
            if isinstance(answer, PackedBatch):
                discard(answer)
            return


def _items(settings: WorkerSettings, numbers: Any) -> Any:
    dataset = settings.dataset
    try:
        if settings.batch_size is None:
            return item_of("DataLoader", dataset, numbers)
        return [item_of("DataLoader", dataset, number) for number in numbers]
    except StopIteration as error:
        raise vkml.WorkerError("[DataLoader] the dataset raised StopIteration.") from error


def _begin_pass(settings: WorkerSettings, number: int, count: int, base: int) -> Iterator[Any]:
    global _worker_info
    import random

    import numpy as np

    seed = base + number
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (what datasets that use the global stream need)
    vkml.manual_seed(seed)
    is_first = _worker_info is None
    _worker_info = WorkerInfo(number, count, seed, settings.dataset)
    if is_first and settings.initialize is not None:
        settings.initialize(number)
    if not isinstance(settings.dataset, IterableDataset):
        return iter(())
    if settings.batch_size is None:
        return iter(settings.dataset)
    return group(settings.dataset, settings.batch_size, settings.drop_last)


def _failure_of(error: Exception) -> _Failure:
    import pickle

    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return _Failure(None, text)
    return _Failure(error, text)


def group(items: Any, batch_size: int, drop_last: bool) -> Iterator[list[Any]]:
    """Lists of `batch_size` items."""
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == batch_size:
            yield batch
            batch = []
    if batch and not drop_last:
        yield batch


# In the loader's process.


class WorkerPool:
    """Workers of one loader, for one pass or for many.

    Args:
        settings: What they are started with.
        count: How many.
        prefetch: How many batches each has in hand.
        timeout: The most seconds to wait for a batch; 0 for no bound.
    """

    def __init__(self, settings: WorkerSettings, count: int, prefetch: int, timeout: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._prefetch = prefetch
        self._timeout = timeout
        self._is_iterable = isinstance(settings.dataset, IterableDataset)
        self._connections: list[Connection] = []
        self._processes: list[Any] = []
        self._pending: list[int] = []  # workers that owe an answer, in order
        self._requests = [0] * count  # that each worker was sent
        # Also when the loader is forgotten, or the program ends.
        self.close = weakref.finalize(
            self, _stop, self._connections, self._processes, self._pending, self._requests
        )
        for number in range(count):
            here, there = context.Pipe()
            process = context.Process(
                target=_work, args=(there, number, count, settings), daemon=True
            )
            process.start()
            there.close()
            self._connections.append(here)
            self._processes.append(process)

    def read(self, batches: Iterator[Any], seed: int) -> Iterator[Any]:
        """One pass.

        Args:
            batches: The numbers of each batch's items; of an iterable dataset, None for ever.
            seed: What the workers' draws begin with.

        Raises:
            Exception: What the dataset or the collate function raised in a worker; its cause shows
                where.
            RuntimeError: A worker died, or took longer than the timeout.
        """
        for connection in self._connections:
            self._send(connection, _Begin(seed))
        active = deque(range(len(self._connections)))
        try:
            while True:
                while active and len(self._pending) < len(active) * self._prefetch:
                    numbers = next(batches, _End())
                    if isinstance(numbers, _End):
                        active.clear()
                        break
                    self._requests[active[0]] += 1
                    self._send(self._connections[active[0]], numbers)
                    self._pending.append(active[0])
                    active.rotate(-1)
                if not self._pending:
                    return
                worker = self._pending[0]
                answer = self._receive(worker)
                del self._pending[0]
                if isinstance(answer, _End):
                    if worker in active:
                        active.remove(worker)
                    continue
                yield unpack(answer)
        except (Exception, GeneratorExit):
            raise
        except BaseException:  # Ctrl-C: what a worker is at may take for ever
            self.close()
            raise
        finally:
            if self.is_sound():
                self._drain()
            else:
                self.close()

    def is_sound(self) -> bool:
        """Whether all workers live."""
        return self.close.alive and all(process.is_alive() for process in self._processes)

    def _send(self, connection: Connection, message: Any) -> None:
        try:
            connection.send(message)
        except (BrokenPipeError, OSError) as error:
            raise self._death() from error

    def _receive(self, worker: int) -> Any:
        connection, process = self._connections[worker], self._processes[worker]
        limit = self._timeout if self._timeout > 0 else None
        if not wait([connection, process.sentinel], limit):
            self.close()
            raise vkml.WorkerError(
                f"[DataLoader] worker {worker} gave no batch within {self._timeout} seconds. Pass "
                "a longer timeout, or 0 for none."
            )
        try:
            answer = connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        if isinstance(answer, _Failure):
            del self._pending[0]
            if answer.error is None:
                raise vkml.WorkerError(f"[DataLoader] worker {worker} failed:\n{answer.text}")
            answer.error.__cause__ = RemoteTraceback(answer.text)
            raise answer.error
        return answer

    def _death(self) -> vkml.WorkerError:
        time.sleep(0.1)  # the pipe closes before the process is gone
        dead = [
            f"worker {number} (process {process.pid}) died with exit code {process.exitcode}"
            for number, process in enumerate(self._processes)
            if process.exitcode is not None
        ]
        self.close()
        return vkml.WorkerError(
            f"[DataLoader] {'; '.join(dead) or 'a worker closed its pipe'}. It may have been "
            "killed for want of memory, or the dataset may have ended the process. Workers import "
            "the main program: if it starts work when it is imported, put that under "
            "`if __name__ == '__main__':`."
        )

    def _drain(self) -> None:
        """Takes what is still owed, so that the next pass begins with nothing in the pipes."""
        while self._pending and self.is_sound():
            answer = self._connections[self._pending[0]].recv()
            del self._pending[0]
            if isinstance(answer, PackedBatch):
                discard(answer)


def _stop(
    connections: list[Connection], processes: list[Any], pending: list[int], requests: list[int]
) -> None:
    """Closes the pipes, which ends the workers; takes the batches that are on their way."""
    owed = [pending.count(worker) + 1 for worker in range(len(connections))]
    for worker in pending:
        _discard_ready(connections[worker])
    for connection in connections:
        connection.close()
    for process in processes:
        process.join(2.0 if process.is_alive() else None)
        if process.is_alive():
            process.terminate()
            process.join()
    for worker, process in enumerate(processes):
        if process.exitcode != 0:  # it may have died between making a block and sending it
            for request in range(requests[worker] - owed[worker] + 1, requests[worker] + 1):
                discard_block(block_name(process.pid, request))


def _discard_ready(connection: Connection) -> None:
    try:
        while connection.poll(0):
            answer = connection.recv()
            if isinstance(answer, PackedBatch):
                discard(answer)
    except (EOFError, OSError):  # the worker is gone, and so is the rest
        return
