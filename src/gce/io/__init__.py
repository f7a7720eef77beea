"""Model files, checkpoints and ONNX export."""

from gce.io.container import ModelFileError

__all__ = ["ModelFileError"]
