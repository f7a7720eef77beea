"""Torch devices, and conversion of tensors to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def find_device(name: str | torch.device) -> torch.device:
    """An available torch device.

    Parameters
    ----------
    name : str or torch.device
        Name of the device; "auto" is a GPU if there is one, else the CPU.

    Raises
    ------
    ValueError
        The device is not available.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device={name!r} is not available ({reason}); try 'cpu' or 'auto'") from error
    if device.type == "meta":
        raise ValueError(f"device={name!r} keeps no values; try 'cpu' or 'auto'")
    return device


def on_cpu(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors on the CPU, in one transfer from another device: each transfer waits for all that the device has to do.

    Parameters
    ----------
    tensors : sequence of Tensor
        Of float64, or of integers below 2^53.

    Returns
    -------
    list of Tensor
        Those that are on the CPU are not copied.
    """
    away = [tensor for tensor in tensors if tensor.device.type != "cpu"]
    if not away:
        return list(tensors)
    flat = torch.cat([tensor.double().flatten() for tensor in away]).cpu()
    parts = iter(flat.split([tensor.numel() for tensor in away]))
    return [
        tensor if tensor.device.type == "cpu" else next(parts).view(tensor.shape).to(tensor.dtype) for tensor in tensors
    ]


def as_numpy(values: Any, name: str = "X") -> Any:
    """A torch tensor as an array; anything else unchanged.

    Parameters
    ----------
    values : object
        What a user gave.
    name : str, default="X"
        Name of the parameter in errors.

    Raises
    ------
    ValueError
        The tensor is sparse, nested, quantized, or on a device that keeps no values.
    """
    if not isinstance(values, Tensor):
        return values
    own = values.detach().float() if values.dtype == torch.bfloat16 else values.detach()
    try:
        return own.cpu().numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise ValueError(
            f"{name} is a torch tensor of layout {values.layout}, type {values.dtype} and device {values.device}, "
            "which has no array of its values: give a dense tensor of numbers, for instance with tensor.to_dense()"
        ) from error
