"""Datasets, batches of them, and readers of data files."""

from vkml.data import fashion_mnist, idx
from vkml.data.collate import default_collate
from vkml.data.dataset import ConcatDataset, Dataset, Subset, TensorDataset, random_split
from vkml.data.fashion_mnist import load_fashion_mnist
from vkml.data.generator import Generator
from vkml.data.idx import read_idx
from vkml.data.loader import DataLoader

__all__ = [
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "Generator",
    "Subset",
    "TensorDataset",
    "default_collate",
    "fashion_mnist",
    "idx",
    "load_fashion_mnist",
    "random_split",
    "read_idx",
]
