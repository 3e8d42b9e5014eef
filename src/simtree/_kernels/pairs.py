"""Pairs from their numbers. Points are sorted by class; ``starts[k]`` is where class k begins and ``starts[-1]`` is n.

A kind of pairs is numbered class by class: class k owns the numbers from ``offsets[k]`` on, each of its points followed by all
its possible partners. A number drawn uniformly is then a pair drawn uniformly, exactly, whatever the class sizes.
"""

from simtree._kernels.compilation import kernel


@kernel
def find_class(offsets, number):
    """The class k with ``offsets[k] <= number < offsets[k + 1]``."""
    low = 0
    high = offsets.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[middle] <= number:
            low = middle
        else:
            high = middle
    return low


@kernel
def fill_same_pairs(numbers, offsets, starts, order, first, second):
    """OUT ``first``, ``second``: ordered pairs of two different points of one class."""
    for p in range(numbers.shape[0]):
        k = find_class(offsets, numbers[p])
        start = starts[k]
        n_partners = starts[k + 1] - start - 1
        point, partner = divmod(numbers[p] - offsets[k], n_partners)
        if partner >= point:
            partner += 1
        first[p] = order[start + point]
        second[p] = order[start + partner]


@kernel
def fill_different_pairs(numbers, offsets, starts, order, first, second):
    """OUT ``first``, ``second``: ordered pairs of a point of class k and a point outside class k."""
    n = starts[-1]
    for p in range(numbers.shape[0]):
        k = find_class(offsets, numbers[p])
        start = starts[k]
        size = starts[k + 1] - start
        point, partner = divmod(numbers[p] - offsets[k], n - size)
        if partner >= start:
            partner += size
        first[p] = order[start + point]
        second[p] = order[partner]


@kernel
def fill_all_same_pairs(starts, order, first, second):
    """OUT ``first``, ``second``: each unordered pair of two points of one class, once."""
    p = 0
    for k in range(starts.shape[0] - 1):
        for i in range(starts[k], starts[k + 1]):
            for j in range(i + 1, starts[k + 1]):
                first[p] = order[i]
                second[p] = order[j]
                p += 1


@kernel
def fill_all_different_pairs(starts, order, first, second):
    """OUT ``first``, ``second``: each unordered pair of two points of different classes, once."""
    p = 0
    for k in range(starts.shape[0] - 1):
        for i in range(starts[k], starts[k + 1]):
            for j in range(starts[k + 1], starts[-1]):
                first[p] = order[i]
                second[p] = order[j]
                p += 1
