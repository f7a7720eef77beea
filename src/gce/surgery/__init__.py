"""Fitted ensembles edited: atoms removed, added and spared, weights solved anew."""

from gce.surgery.editing import Editable

__all__ = ["Editable"]
