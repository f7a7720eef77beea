"""Fits of rows that are divided among processes, on ``torch.distributed``.

Where a process group stands, ``fit`` of :class:`gce.Shards` is one fit of all its processes: each has some of the
logical shards, and all end with the same model. See docs/scaling.md.
"""

from typing import TYPE_CHECKING

from gce._utils.lazy import lazy_names

if TYPE_CHECKING:
    from gce.distributed.division import Division
    from gce.distributed.world import ProcessError, World, find_world, process_group

__all__ = ["Division", "ProcessError", "World", "find_world", "process_group"]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "world") | {"Division": "division"})


def __dir__() -> list[str]:
    return __all__
