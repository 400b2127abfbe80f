"""Recurrent layers and cells: RNN, LSTM, GRU, with PyTorch's names and weight layout.

A layer projects all times of its input by one product; the recurrence itself is recorded step by
step, so that a sequence is one graph. Packed sequences take the same steps, with fewer rows where
sequences have ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import vkml
from vkml import Tensor
from vkml.nn import functional, init
from vkml.nn.module import Module
from vkml.nn.parameter import Parameter
from vkml.nn.utils.rnn import PackedSequence

Input = TypeVar("Input", Tensor, PackedSequence)
State = Tensor | tuple[Tensor, Tensor]
Step = Callable[[Tensor, Tensor, list[Tensor]], list[Tensor]]


def _rnn_step(activation: Callable[[Tensor], Tensor]) -> Step:
    def step(projected: Tensor, recurrent: Tensor, state: list[Tensor]) -> list[Tensor]:
        return [activation(projected + recurrent)]

    return step


def _lstm_step(projected: Tensor, recurrent: Tensor, state: list[Tensor]) -> list[Tensor]:
    """Gates in the order input, forget, cell, output (Hochreiter and Schmidhuber, 1997)."""
    gates = (projected + recurrent).chunk(4, -1)
    cell = gates[1].sigmoid() * state[1] + gates[0].sigmoid() * gates[2].tanh()
    return [gates[3].sigmoid() * cell.tanh(), cell]


def _gru_step(projected: Tensor, recurrent: Tensor, state: list[Tensor]) -> list[Tensor]:
    """Gates in the order reset, update, new (Cho et al., 2014)."""
    of_input, of_state = projected.chunk(3, -1), recurrent.chunk(3, -1)
    reset = (of_input[0] + of_state[0]).sigmoid()
    update = (of_input[1] + of_state[1]).sigmoid()
    new = (of_input[2] + reset * of_state[2]).tanh()
    return [new + update * (state[0] - new)]


class _Cell(Module):
    """What cells share: the parameters, and one step."""

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        gates: int,
        states: int,
        step: Step,
        device: vkml.DeviceLike | None,
        dtype: vkml.dtype | None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self._states = states
        self._step = step
        rows = gates * hidden_size
        self.weight_ih = Parameter(vkml.empty((rows, input_size), dtype=dtype, device=device))
        self.weight_hh = Parameter(vkml.empty((rows, hidden_size), dtype=dtype, device=device))
        for name in ("bias_ih", "bias_hh"):
            value = Parameter(vkml.empty((rows,), dtype=dtype, device=device)) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new parameters: uniform on +-1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _advance(self, input: Tensor, state: list[Tensor] | None) -> list[Tensor]:
        if state is None:
            shape = (*input.shape[:-1], self.hidden_size)
            zeros = vkml.zeros(shape, dtype=input.dtype, device=input.device)
            state = [zeros] * self._states
        projected = functional.linear(input, self.weight_ih, self.bias_ih)
        recurrent = functional.linear(state[0], self.weight_hh, self.bias_hh)
        return self._step(projected, recurrent, state)

    def extra_repr(self) -> str:
        """The constructor's arguments."""
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias=False"


def _activation(nonlinearity: str, owner: str) -> Callable[[Tensor], Tensor]:
    if nonlinearity == "tanh":
        return vkml.tanh
    if nonlinearity == "relu":
        return vkml.relu
    raise vkml.ArgumentError(f"[{owner}] nonlinearity is {nonlinearity!r}. Pass 'tanh' or 'relu'.")


class RNNCell(_Cell):
    """One step of `RNN`: h' = activation(W_ih x + b_ih + W_hh h + b_hh).

    Args:
        input_size: Width of the input.
        hidden_size: Width of the state.
        bias: Whether there are offsets.
        nonlinearity: `tanh` or `relu`.
        device: Where the parameters live.
        dtype: Of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        step = _rnn_step(_activation(nonlinearity, "RNNCell"))
        super().__init__(input_size, hidden_size, bias, 1, 1, step, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Maps (batch, input_size) and a state (batch, hidden_size) to the next state."""
        return self._advance(input, None if hx is None else [hx])[0]


class GRUCell(_Cell):
    """One step of `GRU`; arguments as `RNNCell`, without a nonlinearity."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, 1, _gru_step, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Maps (batch, input_size) and a state (batch, hidden_size) to the next state."""
        return self._advance(input, None if hx is None else [hx])[0]


class LSTMCell(_Cell):
    """One step of `LSTM`; arguments as `RNNCell`, without a nonlinearity."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, 2, _lstm_step, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Maps (batch, input_size) and (state, cell) to the next (state, cell)."""
        hidden, cell = self._advance(input, None if hx is None else list(hx))
        return hidden, cell


class _Recurrent(Module):
    """What RNN, LSTM and GRU share: the parameters of all layers, and the walk along time.

    Args:
        input_size: Width of the input.
        hidden_size: Width of the state.
        num_layers: How many layers stand on one another.
        bias: Whether there are offsets.
        batch_first: Whether the batch, rather than time, is the first axis.
        dropout: Probability with which elements between layers are zeroed in training.
        bidirectional: Whether a second set of layers reads time backwards.
        proj_size: The width that the output of an LSTM is projected to (Sak et al., 2014); 0 for
            no projection.
        device: Where the parameters live.
        dtype: Of the parameters.

    Attributes:
        weight_ih_l0: Shape (gates * hidden_size, input_size); of later layers and of the reversed
            direction (`_reverse`) likewise.
        weight_hh_l0: Shape (gates * hidden_size, hidden_size).
        bias_ih_l0: Shape (gates * hidden_size,).
        bias_hh_l0: Shape (gates * hidden_size,).
        weight_hr_l0: Shape (proj_size, hidden_size), with `proj_size`; weight_hh_l0 has its width.
    """

    _gates = 1
    _states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise vkml.ArgumentError(f"[{type(self).__name__}] num_layers is {num_layers}.")
        if not 0 <= proj_size < max(hidden_size, 1):
            raise vkml.ArgumentError(
                f"[{type(self).__name__}] proj_size is {proj_size}. Pass less than hidden_size="
                f"{hidden_size}, or 0 for none."
            )
        if proj_size > 0 and self._states != 2:
            raise vkml.ArgumentError(
                f"[{type(self).__name__}] proj_size is for LSTM alone. Pass 0."
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        # What a layer gives, and what its state has.
        self._width = proj_size or hidden_size
        rows = self._gates * hidden_size
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            width = input_size if layer == 0 else self._width * directions
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width),
                    "weight_hh": (rows, self._width),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    value = Parameter(vkml.empty(shape, dtype=dtype, device=device))
                    self.register_parameter(f"{name}_{suffix}", value)
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"] if self.bidirectional else [f"l{layer}"]

    def _step(self, projected: Tensor, recurrent: Tensor, state: list[Tensor]) -> list[Tensor]:
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Draws new parameters: uniform on +-1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _stepper(self, suffix: str) -> Callable[[Tensor, list[Tensor]], list[Tensor]]:
        """One step of a layer in one direction, from a projected input."""
        bias_hh = getattr(self, f"bias_hh_{suffix}") if self.bias else None
        weight_hh = getattr(self, f"weight_hh_{suffix}")
        weight_hr = getattr(self, f"weight_hr_{suffix}") if self.proj_size > 0 else None

        def step(projected: Tensor, state: list[Tensor]) -> list[Tensor]:
            recurrent = functional.linear(state[0], weight_hh, bias_hh)
            following = self._step(projected, recurrent, state)
            if weight_hr is not None:
                following[0] = functional.linear(following[0], weight_hr)
            return following

        return step

    def _projected(self, input: Tensor, suffix: str) -> Tensor:
        bias_ih = getattr(self, f"bias_ih_{suffix}") if self.bias else None
        return functional.linear(input, getattr(self, f"weight_ih_{suffix}"), bias_ih)

    def _walk(
        self, input: Tensor, suffix: str, state: list[Tensor], backwards: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """Outputs (time, batch, hidden_size) of one layer in one direction, and its last state."""
        step, projected = self._stepper(suffix), self._projected(input, suffix)
        times = range(input.shape[0])
        outputs = []
        for time in reversed(times) if backwards else times:
            state = step(projected[time], state)
            outputs.append(state[0])
        if backwards:
            outputs.reverse()
        return vkml.stack(outputs, 0), state

    def _walk_packed(
        self,
        data: Tensor,
        sizes: list[int],
        suffix: str,
        start: list[Tensor],
        backwards: bool,
    ) -> tuple[Tensor, list[Tensor]]:
        """The same of packed data: `sizes` rows at each time, which only ever become fewer.

        A sequence that has ended leaves its state behind; read backwards it joins with its first.
        """
        step, projected = self._stepper(suffix), self._projected(data, suffix)
        ends = [sum(sizes[: time + 1]) for time in range(len(sizes))]
        times = range(len(sizes))
        rows = sizes[-1] if backwards else sizes[0]
        state = [part[:rows] for part in start]
        outputs, left = [], []
        for time in reversed(times) if backwards else times:
            size = sizes[time]
            if size < rows:
                left.append([part[size:] for part in state])
                state = [part[:size] for part in state]
            elif size > rows:
                joining = zip(state, start, strict=True)
                state = [vkml.cat([part, first[rows:size]]) for part, first in joining]
            rows = size
            state = step(projected[ends[time] - size : ends[time]], state)
            outputs.append(state[0])
        if backwards:
            outputs.reverse()
        for earlier in reversed(left):
            state = [vkml.cat([a, b]) for a, b in zip(state, earlier, strict=True)]
        return vkml.cat(outputs), state

    def _layers(
        self,
        input: Tensor,
        given: list[Tensor] | None,
        batch: int,
        walk: Callable[[Tensor, str, list[Tensor], bool], tuple[Tensor, list[Tensor]]],
    ) -> tuple[Tensor, list[Tensor]]:
        """All layers in all directions; states have the shape (layers, batch, hidden_size)."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        if given is None:
            widths = (self._width, self.hidden_size)[: self._states]
            given = [
                vkml.zeros((count, batch, width), dtype=input.dtype, device=input.device)
                for width in widths
            ]
        last: list[list[Tensor]] = []
        output = input
        for layer in range(self.num_layers):
            if layer > 0 and self.training and self.dropout > 0.0:
                output = functional.dropout(output, self.dropout)
            sides = []
            for i, suffix in enumerate(self._suffixes(layer)):
                start = [part[len(last)] for part in given]
                side, state = walk(output, suffix, start, i == 1)
                sides.append(side)
                last.append(state)
            output = sides[0] if len(sides) == 1 else vkml.cat(sides, -1)
        return output, [vkml.stack([state[i] for state in last], 0) for i in range(self._states)]

    def _run_packed(
        self, input: PackedSequence, given: list[Tensor] | None
    ) -> tuple[PackedSequence, list[Tensor]]:
        sizes = [int(size) for size in input.batch_sizes.tolist()]
        if given is not None and input.sorted_indices is not None:
            given = [part.index_select(1, input.sorted_indices) for part in given]

        def walk(
            data: Tensor, suffix: str, start: list[Tensor], backwards: bool
        ) -> tuple[Tensor, list[Tensor]]:
            return self._walk_packed(data, sizes, suffix, start, backwards)

        output, states = self._layers(input.data, given, sizes[0], walk)
        if input.unsorted_indices is not None:
            states = [part.index_select(1, input.unsorted_indices) for part in states]
        return input._replace(data=output), states

    def _run(self, input: Any, given: list[Tensor] | None) -> tuple[Any, list[Tensor]]:
        if isinstance(input, PackedSequence):
            return self._run_packed(input, given)
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise vkml.ShapeError(
                f"[{type(self).__name__}] needs (time, batch, {self.input_size}) or no batch, got "
                f"{tuple(input.shape)}."
            )
        is_single = input.ndim == 2
        if is_single:
            input = input.unsqueeze(1)
            given = None if given is None else [part.unsqueeze(1) for part in given]
        elif self.batch_first:
            input = input.transpose(0, 1)
        if input.shape[0] == 0:
            raise vkml.ShapeError(f"[{type(self).__name__}] the sequence has no elements.")
        output, states = self._layers(input, given, input.shape[1], self._walk)
        if is_single:
            return output.squeeze(1), [part.squeeze(1) for part in states]
        return (output.transpose(0, 1) if self.batch_first else output), states

    def extra_repr(self) -> str:
        """The constructor's arguments that differ from their defaults."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if not self.bias:
            text += ", bias=False"
        if self.batch_first:
            text += ", batch_first=True"
        if self.dropout:
            text += f", dropout={self.dropout}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        return text + (", bidirectional=True" if self.bidirectional else "")


class _WithOneState(_Recurrent):
    """Layers whose state is one tensor."""

    def forward(self, input: Input, hx: Tensor | None = None) -> tuple[Input, Tensor]:
        """Maps a sequence and a state to the outputs and the last state.

        Args:
            input: Shape (time, batch, input_size), or a packed sequence, as which the outputs come
                then.
            hx: Shape (layers, batch, hidden_size); zeros if None.

        Returns:
            Outputs (time, batch, hidden_size), and the state in the shape of `hx`.
        """
        output, states = self._run(input, None if hx is None else [hx])
        return output, states[0]


class RNN(_WithOneState):
    """h_t = activation(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh) (Elman, 1990).

    Args:
        input_size: Width of the input.
        hidden_size: Width of the state.
        num_layers: How many layers stand on one another.
        nonlinearity: `tanh` or `relu`.
        bias: Whether there are offsets.
        batch_first: Whether the batch, rather than time, is the first axis.
        dropout: Probability with which elements between layers are zeroed in training.
        bidirectional: Whether a second set of layers reads time backwards.
        device: Where the parameters live.
        dtype: Of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: vkml.DeviceLike | None = None,
        dtype: vkml.dtype | None = None,
    ) -> None:
        self._activation = _activation(nonlinearity, "RNN")
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )
        self.nonlinearity = nonlinearity

    def _step(self, projected: Tensor, recurrent: Tensor, state: list[Tensor]) -> list[Tensor]:
        return _rnn_step(self._activation)(projected, recurrent, state)


class GRU(_WithOneState):
    """Gated recurrent units (Cho et al., 2014); arguments as `RNN`, without a nonlinearity."""

    _gates = 3

    def _step(self, projected: Tensor, recurrent: Tensor, state: list[Tensor]) -> list[Tensor]:
        return _gru_step(projected, recurrent, state)


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); arguments as `GRU`."""

    _gates = 4
    _states = 2

    def _step(self, projected: Tensor, recurrent: Tensor, state: list[Tensor]) -> list[Tensor]:
        return _lstm_step(projected, recurrent, state)

    def forward(
        self, input: Input, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Input, tuple[Tensor, Tensor]]:
        """Maps a sequence and a (state, cell) to the outputs and the last (state, cell).

        Args:
            input: Shape (time, batch, input_size), or a packed sequence, as which the outputs come
                then.
            hx: Each of shape (layers, batch, hidden_size), the state with `proj_size` instead;
                zeros if None.

        Returns:
            Outputs (time, batch, hidden_size), and the pair in the shapes of `hx`.
        """
        output, states = self._run(input, None if hx is None else list(hx))
        return output, (states[0], states[1])
