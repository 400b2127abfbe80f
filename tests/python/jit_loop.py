"""A training loop to record: optimisers, schedules, and what it means to have the same bits."""

import numpy as np

import vkml
import vkml.nn.functional as F
from checking import inputs
from vkml import nn, optim

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.01),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "Nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AMSGrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.01, lr_decay=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adamax": lambda p: optim.Adamax(p, lr=0.01),
    "Lion": lambda p: optim.Lion(p, lr=0.01),
}
SCHEDULES = {
    "cosine": lambda o: optim.lr_scheduler.CosineAnnealingLR(o, T_max=7),
    "steps": lambda o: optim.lr_scheduler.StepLR(o, step_size=2),
}


class Loop:
    """A network with dropout and batch norm, its optimiser, and batches."""

    def __init__(self, device, optimizer="SGD", clip=None):
        vkml.manual_seed(3)
        self.device = device
        self.model = nn.Sequential(
            nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 4)
        )
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.clip = clip

    def batch(self, number):
        x = inputs((8, 6), -1, 1, seed=number)
        return vkml.tensor(x), vkml.tensor(np.arange(number, number + 8) % 4)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss

    def state(self):
        """Everything that a step changes, as arrays and numbers."""
        values = [*self.model.state_dict().values()]
        values += [parameter.grad for parameter in self.model.parameters()]
        for entries in self.optimizer.state.values():
            values += entries.values()
        return [v.numpy().copy() if isinstance(v, vkml.Tensor) else v for v in values]


def assert_same_bits(left, right):
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a, b)
