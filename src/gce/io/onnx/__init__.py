"""Export of fitted models to ONNX: encoder, ensemble and inverse link in one graph."""

from gce.io.onnx.export import to_onnx

__all__ = ["to_onnx"]
