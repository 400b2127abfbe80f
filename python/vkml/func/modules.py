"""Calling a module with parameters that are not its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import vkml
from vkml import Tensor
from vkml.nn import Module


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module as if these tensors were its parameters and buffers.

    Args:
        module: What is called. It is the same afterwards.
        parameter_and_buffer_dicts: Tensors by dotted name, in one dictionary or several.
        args: The call's argument, or a tuple of arguments.
        kwargs: The call's keyword arguments.
        tie_weights: Whether a parameter that the module holds under several names is replaced under
            all of them when one is given.
        strict: Whether every parameter and buffer must be given.

    Raises:
        ArgumentError: A name is unknown, is given twice, or is missing under `strict`.
    """
    given = _merged(parameter_and_buffer_dicts)
    places = _places(module)
    unknown = [name for name in given if name not in places]
    missing = [name for name in places if name not in given] if strict else []
    if unknown or missing:
        faults = [f"unexpected: {', '.join(unknown)}"] if unknown else []
        faults += [f"missing: {', '.join(missing)}"] if missing else []
        raise vkml.ArgumentError(
            f"[functional_call] {type(module).__name__}: {'; '.join(faults)}. The names are those "
            "of named_parameters() and named_buffers()."
        )
    replaced: dict[str, Tensor] = dict(given)
    if tie_weights:
        by_tensor = {id(places[name][0][places[name][1]]): value for name, value in given.items()}
        for name, (table, key) in places.items():
            if id(table[key]) in by_tensor:
                replaced.setdefault(name, by_tensor[id(table[key])])
    before = {name: places[name][0][places[name][1]] for name in replaced}
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        for name, value in replaced.items():
            table, key = places[name]
            table[key] = value
        return module(*positional, **(kwargs or {}))
    finally:
        for name, value in before.items():
            table, key = places[name]
            table[key] = value


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and buffers of models of one structure, stacked: an ensemble for `vmap`.

    Args:
        models: Modules of one class with parameters and buffers of the same names and shapes.

    Returns:
        (parameters, buffers), by dotted name, with an axis for the models in front. Parameters are
        new leaves that require gradients where the models' do.
    """
    if len({type(model) for model in models}) != 1:
        raise vkml.ArgumentError(
            f"[stack_module_state] models are {[type(model).__name__ for model in models]}. Pass "
            "one or more of one class."
        )

    def stacked(tables: list[dict[str, Any]]) -> dict[str, Tensor]:
        return {
            name: vkml.stack([table[name].detach() for table in tables])
            .clone()
            .requires_grad_(tables[0][name].requires_grad)
            for name in tables[0]
        }

    parameters = stacked([dict(model.named_parameters()) for model in models])
    return parameters, stacked([dict(model.named_buffers()) for model in models])


def _merged(
    dictionaries: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
) -> dict[str, Tensor]:
    merged: dict[str, Tensor] = {}
    listed = [dictionaries] if isinstance(dictionaries, Mapping) else list(dictionaries)
    for dictionary in listed:
        twice = sorted(set(dictionary) & set(merged))
        if twice:
            raise vkml.ArgumentError(
                f"[functional_call] {', '.join(twice)}: given in two dictionaries. Give each once."
            )
        merged.update(dictionary)
    return merged


def _places(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """For each dotted name, the table that holds the tensor, and its name there."""
    places: dict[str, tuple[dict[str, Any], str]] = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    places[f"{prefix}.{name}" if prefix else name] = (table, name)
    return places
