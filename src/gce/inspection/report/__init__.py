"""Reports about fitted models: self-contained HTML files without any dependency."""

from gce.inspection.report.page import write

__all__ = ["write"]
