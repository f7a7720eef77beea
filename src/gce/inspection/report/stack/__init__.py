"""The HTML report on a stack: weights and their reasons, the certificate, and prediction time."""

from gce.inspection.report.stack.page import write

__all__ = ["write"]
