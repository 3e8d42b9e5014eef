"""Small images inside the page: PNG files as data URIs, written without a library."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Blue for what speaks for the same identity, orange against; white in between, on a ground of its own in both modes.
FOR, AGAINST = np.array([31, 111, 174]), np.array([184, 95, 0])
# A purple that no grey, and neither end of the contributions, can be taken for.
MISSING = np.array([204, 121, 167])
# An image with more pixels is shrunk, since the page has to stay small.
MAX_PIXELS = 64 * 64


def grey_image(values: ArrayLike, shape: tuple[int, int], max_pixels: int = MAX_PIXELS) -> str:
    """Return a sample as a grey image: its lowest value black, its highest white, missing values purple.

    Parameters
    ----------
    values : array-like of shape (height * width,)
        The sample.
    shape : tuple of int
        Height and width.
    max_pixels : int, default=4096
        Number of pixels of the image, at most; of a larger one, means of blocks are shown.

    Returns
    -------
    str
        Data URI of a PNG file.

    Examples
    --------
    >>> grey_image([0.0, 1.0], (1, 2))[:30]
    'data:image/png;base64,iVBORw0K'
    """
    pixels = _shrunk(np.asarray(values, dtype=np.float64).reshape(shape), max_pixels)
    is_known = ~np.isnan(pixels)
    known = pixels[is_known]
    low, high = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
    grey = np.zeros(pixels.shape, dtype=np.uint8)
    grey[is_known] = 0 if high <= low else (255.0 * ((known - low) / (high - low))).round()
    if is_known.all():
        return _data_uri(grey)
    return _data_uri(np.where(is_known[..., None], grey[..., None], MISSING).astype(np.uint8))


def signed_image(values: ArrayLike, shape: tuple[int, int], max_pixels: int = MAX_PIXELS) -> str:
    """Return contributions as an image: blue if positive, orange if negative, white if zero.

    Parameters
    ----------
    values : array-like of shape (height * width,)
        Contribution of each pixel.
    shape : tuple of int
        Height and width.
    max_pixels : int, default=4096
        Number of pixels of the image, at most; of a larger one, means of blocks are shown.

    Returns
    -------
    str
        Data URI of a PNG file.
    """
    signed = _shrunk(np.asarray(values, dtype=np.float64).reshape(shape), max_pixels)
    share = signed / max(float(np.abs(signed).max()), np.finfo(np.float64).tiny)
    colours = np.where((share >= 0.0)[..., None], FOR, AGAINST)
    mixed = 255.0 + np.abs(share)[..., None] * (colours - 255.0)
    return _data_uri(mixed.round().astype(np.uint8))


def _shrunk(pixels: NDArray[np.float64], max_pixels: int) -> NDArray[np.float64]:
    """Return means of square blocks, as large as it takes to have no more of them; NaN where a block has no value."""
    height, width = pixels.shape
    step = 1
    while -(-height // step) * -(-width // step) > max_pixels:
        step += 1
    if step == 1:
        return pixels

    def sums(of_pixels: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.add.reduceat(of_pixels, np.arange(0, height, step), axis=0)
        return np.asarray(np.add.reduceat(rows, np.arange(0, width, step), axis=1))

    is_known = ~np.isnan(pixels)
    n_known = sums(is_known.astype(np.float64))
    total = sums(np.where(is_known, pixels, 0.0))
    return np.asarray(np.divide(total, n_known, out=np.full(total.shape, np.nan), where=n_known > 0))


def _data_uri(pixels: NDArray[np.uint8]) -> str:
    """Return pixels of shape (height, width), or of shape (height, width, 3) with colours, as the data URI of a PNG file."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each row begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    chunks = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()
