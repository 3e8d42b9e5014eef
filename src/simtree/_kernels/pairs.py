"""Enumeration of same and different pairs by number.

Samples are sorted by label: those with label k start at ``starts[k]`` in ``order``, and ``starts[-1]`` is the number of
samples. Same pairs, and different pairs, are numbered label by label: the numbers of label k start at ``offsets[k]``, and each
of its samples is combined with all of its possible partners. A uniformly random number is therefore a uniformly random pair,
for any numbers of samples per label.
"""

from simtree._kernels.compilation import kernel


@kernel
def find_label(offsets, number):
    """Return the label k with ``offsets[k] <= number < offsets[k + 1]``."""
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
    """Fill ``first`` and ``second`` with ordered pairs of two distinct samples that share their label."""
    for p in range(numbers.shape[0]):
        k = find_label(offsets, numbers[p])
        start = starts[k]
        n_partners = starts[k + 1] - start - 1
        sample, partner = divmod(numbers[p] - offsets[k], n_partners)
        if partner >= sample:
            partner += 1
        first[p] = order[start + sample]
        second[p] = order[start + partner]


@kernel
def fill_different_pairs(numbers, offsets, starts, order, first, second):
    """Fill ``first`` and ``second`` with ordered pairs of a sample with label k and a sample with another label."""
    n = starts[-1]
    for p in range(numbers.shape[0]):
        k = find_label(offsets, numbers[p])
        start = starts[k]
        size = starts[k + 1] - start
        sample, partner = divmod(numbers[p] - offsets[k], n - size)
        if partner >= start:
            partner += size
        first[p] = order[start + sample]
        second[p] = order[partner]


@kernel
def fill_all_same_pairs(starts, order, first, second):
    """Fill ``first`` and ``second`` with every unordered pair of samples that share their label, once each."""
    p = 0
    for k in range(starts.shape[0] - 1):
        for i in range(starts[k], starts[k + 1]):
            for j in range(i + 1, starts[k + 1]):
                first[p] = order[i]
                second[p] = order[j]
                p += 1


@kernel
def fill_all_different_pairs(starts, order, first, second):
    """Fill ``first`` and ``second`` with every unordered pair of samples with different labels, once each."""
    p = 0
    for k in range(starts.shape[0] - 1):
        for i in range(starts[k], starts[k + 1]):
            for j in range(starts[k + 1], starts[-1]):
                first[p] = order[i]
                second[p] = order[j]
                p += 1
