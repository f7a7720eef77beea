"""Arrays in files of a working folder, for data that is larger than memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.memory import format_gib


class Workspace:
    """A folder of memory-mapped arrays.

    Parameters
    ----------
    folder : Path
        Exists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._made = folder, 0

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array of zeros whose memory is a file.

        Parameters
        ----------
        name : str
            What the name of the file ends in.
        shape : tuple of int
            Its shape.
        dtype : dtype
            Of its values.

        Returns
        -------
        array

        Raises
        ------
        OSError
            The disk has too little space.
        """
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if size == 0:
            return np.zeros(shape, dtype)
        # a file that is mapped must not be written again
        self._made += 1
        path = self.folder / f"{self._made}-{name}"
        try:
            with path.open("w+b") as file:
                if os.name == "posix":
                    # before it has a size: the space is given back with the mapping, also where the process is killed
                    path.unlink()
                _allocate(file.fileno(), size)
                return np.memmap(file, dtype, "r+", shape=shape)
        except OSError as error:
            if not self.folder.is_dir():
                raise FileNotFoundError(
                    f"the working folder {str(self.folder)!r} was removed during the fit: give Shards a folder that "
                    "nobody cleans up meanwhile"
                ) from error
            path.unlink(missing_ok=True)
            raise OSError(
                error.errno,
                f"the working folder {str(self.folder)!r} has no room for {format_gib(size)} ({error.strerror}): give "
                "Shards a folder on a larger disk",
            ) from error


def _allocate(file: int, size: int) -> None:
    """Take the space on the disk now: writing to a mapped file without it would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


@contextmanager
def workspace(folder: str | Path | None = None) -> Iterator[Workspace]:
    """A new working folder, which is removed at the end.

    Parameters
    ----------
    folder : str or Path, optional
        Where it is made. Default: the folder of the system for temporary files.

    Yields
    ------
    Workspace
    """
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="gce-", dir=folder))
    try:
        yield Workspace(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)
