"""One page about a fitted model: a self-contained HTML file that needs no network and no other package."""

from gce.report.page import write

__all__ = ["write"]
