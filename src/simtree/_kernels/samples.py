"""Transformed features of samples: matrix products, RBF features around landmarks, random Fourier features.

Each value is summed over the features of its sample in a fixed order. A BLAS matrix product may round differently for one row
than for a thousand; here the transformed features of a sample depend on that sample alone, bit for bit.
"""

import math

import numpy as np

from simtree._kernels.compilation import kernel

# Columns processed at a time: four rows of this width fit into the L1 cache.
WIDTH = 512


@kernel
def fill_products(X, matrix, out):
    """Fill ``out[i, j]`` with the product of row i of X and column j of the matrix."""
    n, m = X.shape[0], matrix.shape[1]
    out[:, :] = 0.0
    for start in range(0, m, WIDTH):
        stop = min(m, start + WIDTH)
        i = 0
        while i + 4 <= n:  # four rows share each load of a column
            a, b, c, d = out[i, start:stop], out[i + 1, start:stop], out[i + 2, start:stop], out[i + 3, start:stop]
            for k in range(X.shape[1]):
                column = matrix[k, start:stop]
                xa, xb, xc, xd = np.float64(X[i, k]), np.float64(X[i + 1, k]), np.float64(X[i + 2, k]), np.float64(X[i + 3, k])
                for j in range(column.shape[0]):
                    a[j] += xa * column[j]
                    b[j] += xb * column[j]
                    c[j] += xc * column[j]
                    d[j] += xd * column[j]
            i += 4
        while i < n:
            a = out[i, start:stop]
            for k in range(X.shape[1]):
                column = matrix[k, start:stop]
                xa = np.float64(X[i, k])
                for j in range(column.shape[0]):
                    a[j] += xa * column[j]
            i += 1


@kernel
def fill_rbf(X, landmarks, gamma, out):
    """Fill ``out[i, j]`` with exp(-gamma * squared distance of row i of X to column j of the landmarks)."""
    n, m = X.shape[0], landmarks.shape[1]
    out[:, :] = 0.0
    for start in range(0, m, WIDTH):
        stop = min(m, start + WIDTH)
        i = 0
        while i + 4 <= n:
            a, b, c, d = out[i, start:stop], out[i + 1, start:stop], out[i + 2, start:stop], out[i + 3, start:stop]
            for k in range(X.shape[1]):
                column = landmarks[k, start:stop]
                xa, xb, xc, xd = np.float64(X[i, k]), np.float64(X[i + 1, k]), np.float64(X[i + 2, k]), np.float64(X[i + 3, k])
                for j in range(column.shape[0]):
                    a[j] += (xa - column[j]) * (xa - column[j])
                    b[j] += (xb - column[j]) * (xb - column[j])
                    c[j] += (xc - column[j]) * (xc - column[j])
                    d[j] += (xd - column[j]) * (xd - column[j])
            i += 4
        while i < n:
            a = out[i, start:stop]
            for k in range(X.shape[1]):
                column = landmarks[k, start:stop]
                xa = np.float64(X[i, k])
                for j in range(column.shape[0]):
                    a[j] += (xa - column[j]) * (xa - column[j])
            i += 1
    for i in range(n):
        for j in range(m):
            out[i, j] = math.exp(-gamma * out[i, j])


@kernel
def fill_fourier(X, directions, phases, out):
    """Fill ``out[i, j]`` with sqrt(2 / m) * cos(row i of X times column j of the m directions + phase j)."""
    fill_products(X, directions, out)
    scale = math.sqrt(2.0 / directions.shape[1])
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = scale * math.cos(out[i, j] + phases[j])
