"""Models and checkpoints in files."""

from gce.storage.container import ModelFileError

__all__ = ["ModelFileError"]
