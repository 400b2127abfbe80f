"""DataLoader: batches of a dataset, in order or shuffled by a seed.

Three ways to a batch. A `TensorDataset` gives whole batches at once: a slice of each tensor in
order, or the rows that a permutation on the device names, without going through single items.
Any other dataset is read item by item, here or, with `num_workers`, in processes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import repeat
from typing import TYPE_CHECKING, Any

import vkml
from vkml import Tensor
from vkml.data.collate import default_collate, default_convert
from vkml.data.dataset import (
    Dataset,
    IterableDataset,
    TensorDataset,
    check_has_items,
    item_of,
)
from vkml.data.sampler import BatchSampler
from vkml.generator import Generator
from vkml.trees import flatten, unflatten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vkml.data.workers import WorkerPool

Collate = Callable[[Any], Any]


class DataLoader:
    """Iterates over batches of a dataset; each `for` begins a new pass.

    Args:
        dataset: What is read: by number, or an IterableDataset in its own order.
        batch_size: Items in each batch; None for single items, which `collate_fn` converts, by
            default arrays to tensors.
        shuffle: Whether each pass has a new random order.
        sampler: The numbers of the items of each pass, in order, instead of `shuffle`.
        batch_sampler: The lists of numbers of each pass, instead of all of the above.
        num_workers: Processes that read items; 0 reads them here. A program that uses them guards
            its main part by `if __name__ == "__main__":`, as they import it.
        collate_fn: Joins a list of items into a batch.
        pin_memory: Whether batches are copied to `pin_memory_device` one batch ahead of their use,
            through the staging memory that the device keeps mapped.
        drop_last: Whether a last batch with fewer items is left out.
        timeout: The most seconds to wait for a worker's batch; 0 waits for ever.
        worker_init_fn: Called in each worker with its number, when it starts.
        multiprocessing_context: None or "spawn", how workers are started: a fork would copy device
            handles that nobody can use there.
        generator: Decides the order and the workers' seeds: a Generator, a seed, or None for vkML's
            own random stream.
        prefetch_factor: How many batches each worker has in hand; 2 if None.
        persistent_workers: Whether workers stay for the next pass.
        pin_memory_device: Where `pin_memory` copies to; the default device if empty.
        in_order: True: batches come in the order of their numbers whatever the workers' speed.

    Attributes:
        generator: The Generator that gives the orders.

    Raises:
        Exception: In a pass, what the dataset raises; from a worker, with the traceback as its
            cause. RuntimeError for a worker that died or took too long.
    """

    def __init__(
        self,
        dataset: Dataset[Any] | IterableDataset[Any],
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Collate | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | int | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: vkml.DeviceLike = "",
        in_order: bool = True,
    ) -> None:
        def refuse(fault: str) -> vkml.ArgumentError:
            return vkml.ArgumentError(f"[DataLoader] {fault}")

        if not isinstance(dataset, IterableDataset):
            check_has_items("DataLoader", dataset)
        if batch_size is not None and batch_size < 1:
            raise refuse(f"batch_size is {batch_size}. Pass a number from 1, or None.")
        if batch_size is None and (drop_last or batch_sampler is not None):
            raise refuse("batch_size=None reads single items. Leave out drop_last, batch_sampler.")
        if _start_method(multiprocessing_context) not in (None, "spawn"):
            raise refuse(
                f"workers are spawned, not started by {multiprocessing_context!r}. Pass 'spawn', "
                "or leave multiprocessing_context out."
            )
        if not in_order:
            raise refuse("batches come in order, so that results repeat. Pass in_order=True.")
        if num_workers < 0 or timeout < 0:
            raise refuse(
                f"num_workers is {num_workers} and timeout {timeout}. Pass 0 or more of each."
            )
        if shuffle and sampler is not None:
            raise refuse("shuffle and sampler both ask for an order. Pass one of them.")
        if batch_sampler is not None and (
            shuffle or sampler is not None or batch_size != 1 or drop_last
        ):
            raise refuse(
                "batch_sampler makes whole batches. Leave out batch_size, shuffle, sampler and "
                "drop_last."
            )
        if isinstance(dataset, IterableDataset) and (shuffle or sampler or batch_sampler):
            raise refuse("an IterableDataset has its own order. Leave out shuffle and samplers.")
        if num_workers == 0 and (persistent_workers or prefetch_factor is not None or timeout > 0):
            raise refuse(
                "persistent_workers, prefetch_factor and timeout are about workers. Pass "
                "num_workers too."
            )
        if prefetch_factor is not None and prefetch_factor < 1:
            raise refuse(f"prefetch_factor is {prefetch_factor}. Pass a number from 1.")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory_device = pin_memory_device
        # Workers draw seeds from it as well; without either nobody draws anything.
        draws = shuffle or num_workers > 0
        self.generator = Generator.of(generator) if draws else None
        self._pool: WorkerPool | None = None

    def __len__(self) -> int:
        """The number of batches in a pass."""
        if isinstance(self.dataset, IterableDataset):
            raise vkml.DTypeError(
                "[DataLoader] the length of an IterableDataset is unknown. Iterate without it."
            )
        if self.batch_sampler is not None:
            return _length(self.batch_sampler)
        items = len(self.dataset) if self.sampler is None else _length(self.sampler)
        if self.batch_size is None:
            return items
        return items // self.batch_size if self.drop_last else -(-items // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()
        if not self.pin_memory:
            return batches
        return _ahead(batches, vkml.device(self.pin_memory_device or vkml.default_device()))

    def _batches(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset):
            return self._read_in_workers(repeat(None)) if self.num_workers else self._iterate()
        whole = isinstance(self.dataset, TensorDataset) and self.collate_fn is None
        if whole and self.batch_size is not None and self.batch_sampler is None:
            return self._whole_batches(self.dataset, self._order())
        numbers = self._batch_numbers()
        return self._read_in_workers(numbers) if self.num_workers else self._read_items(numbers)

    def _batch_numbers(self) -> Iterator[Any]:
        """The numbers of each batch's items, or of each item; the order is drawn now."""
        if self.batch_sampler is not None:
            return iter(self.batch_sampler)
        assert not isinstance(self.dataset, IterableDataset)
        order: Iterable[int] = range(len(self.dataset))
        if self.sampler is not None:
            order = self.sampler
        elif self.shuffle and self.generator is not None:
            order = self.generator.permutation(len(self.dataset)).tolist()
        if self.batch_size is None:
            return iter(order)
        return iter(BatchSampler(order, self.batch_size, self.drop_last))

    def _order(self) -> NDArray[np.int64] | None:
        """The numbers of this pass; None for all in order."""
        assert not isinstance(self.dataset, IterableDataset)
        if self.shuffle and self.generator is not None:
            return self.generator.permutation(len(self.dataset))
        if self.sampler is None:
            return None
        import numpy as np

        return np.fromiter(self.sampler, dtype=np.int64)

    def _starts(self, items: int) -> range:
        assert self.batch_size is not None
        end = items - self.batch_size + 1 if self.drop_last else items
        return range(0, max(end, 0), self.batch_size)

    def _whole_batches(
        self, dataset: Any, order: NDArray[np.int64] | None
    ) -> Iterator[list[Tensor]]:
        size = self.batch_size
        assert size is not None
        if order is None:
            for start in self._starts(len(dataset)):
                yield [tensor[start : start + size] for tensor in dataset.tensors]
            return
        # A batch is a window on the order, which lies on the device: its offset is a run-time
        # input, so that all batches of a pass share one plan. Devices all have 32-bit integers.
        if len(dataset) <= 2**31:
            order = order.astype("int32")
        orders = {
            tensor.device: vkml.tensor(order, device=tensor.device) for tensor in dataset.tensors
        }
        for start in self._starts(len(order)):
            yield [
                vkml.index_select(tensor, 0, orders[tensor.device][start : start + size])
                for tensor in dataset.tensors
            ]

    def _collating(self) -> Collate:
        if self.collate_fn is not None:
            return self.collate_fn
        return default_convert if self.batch_size is None else default_collate

    def _read_items(self, batches: Iterable[Any]) -> Iterator[Any]:
        assert not isinstance(self.dataset, IterableDataset)
        collate = self._collating()
        for numbers in batches:
            if self.batch_size is None:
                yield collate(item_of("DataLoader", self.dataset, numbers))
            else:
                yield collate([item_of("DataLoader", self.dataset, n) for n in numbers])

    def _iterate(self) -> Iterator[Any]:
        from vkml.data.workers import group

        collate = self._collating()
        if self.batch_size is None:
            assert isinstance(self.dataset, IterableDataset)
            yield from map(collate, self.dataset)
            return
        for items in group(self.dataset, self.batch_size, self.drop_last):
            yield collate(items)

    def _read_in_workers(self, batches: Iterator[Any]) -> Iterator[Any]:
        assert self.generator is not None
        pool = self._pool
        if pool is None or not pool.is_sound():
            pool = self._start_workers()
        self._pool = None  # a second pass at the same time has workers of its own
        try:
            seed = int(self.generator.integers(2**31, 1)[0])
            yield from pool.read(batches, seed)
        finally:
            if self.persistent_workers and pool.is_sound():
                self._pool = pool
            else:
                pool.close()

    def _start_workers(self) -> WorkerPool:
        from vkml.data.workers import WorkerPool, WorkerSettings

        settings = WorkerSettings(
            self.dataset, self._collating(), self.worker_init_fn, self.batch_size, self.drop_last
        )
        return WorkerPool(settings, self.num_workers, self.prefetch_factor, self.timeout)


def _ahead(batches: Iterator[Any], device: vkml.Device) -> Iterator[Any]:
    """Batches on a device: while one is used, the copy of the next is on its way."""
    before: list[Any] = []
    for batch in batches:
        moved = unflatten(batch, [tensor.to(device) for tensor in flatten(batch)])
        before.append(moved)
        if len(before) > 1:
            yield before.pop(0)
    yield from before


def _start_method(context: Any) -> str | None:
    """How a context of `multiprocessing`, or its name, starts processes."""
    if context is None or isinstance(context, str):
        return context
    return str(context.get_start_method())


def _length(sampler: Any) -> int:
    if not isinstance(sampler, Sized):
        raise vkml.DTypeError(
            f"[DataLoader] the length is unknown: the sampler, a {type(sampler).__name__}, has "
            f"none. Define __len__ there."
        )
    return len(sampler)
