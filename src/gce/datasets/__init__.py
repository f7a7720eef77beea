"""The twelve data sets of the paper, with the splits and the scaling of the authors' code.

>>> from gce import datasets
>>> iris = datasets.load("iris")
>>> iris.X_train.shape, iris.X_val.shape, iris.X_test.shape
((96, 4), (24, 4), (30, 4))
"""

from gce.datasets.files import CorruptDataError, MissingDataError
from gce.datasets.loading import Dataset, load, present
from gce.datasets.registry import NAMES, SMALL
from gce.datasets.summary import table

__all__ = ["NAMES", "SMALL", "CorruptDataError", "Dataset", "MissingDataError", "load", "present", "table"]
