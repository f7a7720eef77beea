"""Fitted models for other runtimes: encoder, ensemble and inverse link in one ONNX graph."""

from gce.export.onnx import to_onnx

__all__ = ["to_onnx"]
