"""Bins of rows that were not among those the edges were learned from, block by block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gce.bases.trees.binning import Array, Bins, category_bins, write_codes


def code_rows(bins: Bins, columns: Array, out: NDArray[np.uint8]) -> None:
    """Write the bins of some rows.

    Parameters
    ----------
    bins : Bins
        A column with missing values among these rows had some among those that edges were learned from.
    columns : array of shape (n, d)
        Scaled numbers and codes of categories.
    out : array of shape (ceil(d / 4), n, 4), uint8
        Codes in blocks of four columns, written to.
    """
    for j, edges in enumerate(bins.edges):
        column, own = np.ascontiguousarray(columns[:, j]), out[j // 4]
        if bins.kinds is not None and bins.kinds.categorical[j]:
            codes = category_bins(column)
            # a category without a bin is one of those without a code
            own[:, j % 4] = np.where(codes > len(edges), 0, codes)
            continue
        write_codes(column, edges, own, j % 4)
        if bins.kinds is not None and bins.kinds.missing[j]:
            own[np.isnan(column), j % 4] = len(edges) + 1
