"""Settings of a model file that would do harm if they were orders."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import gce
from campaign.model_uses import Used, check, predict
from campaign.sources import Source
from gce.io import container

#: Parameters, with values that a stranger might give them.
ORDERS: list[tuple[str, Any]] = [
    *(("n_jobs", value) for value in (10**6, 2**31, 10**30, -1, -(10**6))),
    *(("device", value) for value in ("cuda", "cuda:99", "auto", "meta", "/dev/null", "\x1b[31m")),
    *(("time_limit", value) for value in (1e-9, 1e308, {"float": "inf"})),
    *(("verbose", value) for value in (True, 10**9, 2**63)),
    *(("callbacks", value) for value in (["print"], "os.system", [{"object": "Tree", "parameters": {}}])),
    *(("scoring", value) for value in ("os.system", "\x1b]0;x\x07", "r2")),
    *(("random_state", value) for value in (-1, 2**70, "x")),
    *(("warm_start", value) for value in (True, 1)),
    *(("cv", value) for value in (1, -3, "x", {"object": "LeaveOneOut", "parameters": {}})),
]


def settings(own: Source, path: Path, rng: random.Random) -> str:
    """Use a model whose file has such a setting, and fit it again; what came of it."""
    meta, tensors = container.read(own.path)
    name, value = rng.choice(ORDERS)
    known = gce.load(own.path).get_params(deep=False)
    if name not in known:
        name, value = "n_jobs", 10**6
    meta["parameters"][name] = value
    container.write(path, meta, tensors)
    try:
        model = gce.load(path)
    except gce.ModelFileError:
        return "refused"
    check(model.device == "cpu", "a file chose the device")
    predict(Used(model, own.X, own.y, path))
    try:
        model.fit(own.X, own.y)
    except ValueError:
        return "used, refused by a fit"
    return "used and fitted again"
