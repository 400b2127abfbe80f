"""Datasets, batches of them, and readers of data files."""

from vkml.argument_errors import check_arguments as _check_arguments
from vkml.data import fashion_mnist, idx
from vkml.data.collate import default_collate, default_convert
from vkml.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from vkml.data.fashion_mnist import load_fashion_mnist
from vkml.data.idx import read_idx
from vkml.data.loader import DataLoader
from vkml.data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from vkml.data.workers import WorkerInfo, get_worker_info
from vkml.generator import Generator

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "Generator",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "fashion_mnist",
    "get_worker_info",
    "idx",
    "load_fashion_mnist",
    "random_split",
    "read_idx",
]

_check_arguments(globals(), __all__)
