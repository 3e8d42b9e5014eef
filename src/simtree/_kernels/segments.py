"""Partition of the pairs of a cell, which are a contiguous segment of the arrays of a growing tree.

before   [ . . . | o i i o o i i | . . . ]        i inside, o outside
after    [ . . . | i i i i | o o o | . . . ]
"""

from simtree._kernels.compilation import kernel


@kernel
def partition_segment(codes, first, second, same, start, stop, inside):
    """Move the inside pairs of [start, stop) to the front, in place, and return where the outside pairs start.

    ``inside`` has one entry per pair of the segment and is permuted with it.
    """
    low = start
    high = stop - 1
    n_columns = codes.shape[1]
    while True:
        while low <= high and inside[low - start]:
            low += 1
        while low <= high and not inside[high - start]:
            high -= 1
        if low >= high:
            return low
        first[low], first[high] = first[high], first[low]
        second[low], second[high] = second[high], second[low]
        same[low], same[high] = same[high], same[low]
        for c in range(n_columns):
            codes[low, c], codes[high, c] = codes[high, c], codes[low, c]
        inside[low - start] = True
        inside[high - start] = False
