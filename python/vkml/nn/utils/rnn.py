"""Sequences of different lengths: padded to one tensor, or packed time by time without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import vkml
from vkml import Tensor
from vkml.argument_errors import check_arguments as _check_arguments


class PackedSequence(NamedTuple):
    """Sequences of different lengths, longest first, their elements of one time side by side.

    Attributes:
        data: Shape (sum of lengths, ...): time 0 of all sequences, then time 1 of those that have
            one, and so on.
        batch_sizes: How many sequences have an element at each time; int64, on the CPU.
        sorted_indices: Where each sequence of the packed order stood before, or None if the
            sequences came in that order.
        unsorted_indices: The inverse.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, target: vkml.DeviceLike | vkml.dtype) -> PackedSequence:
        """The same with the elements on another device or in another dtype."""
        return self._replace(data=self.data.to(target))


def _whole_numbers(values: Tensor | Sequence[int]) -> list[int]:
    given = values.tolist() if isinstance(values, Tensor) else values
    return [int(value) for value in given]


def _row_of(input: Tensor, batch_first: bool) -> Tensor:
    """(time * batch, ...) from a padded tensor."""
    by_time = input.transpose(0, 1) if batch_first else input
    return by_time.reshape(-1, *by_time.shape[2:])


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs sequences that are padded to one length.

    Args:
        input: Shape (time, batch, ...).
        lengths: Of each sequence, at least 1.
        batch_first: Whether the batch, rather than time, is the first axis.
        enforce_sorted: Whether sequences out of order, longest first, raise; they are sorted
            otherwise.

    Raises:
        ArgumentError: For lengths that do not fit.
    """
    counts = _whole_numbers(lengths)
    times, batch = input.shape[:2] if not batch_first else (input.shape[1], input.shape[0])
    if len(counts) != batch or not counts or min(counts) < 1 or max(counts) > times:
        raise vkml.ArgumentError(
            f"[pack_padded_sequence] lengths {counts} do not fit {batch} sequences of up to "
            f"{times} elements. Each has at least one"
        )
    order = sorted(range(batch), key=lambda i: -counts[i])
    is_sorted = counts == sorted(counts, reverse=True)
    if enforce_sorted and not is_sorted:
        raise vkml.ArgumentError(
            f"[pack_padded_sequence] lengths {counts} do not descend. Pass enforce_sorted=False"
        )
    sizes = [sum(count > time for count in counts) for time in range(max(counts))]
    places = [time * batch + order[i] for time, size in enumerate(sizes) for i in range(size)]
    index = vkml.tensor(places, dtype=vkml.int64, device=input.device)
    data = vkml.take(_row_of(input, batch_first), index, 0)
    batch_sizes = vkml.tensor(sizes, dtype=vkml.int64, device=vkml.cpu)
    if enforce_sorted:
        return PackedSequence(data, batch_sizes)
    inverse = sorted(range(batch), key=lambda i: order[i])
    both = [vkml.tensor(v, dtype=vkml.int64, device=input.device) for v in (order, inverse)]
    return PackedSequence(data, batch_sizes, *both)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undoes `pack_padded_sequence`.

    Args:
        sequence: What was packed.
        batch_first: Whether the batch, rather than time, is the first axis of the result.
        padding_value: What stands where sequences have ended.
        total_length: Extent of the time axis; the longest sequence's if None.

    Returns:
        The padded tensor (time, batch, ...), and the lengths (int64, on the CPU).
    """
    sizes = _whole_numbers(sequence.batch_sizes)
    times = len(sizes) if total_length is None else total_length
    if times < len(sizes):
        raise vkml.ArgumentError(
            f"[pad_packed_sequence] total_length={times} is less than the longest sequence, which "
            f"has {len(sizes)} elements"
        )
    batch = sizes[0]
    order = list(range(batch))
    if sequence.unsorted_indices is not None:
        order = _whole_numbers(sequence.unsorted_indices)
    padding = sequence.data.shape[0]
    places, start = [padding] * (times * batch), 0
    for time, size in enumerate(sizes):
        for i, rank in enumerate(order):
            if rank < size:
                places[time * batch + i] = start + rank
        start += size
    row = vkml.full(
        (1, *sequence.data.shape[1:]),
        padding_value,
        dtype=sequence.data.dtype,
        device=sequence.data.device,
    )
    index = vkml.tensor(places, dtype=vkml.int64, device=sequence.data.device)
    rows = vkml.take(vkml.cat([sequence.data, row]), index, 0)
    padded = rows.reshape(times, batch, *sequence.data.shape[1:])
    counts = [sum(size > rank for size in sizes) for rank in order]
    lengths = vkml.tensor(counts, dtype=vkml.int64, device=vkml.cpu)
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Tensors (length, ...) as one (longest, batch, ...).

    Args:
        sequences: Tensors whose first extents may differ.
        batch_first: Whether the batch is the first axis of the result.
        padding_value: What stands where sequences are shorter.
        padding_side: `right`, behind each sequence, or `left`.
    """
    parts = list(sequences)
    if padding_side not in ("left", "right"):
        raise vkml.ArgumentError(
            f"[pad_sequence] padding_side is {padding_side!r}. Pass 'left' or 'right'"
        )
    longest = max(part.shape[0] for part in parts)
    padded = []
    for part in parts:
        missing = longest - part.shape[0]
        amounts = (0, missing) if padding_side == "right" else (missing, 0)
        padded.append(vkml.pad(part, (0, 0) * (part.ndim - 1) + amounts, value=padding_value))
    return vkml.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences (length, ...) of a padded tensor, as views."""
    by_batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [by_batch[i, :count] for i, count in enumerate(_whole_numbers(lengths))]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors (length, ...); see `pack_padded_sequence`."""
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The tensors that `pack_sequence` was given."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


_check_arguments(globals())
