"""Where and with what a result came about: part of every result file."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "xgboost-cpu", "optuna")


def machine() -> dict[str, Any]:
    """Processor, cores, GPU and versions."""
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpu": _processor(), "cores": os.cpu_count(), "gpu": gpu, "versions": _versions()}


def _versions() -> dict[str, str]:
    import gce

    found = {"python": platform.python_version(), "gce": f"{gce.__version__}{_revision()}"}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _revision() -> str:
    """Of the checkout, as a local version (+abc1234); nothing where there is no git."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return f"+{done.stdout.strip()}"
    return ""


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
