"""Samplers: the numbers of the items of a pass, in the order in which they are read.

Random ones are decided by a `Generator` (or a seed), so that a pass can be repeated on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING

import vkml
from vkml.generator import Generator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Sampler:
    """Base class: subclasses define `__iter__`, and `__len__` if it is known."""

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler):
    """All items in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Items in random order, or drawn one by one.

    Args:
        data_source: What is sampled from.
        replacement: Whether an item may come more than once before all have come.
        num_samples: How many items a pass has; as many as there are if None.
        generator: Decides the order: a Generator, a seed, or None for vkML's own random stream.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | int | None = None,
    ) -> None:
        if num_samples is not None and num_samples < 1:
            raise vkml.ArgumentError(
                f"[RandomSampler] num_samples is {num_samples}. Pass a number from 1, or None."
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = Generator.of(generator)

    def __len__(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, items = len(self), len(self.data_source)
        if items == 0:
            return
        if self.replacement:
            yield from self.generator.integers(items, count).tolist()
            return
        for start in range(0, count, items):
            yield from self.generator.permutation(items)[: count - start].tolist()


class SubsetRandomSampler(Sampler):
    """Some items, by their numbers, in random order; `generator` as in `RandomSampler`."""

    def __init__(self, indices: Sequence[int], generator: Generator | int | None = None) -> None:
        self.indices = indices
        self.generator = Generator.of(generator)

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        for position in self.generator.permutation(len(self.indices)).tolist():
            yield self.indices[position]


class WeightedRandomSampler(Sampler):
    """Items drawn in proportion to their weights.

    Args:
        weights: One for each item, not negative; they need not add up to 1.
        num_samples: How many items a pass has.
        replacement: Whether an item may come more than once. Without, an item's chance is its share
            among those that have not come yet.
        generator: As in `RandomSampler`.
    """

    def __init__(
        self,
        weights: Iterable[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | int | None = None,
    ) -> None:
        import numpy as np

        self.weights = np.asarray(list(weights), dtype=np.float64)
        positive = int((self.weights > 0).sum())
        if num_samples < 1 or not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise vkml.ArgumentError(
                f"[WeightedRandomSampler] num_samples is {num_samples}; weights are finite and not "
                "negative, samples at least 1."
            )
        if positive == 0 or (not replacement and num_samples > positive):
            raise vkml.ArgumentError(
                f"[WeightedRandomSampler] {num_samples} samples of {positive} items with a "
                "positive weight. Ask for fewer, or pass replacement=True."
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = Generator.of(generator)

    def __len__(self) -> int:
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        import numpy as np

        if self.replacement:
            ends = np.cumsum(self.weights)
            draws = self.generator.uniform(self.num_samples) * ends[-1]
            # The last item with a weight takes what rounding leaves over.
            last = int(np.flatnonzero(self.weights)[-1])
            chosen = np.minimum(np.searchsorted(ends, draws, side="right"), last)
        else:
            # Exponential races: the first n of times E / w (Efraimidis and Spirakis, 2006).
            draws = self.generator.uniform(len(self.weights))
            with np.errstate(divide="ignore"):
                times = -np.log1p(-draws) / self.weights
            times[self.weights == 0] = np.inf
            chosen = np.argsort(times, kind="stable")[: self.num_samples]
        yield from chosen.tolist()


class DistributedSampler(Sampler):
    """The share of one process among several that train together.

    All processes draw the same order, and each takes every `num_replicas`-th item of it. Call
    `set_epoch` before each pass for a new order.

    Args:
        dataset: What is sampled from.
        num_replicas: How many processes there are.
        rank: Which one this is, from 0.
        shuffle: Whether the order is random.
        seed: The same in all processes.
        drop_last: Whether items that are left over are dropped; otherwise the first items of the
            order come again, so that all processes have equally many.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int,
        rank: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if not 0 <= rank < num_replicas:
            raise vkml.ArgumentError(
                f"[DistributedSampler] rank is {rank} of {num_replicas} processes. Ranks count "
                "from 0."
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next pass."""
        self.epoch = epoch

    def __len__(self) -> int:
        shares = len(self.dataset) / self.num_replicas
        return math.floor(shares) if self.drop_last else math.ceil(shares)

    def __iter__(self) -> Iterator[int]:
        import numpy as np

        items = len(self.dataset)
        order: NDArray[np.int64] = np.arange(items, dtype=np.int64)
        if self.shuffle:
            generator = Generator(self.seed)
            generator.draws = self.epoch
            order = generator.permutation(items)
        total = len(self) * self.num_replicas
        if items > 0:
            order = np.resize(order, total)  # repeats from the start, or cuts
        yield from order[self.rank : total : self.num_replicas].tolist()


class BatchSampler(Sampler):
    """Groups the numbers of another sampler.

    Args:
        sampler: Gives the numbers.
        batch_size: How many go into one batch.
        drop_last: Whether a last batch with fewer is left out.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if batch_size < 1:
            raise vkml.ArgumentError(
                f"[BatchSampler] batch_size is {batch_size}. Pass a number from 1."
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __len__(self) -> int:
        if not isinstance(self.sampler, Sized):
            raise vkml.DTypeError(
                f"[BatchSampler] the length is unknown: the sampler, a "
                f"{type(self.sampler).__name__}, has none. Define __len__ there."
            )
        items = len(self.sampler)
        return items // self.batch_size if self.drop_last else -(-items // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:  # type: ignore[override]
        batch: list[int] = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch
