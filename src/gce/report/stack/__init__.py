"""One page about a stack: what each member weighs and why, what is proven, what predictions cost."""

from gce.report.stack.page import write

__all__ = ["write"]
