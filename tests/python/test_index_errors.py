"""An index outside its axis: the error names the function that was called, and the index."""

import pytest

import vkml
from vkml.nn import functional as F


def vector():
    return vkml.ones(3)


def matrix():
    return vkml.ones(2, 3)


def bad():
    return vkml.tensor([0, 9])


def pair():
    return vkml.ones(2)


CALLS = {
    "gather": lambda: vkml.gather(vector(), 0, bad()),
    "take": lambda: vkml.take(vector(), bad()),
    "index_select": lambda: vkml.index_select(vector(), 0, bad()),
    "take_along_dim": lambda: vkml.take_along_dim(vector(), bad(), 0),
    "take_along_dim of all": lambda: vkml.take_along_dim(matrix(), bad()),
    "take_along_axis": lambda: vkml.take_along_axis(vector(), bad(), axis=0),
    "scatter": lambda: vkml.scatter(vector(), 0, bad(), pair()),
    "scatter_add": lambda: vkml.scatter_add(vector(), 0, bad(), pair()),
    "scatter_reduce": lambda: vkml.scatter_reduce(vector(), 0, bad(), pair(), "prod"),
    "scatter_reduce with mean": lambda: vkml.scatter_reduce(vector(), 0, bad(), pair(), "mean"),
    "index_add": lambda: vkml.index_add(vector(), 0, bad(), pair()),
    "index_copy": lambda: vkml.index_copy(vector(), 0, bad(), pair()),
    "index_fill": lambda: vkml.index_fill(vector(), 0, bad(), 1.0),
    "embedding": lambda: F.embedding(bad(), matrix()),
    "embedding_bag": lambda: F.embedding_bag(bad().unsqueeze(0), matrix()),
    "one_hot": lambda: F.one_hot(bad(), 3),
    "cross_entropy": lambda: F.cross_entropy(matrix(), bad()),
    "cross_entropy with weights": lambda: F.cross_entropy(matrix(), bad(), vector()),
    "nll_loss": lambda: F.nll_loss(matrix(), bad()),
    "nll_loss with weights": lambda: F.nll_loss(matrix(), bad(), vector()),
    "multi_margin_loss": lambda: F.multi_margin_loss(matrix(), bad()),
    "multi_margin_loss with weights": lambda: F.multi_margin_loss(matrix(), bad(), weight=vector()),
    "multilabel_margin_loss": lambda: F.multilabel_margin_loss(
        matrix(), vkml.tensor([[0, 9, -1], [0, 1, 2]])
    ),
    "max_unpool1d": lambda: F.max_unpool1d(vkml.ones(1, 1, 1), vkml.tensor([[[9]]]), 2),
    "max_unpool2d": lambda: F.max_unpool2d(vkml.ones(1, 1, 1, 1), vkml.tensor([[[[9]]]]), 2),
}


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_function_that_was_called(name):
    with pytest.raises(vkml.IndexError, match=rf"^\[{name.split()[0]}\] index 9 is out of bounds"):
        CALLS[name]().tolist()
