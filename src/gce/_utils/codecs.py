"""The contents of a file: JSON values and tensors by name, with validated access.

A file may come from an untrusted source: every value is read with the type, shape and range that it must have, and a
value that is invalid raises a ValueError with its name.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

#: Integers in files, the narrowest first.
WIDTHS = (torch.uint8, torch.int16, torch.int32, torch.int64)


def narrowed(tensor: Tensor) -> Tensor:
    """Integers in the narrowest type of a file that holds them.

    Parameters
    ----------
    tensor : Tensor
        Integers.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import torch
    >>> from gce._utils.codecs import narrowed
    >>> narrowed(torch.tensor([0, 255])).dtype, narrowed(torch.tensor([-1])).dtype
    (torch.uint8, torch.int16)
    """
    if not tensor.numel():
        return tensor.to(WIDTHS[0])
    least, most = int(tensor.min()), int(tensor.max())
    fits = (w for w in WIDTHS if torch.iinfo(w).min <= least and most <= torch.iinfo(w).max)
    return tensor.to(next(fits))


@dataclass
class Parts:
    """JSON values and tensors, by name.

    Parameters
    ----------
    meta : dict
        JSON values.
    tensors : dict of Tensor
        Tensors.
    """

    meta: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def add(self, name: str, parts: Parts) -> None:
        """Add nested parts under a name.

        Parameters
        ----------
        name : str
            The name.
        parts : Parts
            The nested parts.
        """
        self.meta[name] = parts.meta
        self.tensors.update({f"{name}.{key}": tensor for key, tensor in parts.tensors.items()})

    def within(self, name: str) -> Parts:
        """The nested parts under a name.

        Parameters
        ----------
        name : str
            The name.

        Returns
        -------
        Parts
        """
        meta = self._value(name)
        if not isinstance(meta, dict):
            raise ValueError(f"{name!r} must be a JSON object")
        start = f"{name}."
        return Parts(meta, {key[len(start) :]: t for key, t in self.tensors.items() if key.startswith(start)})

    def integer(self, name: str, least: int = 0, most: int = 2**31) -> int:
        """An integer from ``least`` to ``most``.

        Parameters
        ----------
        name : str
            Name of the value.
        least, most : int
            Range of valid integers.
        """
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{name!r} must be an integer from {least} to {most}")
        return value

    def number(self, name: str, least: float = -math.inf) -> float:
        """A finite number of at least ``least``.

        Parameters
        ----------
        name : str
            Name of the value.
        least : float
            Least valid number.
        """
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < least:
            raise ValueError(f"{name!r} must be a number of at least {least}")
        return float(value)

    def flag(self, name: str) -> bool:
        """A boolean."""
        value = self._value(name)
        if not isinstance(value, bool):
            raise ValueError(f"{name!r} must be true or false")
        return value

    def choice(self, name: str, among: Collection[str]) -> Any:
        """One of the strings ``among``.

        Parameters
        ----------
        name : str
            Name of the value.
        among : collection of str
            Valid strings.
        """
        value = self._value(name)
        if not isinstance(value, str) or value not in among:
            raise ValueError(f"{name!r} must be one of {', '.join(map(repr, among))}")
        return value

    def words(self, name: str) -> list[str]:
        """A list of strings."""
        value = self._value(name)
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise ValueError(f"{name!r} must be a list of strings")
        return value

    def tensor(self, name: str, *shape: int | None, dtype: torch.dtype = torch.float64) -> Tensor:
        """A tensor of the given dtype and shape, where None is any positive length.

        Parameters
        ----------
        name : str
            Name of the tensor.
        *shape : int or None
            Lengths of its dimensions.
        dtype : torch.dtype, default=torch.float64
            Its dtype.
        """
        tensor = self.tensors.get(name)
        if tensor is None:
            raise ValueError(f"the tensor {name!r} is missing")
        fits = len(tensor.shape) == len(shape) and all(
            length == expected if expected is not None else length > 0
            for length, expected in zip(tensor.shape, shape, strict=True)
        )
        if tensor.dtype != dtype or not fits:
            expected = tuple("any" if length is None else length for length in shape)
            raise ValueError(
                f"the tensor {name!r} must be {dtype} of shape {expected}, but is {tensor.dtype} of "
                f"{tuple(tensor.shape)}"
            )
        return tensor

    def whole(self, name: str, *shape: int | None) -> Tensor:
        """A tensor of integers, stored in any width, as int64.

        Parameters
        ----------
        name : str
            Name of the tensor.
        *shape : int or None
            Lengths of its dimensions.
        """
        tensor = self.tensors.get(name)
        dtype = tensor.dtype if tensor is not None and tensor.dtype in WIDTHS else torch.int64
        return self.tensor(name, *shape, dtype=dtype).long()

    def finite(self, name: str, *shape: int | None, dtype: torch.dtype = torch.float64) -> Tensor:
        """A tensor of finite numbers of the given dtype and shape.

        Parameters
        ----------
        name : str
            Name of the tensor.
        *shape : int or None
            Lengths of its dimensions.
        dtype : torch.dtype, default=torch.float64
            Its dtype.
        """
        tensor = self.tensor(name, *shape, dtype=dtype)
        if not tensor.isfinite().all():
            raise ValueError(f"the tensor {name!r} has values that are not finite")
        return tensor

    def mask(self, name: str, *shape: int | None) -> Tensor:
        """A boolean tensor, which files store as bytes 0 and 1.

        Parameters
        ----------
        name : str
            Name of the tensor.
        *shape : int or None
            Lengths of its dimensions.
        """
        tensor = self.tensor(name, *shape, dtype=torch.uint8)
        if (tensor > 1).any():
            raise ValueError(f"the tensor {name!r} must contain only 0 and 1")
        return tensor.bool()

    def _value(self, name: str) -> Any:
        if name not in self.meta:
            raise ValueError(f"{name!r} is missing")
        return self.meta[name]
