"""Small images inside the page: PNG files as data URIs, written without a library."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Blue for what speaks for the same identity, orange against; white in between, on a ground of its own in both modes.
FOR, AGAINST = np.array([31, 111, 174]), np.array([184, 95, 0])


def grey_image(values: ArrayLike, shape: tuple[int, int]) -> str:
    """Return a sample as a grey image: its lowest value black, its highest white.

    Parameters
    ----------
    values : array-like of shape (height * width,)
        The sample.
    shape : tuple of int
        Height and width.

    Returns
    -------
    str
        Data URI of a PNG file.

    Examples
    --------
    >>> grey_image([0.0, 1.0], (1, 2))[:30]
    'data:image/png;base64,iVBORw0K'
    """
    pixels = np.asarray(values, dtype=np.float64).reshape(shape)
    low, high = float(pixels.min()), float(pixels.max())
    grey = np.zeros(shape) if high == low else 255.0 * (pixels - low) / (high - low)
    return _data_uri(np.repeat(grey.round().astype(np.uint8)[..., None], 3, axis=2))


def signed_image(values: ArrayLike, shape: tuple[int, int]) -> str:
    """Return contributions as an image: blue if positive, orange if negative, white if zero.

    Parameters
    ----------
    values : array-like of shape (height * width,)
        Contribution of each pixel.
    shape : tuple of int
        Height and width.

    Returns
    -------
    str
        Data URI of a PNG file.
    """
    signed = np.asarray(values, dtype=np.float64).reshape(shape)
    share = signed / max(float(np.abs(signed).max()), np.finfo(np.float64).tiny)
    colours = np.where((share >= 0.0)[..., None], FOR, AGAINST)
    mixed = 255.0 + np.abs(share)[..., None] * (colours - 255.0)
    return _data_uri(mixed.round().astype(np.uint8))


def _data_uri(pixels: NDArray[np.uint8]) -> str:
    """Return RGB pixels of shape (height, width, 3) as the data URI of a PNG file."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each row begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    chunks = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()
