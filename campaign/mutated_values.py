"""Any JSON value or tensor of a file, altered by somebody who knows the format: the checksum is then made right."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from campaign.mutated_bytes import places

NAN, INF = float("nan"), float("inf")


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


#: What a JSON value is replaced by.
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, 255, 10**6, 2**31, 2**53, 2**63, -(10**18), 10**30, 10**400),
    *(
        0.5,
        -1.5,
        1e-300,
        1e308,
        -1e308,
        "",
        "x",
        "tree",
        "nan",
        "\x1b]0;x\x07",
        "\u202e",
        "\ud800",
        "é" * 5000,
        "0" * 99,
    ),
    *([], {}, [[]], [None], [0] * 1000, {"x": {}}, {"value": 1}, {"float": "nan"}, {"tuple": []}, {"dict": []}),
    *({"object": "KFold", "parameters": {}}, {"object": "Tree", "parameters": {"max_leaf_nodes": 10**9}}, _nested(100)),
]
#: What an entry of a tensor is replaced by.
NUMBERS = [0, 1, -1, 2, 3, 7, 100, 127, 255, 256, 32767, -32768, 2**31 - 1, -(2**31), 2**62, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e300, -1e300, 1.7e308, 3.5e38, NAN, INF, -INF]
DTYPES = [torch.float64, torch.float32, torch.int64, torch.int32, torch.int16, torch.uint8]


def mutated(meta: dict[str, Any], tensors: dict[str, Tensor], rng: random.Random) -> tuple[dict[str, Any], Any]:
    """A copy of the contents of a file, altered in one to three places."""
    meta, tensors = deepcopy(meta), dict(tensors)
    for _ in range(rng.choice([1, 1, 1, 1, 2, 3])):
        if tensors and rng.random() < 0.55:
            _alter_tensor(tensors, rng)
        else:
            _alter_value(meta, rng)
    return meta, tensors


def _alter_value(meta: dict[str, Any], rng: random.Random) -> None:
    everywhere = list(places({"": meta}))[1:]
    if not everywhere:
        return
    holder, key = rng.choice(everywhere)
    before, way = holder[key], rng.random()
    if way < 0.1:
        del holder[key]
    elif way < 0.2:
        other, place = rng.choice(everywhere)
        # a value within itself would have no end
        holder[key], other[place] = deepcopy(other[place]), deepcopy(before)
    elif way < 0.5 and isinstance(before, int | float) and not isinstance(before, bool):
        holder[key] = rng.choice([before + 1, before - 1, -before, before * 2, before * 10**6])
    elif way < 0.5 and isinstance(before, list) and before:
        changes: list[Any] = [before[:-1], before[::-1], before * 2, [*before, before[0]], [deepcopy(before)]]
        holder[key] = rng.choice(changes)
    elif way < 0.5 and isinstance(before, str):
        holder[key] = rng.choice([before + "x", before[:-1], before.upper(), before * 50, "\n" + before])
    else:
        holder[key] = deepcopy(rng.choice(VALUES))


def _alter_tensor(tensors: dict[str, Tensor], rng: random.Random) -> None:
    name = rng.choice(sorted(tensors))
    own, way = tensors[name].clone(), rng.random()
    if way < 0.05:
        del tensors[name]
    elif way < 0.1:
        tensors[rng.choice([name + "x", rng.choice(sorted(tensors))])] = own
    elif way < 0.35:
        tensors[name] = rng.choice(SHAPES)(own, rng)
    elif own.numel():
        tensors[name] = rng.choice(ENTRIES)(own, rng)


def _cast(own: Tensor, rng: random.Random) -> Tensor:
    return own.nan_to_num(0).to(rng.choice(DTYPES))


Change = Callable[[Tensor, random.Random], Tensor]
SHAPES: list[Change] = [
    _cast,
    lambda own, rng: own[..., None],
    lambda own, rng: own.flatten(),
    lambda own, rng: own.flatten()[: rng.randrange(1 + own.numel())],
    lambda own, rng: own[:0],
    lambda own, rng: own.transpose(0, -1).contiguous() if own.ndim else own[None],
    lambda own, rng: torch.cat([own, own]) if own.ndim else own[None],
    lambda own, rng: own.new_zeros(rng.choice([(), (0,), (1,), (3,), (10_000,), (2, 2, 2)])),
]


def _entry(own: Tensor, rng: random.Random) -> Tensor:
    flat, place = own.view(-1), rng.randrange(own.numel())
    if own.is_floating_point():
        flat[place] = torch.tensor(rng.choice(FLOATS), dtype=torch.float64).to(own.dtype)
        return own
    most, value = torch.iinfo(own.dtype), rng.choice([*NUMBERS, own.numel(), own.numel() - 1, place])
    flat[place] = min(max(value, most.min), most.max)
    return own


def _neighbour(own: Tensor, rng: random.Random) -> Tensor:
    flat, place = own.view(-1), rng.randrange(own.numel())
    flat[place] += rng.choice([1, -1]) if not own.is_floating_point() else rng.choice([1e-9, 0.1, -0.1])
    return own


def _exchanged(own: Tensor, rng: random.Random) -> Tensor:
    flat, one, other = own.view(-1), rng.randrange(own.numel()), rng.randrange(own.numel())
    flat[one], flat[other] = flat[other].clone(), flat[one].clone()
    return own


def _filled(own: Tensor, rng: random.Random) -> Tensor:
    return torch.full_like(own, rng.choice([0, 1, 3]))


ENTRIES: list[Change] = [
    _entry,
    _entry,
    _entry,
    _neighbour,
    _exchanged,
    _filled,
    lambda own, rng: own.flip(0) if own.ndim else own,
    lambda own, rng: own.roll(rng.choice([1, -1])),
    lambda own, rng: own * rng.choice([2, -1, 0.5]) if own.is_floating_point() else 1 + own,
    lambda own, rng: own.sort(0).values if own.ndim else own,
]
