"""The pairs of a cell lie next to one another: a segment of the arrays of the tree being grown.

before   [ . . . | o i i o o i i | . . . ]        i inside, o outside
after    [ . . . | i i i i | o o o | . . . ]
"""

from simtree._kernels.compilation import kernel


@kernel
def partition_segment(codes, first, second, same, start, stop, inside):
    """Bring the pairs of [start, stop) that are inside to its front, in place; return where the outside ones begin.

    ``inside`` has one entry a pair of the segment and is permuted with it.
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
