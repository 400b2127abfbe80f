"""Averages of a model's weights over training: exponential (EMA) or equal (SWA).

`AveragedModel` holds a copy of a model whose parameters are a running average; the updates of all
parameters are one submission, whose weights enter as numbers and so compile nothing again.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import vkml
from vkml import Tensor, no_grad
from vkml.argument_errors import check_arguments as _check_arguments
from vkml.nn import Module
from vkml.nn.normalization import BatchNorm1d, BatchNorm2d
from vkml.optim.lr_scheduler import LRScheduler
from vkml.optim.optimizer import Optimizer

AverageFunction = Callable[[Tensor, Tensor, int], Tensor]
MultiAverageFunction = Callable[[list[Tensor], list[Tensor], int], None]


def get_ema_avg_fn(decay: float = 0.999) -> AverageFunction:
    """The exponential moving average: `decay * average + (1 - decay) * new`."""
    if not 0.0 <= decay <= 1.0:
        raise vkml.ArgumentError(f"[get_ema_avg_fn] decay is {decay}. Pass a number in [0, 1].")

    def average(averaged: Tensor, model: Tensor, num_averaged: int) -> Tensor:
        return averaged * decay + model * (1 - decay)

    return average


def get_swa_avg_fn() -> AverageFunction:
    """The mean of all weights so far (Izmailov et al., 2018)."""

    def average(averaged: Tensor, model: Tensor, num_averaged: int) -> Tensor:
        return averaged + (model - averaged) * (1 / (num_averaged + 1))

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverageFunction:
    """`get_ema_avg_fn` of all weights at once, in place."""
    return _in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverageFunction:
    """`get_swa_avg_fn` of all weights at once, in place."""
    return _in_place(get_swa_avg_fn())


def _in_place(average: AverageFunction) -> MultiAverageFunction:
    def update(averaged: list[Tensor], model: list[Tensor], num_averaged: int) -> None:
        for ours, theirs in zip(averaged, model, strict=True):
            ours.copy_(average(ours, theirs, num_averaged))

    return update


class AveragedModel(Module):
    """A copy of a model that averages the model's weights.

    Call `update_parameters(model)` after each step of the optimiser, and this module as the model.

    Args:
        model: What is copied: architecture and first values.
        device: Where the copy lives; where the model lives if None.
        avg_fn: Takes the average, the new value and the number of averaged values; gives the next
            average. `get_swa_avg_fn()` if None.
        multi_avg_fn: Takes all averages that were begun, all new values and that number; writes
            the next averages. Instead of `avg_fn`.
        use_buffers: Whether buffers of floating point are averaged too. The others are the model's
            last ones.

    Attributes:
        module: The copy.
        n_averaged: How many times `update_parameters` was called: an int64 buffer.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: AverageFunction | None = None,
        multi_avg_fn: MultiAverageFunction | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise vkml.ArgumentError(
                "[AveragedModel] avg_fn and multi_avg_fn both say how to average. Pass one of them."
            )
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", vkml.tensor(0, dtype=vkml.int64, device=vkml.cpu))
        self.avg_fn = get_swa_avg_fn() if avg_fn is None else avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*inputs, **keywords)

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        yield from model.parameters()
        if self.use_buffers:
            yield from model.buffers()

    def update_parameters(self, model: Module) -> None:
        """Takes the model's present weights into the average; the first call copies them."""
        count = int(self.n_averaged)
        changed: list[Tensor] = []
        together: list[tuple[Tensor, Tensor]] = []
        with no_grad():
            for ours, theirs in zip(
                self._averaged(self.module), self._averaged(model), strict=True
            ):
                new = theirs.detach().to(ours.device)
                if count > 0 and ours.dtype.is_floating_point:
                    if self.multi_avg_fn is not None:
                        together.append((ours, new))
                        changed.append(ours)
                        continue
                    new = self.avg_fn(ours, new, count)
                ours.assign_(new.to(ours.dtype))
                changed.append(ours)
            if self.multi_avg_fn is not None and together:
                averaged, values = (list(column) for column in zip(*together, strict=True))
                self.multi_avg_fn(averaged, values, count)
            if not self.use_buffers:
                for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                    ours.assign_(theirs.detach().to(ours.device).to(ours.dtype))
            if changed:
                vkml.realize_by_device(changed)
            self.n_averaged.assign_(vkml.tensor(count + 1, dtype=vkml.int64, device=vkml.cpu))


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of batch norms anew: averaged weights never made any.

    Args:
        loader: Gives batches; of tuples and lists the first entry is the model's input.
        model: Whose statistics are set.
        device: Where batches are moved to; nowhere if None.
    """
    norms = [m for m in model.modules() if isinstance(m, BatchNorm1d | BatchNorm2d)]
    norms = [norm for norm in norms if norm.running_mean is not None]
    if not norms:
        return
    was_training = {id(module): module.training for module in model.modules()}
    momenta = [norm.momentum for norm in norms]
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # averages all batches equally
    with no_grad():
        for batch in loader:
            inputs = batch[0] if isinstance(batch, list | tuple) else batch
            result = model(inputs if device is None else inputs.to(device))
            if isinstance(result, Tensor):
                result.realize()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    for module in model.modules():
        module.training = was_training[id(module)]


class SWALR(LRScheduler):
    """Moves from the present rate to `swa_lr` and stays there.

    Args:
        optimizer: Whose rates are set.
        swa_lr: The last rate, for all groups or for each.
        anneal_epochs: How many steps the move takes.
        anneal_strategy: `cos` or `linear`.
        last_epoch: The last step that was done; -1 to begin.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear") or anneal_epochs < 0:
            raise vkml.ArgumentError(
                f"[SWALR] anneal_strategy is {anneal_strategy!r} and anneal_epochs "
                f"{anneal_epochs}. Pass 'cos' or 'linear', and a number from 0."
            )
        groups = optimizer.param_groups
        rates = swa_lr if isinstance(swa_lr, list) else [swa_lr] * len(groups)
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs = anneal_epochs
        self.anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How far the rate has moved after a step, from 0 to 1."""
        if self.anneal_epochs == 0:
            return 1.0
        time = min(1.0, max(0.0, step / self.anneal_epochs))
        return (1 - math.cos(math.pi * time)) / 2 if self.anneal_strategy == "cos" else time

    def get_lr(self) -> list[float]:
        """The rate of each group for step `last_epoch`."""
        before = self._share(self.last_epoch - 1)
        now = self._share(self.last_epoch)
        rates = []
        for group in self.optimizer.param_groups:
            if before == 1.0:
                rates.append(group["swa_lr"])
                continue
            # The rate of the beginning, from the present one.
            began = (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(now * group["swa_lr"] + (1 - now) * began)
        return rates


_check_arguments(globals())
