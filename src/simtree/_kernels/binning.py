"""Codes of coordinate values: the code of a value is the number of edges strictly below it."""

from simtree._kernels.compilation import kernel


@kernel
def fill_byte_codes(values, edges, columns, codes):
    """OUT ``codes[p, columns[k]]``: how many of the 255 sorted ``edges[k]`` (filled up with inf) lie below ``values[k, p]``.

    So ``code <= b`` says the same as ``value <= edges[k, b]``, for each b. Eight halvings, without a branch that would be
    mispredicted every other time; the first step is a literal so that the compiler unrolls them.
    """
    for k in range(values.shape[0]):
        row = edges[k]
        column = columns[k]
        for p in range(values.shape[1]):
            value = values[k, p]
            code = 0
            step = 128
            while step > 0:
                code += step * (row[code + step - 1] < value)
                step >>= 1
            codes[p, column] = code
