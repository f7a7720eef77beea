"""Deskewing of handwritten digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_BATCH_IMAGES = 5_000


def deskew(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Shear images so that row and column of the ink are uncorrelated, and centre the ink.

    The usual recipe by moments: with ``(r, c)`` the coordinates of a pixel weighted by its ink, each row is moved
    sideways by ``slope * (r - mean r)``, ``slope = cov(r, c) / var(r)``, and the centre of ink comes to
    ``(height / 2, width / 2)``. Values between pixels are linear interpolations, so that they stay within the image's
    range (cubic ones, scipy's default, overshoot by up to a fifth of it); beyond the border there is no ink. The
    authors' interpolation is not known.

    Parameters
    ----------
    images : array of shape (n, height, width)
        Images without ink, or with ink in one row only, are only centred.

    Returns
    -------
    array of shape (n, height, width)
    """
    out = np.empty(images.shape, dtype=np.float32)
    middle = np.array(images.shape[1:]) / 2
    for first in range(0, len(images), _BATCH_IMAGES):
        block = images[first : first + _BATCH_IMAGES].astype(np.float32)
        centres, slopes = _moments(block)
        for image, centre, slope, target in zip(block, centres, slopes, out[first:], strict=False):
            shear = np.array([[1.0, 0.0], [slope, 1.0]])
            ndimage.affine_transform(image, shear, offset=centre - shear @ middle, output=target, order=1)
    return out


def _moments(images: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centres of ink ``(n, 2)`` and slopes ``(n,)``."""
    height, width = images.shape[1:]
    row, column = np.arange(height, dtype=np.float64), np.arange(width, dtype=np.float64)
    by_row, by_column = images.sum(axis=2, dtype=np.float64), images.sum(axis=1, dtype=np.float64)
    ink = by_row.sum(axis=1)
    some = np.where(ink > 0, ink, 1.0)
    centre = np.stack([by_row @ row, by_column @ column], axis=1) / some[:, None]
    centre[ink == 0] = height / 2, width / 2
    variance = by_row @ row**2 / some - centre[:, 0] ** 2
    covariance = np.einsum("nrc,r,c->n", images, row, column) / some - centre[:, 0] * centre[:, 1]
    flat = variance < 1e-9
    return centre, np.where(flat, 0.0, covariance / np.where(flat, 1.0, variance))
