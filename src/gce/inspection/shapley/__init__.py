"""Shapley values of fitted models."""

from gce.inspection.shapley.explanation import ShapExplanation

__all__ = ["ShapExplanation"]
