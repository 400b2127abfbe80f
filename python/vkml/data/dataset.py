"""Datasets: anything with a length and items by number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import vkml
from vkml import Tensor
from vkml.generator import Generator

Item = TypeVar("Item", covariant=True)


class Dataset(Generic[Item]):
    """Base class: subclasses define `__getitem__` and `__len__`."""

    def __getitem__(self, index: int) -> Item:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__")


class IterableDataset(Generic[Item]):
    """Base class of datasets that are read in their own order: subclasses define `__iter__`.

    With workers, every worker iterates over a copy of its own: divide the items among them by
    `get_worker_info()`, or they come once from each.
    """

    def __iter__(self) -> Iterator[Item]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


def check_has_items(op: str, dataset: object) -> None:
    """Throws DTypeError in the name of `op` unless a dataset has items by number."""
    if not hasattr(dataset, "__getitem__"):
        raise vkml.DTypeError(
            f"[{op}] {type(dataset).__name__} is no dataset. Pass something with __getitem__ and "
            f"__len__: a vkml.data.Dataset, a list."
        )


def item_of(op: str, dataset: Dataset[Item], number: int) -> Item:
    """An item; IndexError in the name of `op` where a list or the like has no such number.

    What the code of a dataset raises passes through.
    """
    try:
        return dataset[number]
    except IndexError as error:
        if isinstance(error, vkml.VkmlError) or error.__traceback__.tb_next is not None:  # type: ignore[union-attr]
            raise
        raise vkml.IndexError(
            f"[{op}] item {number} is asked of a dataset of {len(dataset)} items. Pass numbers "
            f"below {len(dataset)}."
        ) from error


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors that have the same number of rows.

    A `DataLoader` takes whole batches out of it with one operator for each tensor.

    Args:
        *tensors: Tensors with equal first extents.
    """

    def __init__(self, *tensors: Tensor) -> None:
        rows = {tensor.shape[0] if tensor.ndim > 0 else None for tensor in tensors}
        if len(rows) != 1 or None in rows:
            raise vkml.ShapeError(
                "[TensorDataset] first extents differ: "
                f"{', '.join(str(tuple(tensor.shape)) for tensor in tensors) or 'no tensors'}. "
                "Pass tensors with one row for each item."
            )
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class Subset(Dataset[Item]):
    """Some items of a dataset, by their numbers.

    Args:
        dataset: Anything with a length and items by number.
        indices: The numbers of the items, in order. IndexError for one past the dataset's end, when
            that item is read.
    """

    def __init__(self, dataset: Dataset[Item], indices: Sequence[int]) -> None:
        check_has_items("Subset", dataset)
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> Item:
        count = len(self.indices)
        if not -count <= index < count:
            raise vkml.IndexError(f"[Subset] index {index} is out of range for {count} items.")
        return item_of("Subset", self.dataset, self.indices[index])

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[Item]):
    """Several datasets, one after the other."""

    def __init__(self, datasets: Sequence[Dataset[Item]]) -> None:
        self.datasets = list(datasets)

    def __getitem__(self, index: int) -> Item:
        length = len(self)
        if not -length <= index < length:
            raise vkml.IndexError(
                f"[ConcatDataset] index {index} is out of range for {length} items."
            )
        index %= length
        number = 0
        while index >= len(self.datasets[number]):
            index -= len(self.datasets[number])
            number += 1
        return self.datasets[number][index]

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


class ChainDataset(IterableDataset[Item]):
    """Several datasets that are read in their own order, one after the other."""

    def __init__(self, datasets: Iterable[IterableDataset[Item]]) -> None:
        self.datasets: list[Any] = list(datasets)

    def __iter__(self) -> Iterator[Item]:
        for dataset in self.datasets:
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


class StackDataset(Dataset[Any]):
    """Datasets side by side: an item is a tuple of theirs, or a dictionary by keyword.

    Args:
        *args: Datasets of one length.
        **kwargs: Or such datasets with names.
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise vkml.ArgumentError(
                "[StackDataset] pass datasets, or datasets by keyword, and not both."
            )
        self.datasets: tuple[Dataset[Any], ...] | dict[str, Dataset[Any]] = args or kwargs
        lengths = {len(dataset) for dataset in (args or kwargs.values())}
        if len(lengths) != 1:
            raise vkml.ArgumentError(
                f"[StackDataset] lengths differ: {sorted(lengths)}. Pass datasets of one length."
            )
        self._length = lengths.pop()

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


def random_split(
    dataset: Dataset[Item],
    lengths: Sequence[int | float],
    generator: Generator | int | None = None,
) -> list[Subset[Item]]:
    """Splits a dataset at random into parts that share no item.

    Args:
        dataset: What is split.
        lengths: The parts' lengths, which add up to the dataset's; or shares that add up to 1.
            Items left over by rounding go to the first parts, one each.
        generator: Decides the split: a Generator, or a seed.
    """
    total = len(dataset)
    counts = [int(length) for length in lengths]
    if math.isclose(sum(lengths), 1.0) and any(isinstance(share, float) for share in lengths):
        counts = [math.floor(total * share) for share in lengths]
        for part in range(total - sum(counts)):
            counts[part % len(counts)] += 1
    if sum(counts) != total or min(counts, default=0) < 0:
        raise vkml.ArgumentError(
            f"[random_split] lengths {list(lengths)} do not add up to the dataset's {total} items."
        )
    order: list[Any] = Generator.of(generator).permutation(total).tolist()
    starts = [sum(counts[:part]) for part in range(len(counts))]
    return [
        Subset(dataset, order[start : start + count])
        for start, count in zip(starts, counts, strict=True)
    ]
