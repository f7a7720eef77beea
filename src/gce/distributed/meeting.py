"""How the processes of one start find each other, where those of an earlier start have left their addresses.

``torchrun`` starts killed processes again with the store of the first start (torch 2.13), in which the addresses of the
dead still are: who reads before the new one is written connects to nobody. Its count of restarts differs between
machines, so it cannot tell starts apart.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

#: Seconds between two looks at the store.
_PAUSE = 0.005


def agree_on_start(store: Any, rank: int, size: int, timeout: float) -> str:
    """A name that all processes of this start have in common, and those of no other.

    The first process makes the name and tells it to whoever is there, under the number that this one has made for
    itself, until it has heard from every process that the name has arrived. What the dead have left is answered, too,
    and read by nobody.

    Parameters
    ----------
    store : torch.distributed.Store
        That of all starts.
    rank : int
        The number of this process.
    size : int
        How many processes there are.
    timeout : float
        Seconds to wait for the others.

    Returns
    -------
    str

    Raises
    ------
    RuntimeError
        A process did not come.
    """
    own = uuid4().hex
    if rank:
        store.set(f"gce/here/{rank}", own)
        store.wait([f"gce/name/{own}"], timedelta(seconds=timeout))
        name = store.get(f"gce/name/{own}").decode()
        store.set(f"gce/heard/{name}/{rank}", "")
        return str(name)
    absent, end = set(range(1, size)), time.monotonic() + timeout
    while absent:
        for other in sorted(absent):
            if store.check([f"gce/heard/{own}/{other}"]):
                absent.remove(other)
            elif store.check([f"gce/here/{other}"]):
                store.set(f"gce/name/{store.get(f'gce/here/{other}').decode()}", own)
        if absent and time.monotonic() > end:
            raise RuntimeError(f"process {min(absent)} of {size} did not come within {timeout:g} seconds")
        time.sleep(_PAUSE)
    return own
