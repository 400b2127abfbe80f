"""DataLoader: batches of a dataset, in order or shuffled by a seed.

Three ways to a batch. A `TensorDataset` gives whole batches at once: a slice of each tensor in
order, or the rows that a permutation on the device names, without going through single items.
Any other dataset is read item by item, here or, with `num_workers`, in processes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any

import vkml
from vkml import Tensor
from vkml.data.collate import default_collate
from vkml.data.dataset import Dataset, TensorDataset
from vkml.data.generator import Generator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Collate = Callable[[Sequence[Any]], Any]


class DataLoader:
    """Iterates over batches of a dataset; each `for` begins a new pass.

    Args:
        dataset: What is read.
        batch_size: Items in each batch.
        shuffle: Whether each pass has a new random order.
        sampler: The numbers of the items of each pass, in order, instead of `shuffle`.
        num_workers: Processes that read items; 0 reads them here.
        collate_fn: Joins a list of items into a batch.
        drop_last: Whether a last batch with fewer items is left out.
        generator: Decides the order: a Generator, a seed, or None for vkML's own random stream.

    Attributes:
        generator: The Generator that gives the orders.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        *,
        num_workers: int = 0,
        collate_fn: Collate | None = None,
        drop_last: bool = False,
        generator: Generator | int | None = None,
    ) -> None:
        if batch_size < 1:
            raise vkml.ArgumentError(
                f"[DataLoader] batch_size is {batch_size}. Pass a number from 1."
            )
        if num_workers < 0:
            raise vkml.ArgumentError(f"[DataLoader] num_workers is {num_workers}. Pass 0 or more.")
        if shuffle and sampler is not None:
            raise vkml.ArgumentError(
                "[DataLoader] shuffle and sampler both ask for an order. Pass one of them."
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.sampler = sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.generator = Generator.of(generator) if shuffle else None

    def __len__(self) -> int:
        """The number of batches in a pass."""
        items = len(self.dataset) if self.sampler is None else _length(self.sampler)
        return items // self.batch_size if self.drop_last else -(-items // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        order = self._order()
        if isinstance(self.dataset, TensorDataset) and self.collate_fn is None:
            return self._whole_batches(self.dataset, order)
        numbers = range(len(self.dataset)) if order is None else order.tolist()
        batches = [numbers[start : start + self.batch_size] for start in self._starts(len(numbers))]
        if self.num_workers > 0:
            from vkml.data.workers import read_in_workers

            return read_in_workers(self.dataset, batches, self.collate_fn, self.num_workers)
        return self._read_items(batches)

    def _order(self) -> NDArray[np.int64] | None:
        """The numbers of this pass; None for all in order."""
        if self.generator is not None:
            return self.generator.permutation(len(self.dataset))
        if self.sampler is None:
            return None
        import numpy as np

        return np.fromiter(self.sampler, dtype=np.int64)

    def _starts(self, items: int) -> range:
        end = items - self.batch_size + 1 if self.drop_last else items
        return range(0, max(end, 0), self.batch_size)

    def _whole_batches(
        self, dataset: TensorDataset, order: NDArray[np.int64] | None
    ) -> Iterator[list[Tensor]]:
        size = self.batch_size
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

    def _read_items(self, batches: Sequence[Sequence[int]]) -> Iterator[Any]:
        collate = default_collate if self.collate_fn is None else self.collate_fn
        for numbers in batches:
            yield collate([self.dataset[number] for number in numbers])


def _length(sampler: Iterable[int]) -> int:
    if not isinstance(sampler, Sized):
        raise TypeError("the length of a DataLoader is unknown: its sampler has no __len__")
    return len(sampler)
