"""Search for the best split of a cell of gradient boosting in histograms of packed gradients.

Values of cells are bounded, and the gain of a split is that of the bounded values: with the sums G and H of a cell the value is
v = -G / (H + l2) within the bounds of the cell, and the loss decreases by -v (G + (H + l2) v / 2). Monotone constraints give
the children of a cell narrower bounds.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.missing import ALL_ABOVE, BOTH_ABOVE, N_SIDES, ONE_ABOVE
from simtree._kernels.search import first_largest

# Packed sums: the Hessian in the lower half. The sum over all pairs of the absolute values of each is at most MAX_SUM
# units, and taken to be at least MIN_SUM, so that units are positive.
HALF = 32
LOW_HALF = (1 << HALF) - 1
MAX_SUM, MIN_SUM = 1 << 30, 1e-200
# Decrease of the loss by which sides of their own for the two states of missing values must exceed the same side for both: a
# pair that lacks a value is on one side of hundreds of cuts, and the best of twice as many choices fits noise.
APART = 3.0
# Keeps the quotient finite where both the Hessian and l2 are zero.
TINY = 1e-300


class Rule(NamedTuple):
    """Parameters of a tree: units of the quantised sums, L2 penalty, limits, and a gain that is not worth a split."""

    gradient_unit: float
    hessian_unit: float
    max_hessian: int
    """Largest Hessian of a pair, in units: a cell has at least as many pairs as its sum has of these."""
    n_bins: int
    l2: float
    min_leaf: int
    max_leaves: int
    max_depth: int
    min_gain: float
    one_code: int = 0
    """Code of a feature that one sample lacks, after those of all values; 0 if no value is missing."""
    min_hessian: int = 0
    """Smallest sum of Hessians of a leaf, in units."""


@kernel
def bounded_value(gradient, penalised, low, high):
    """Return the value of a cell from its gradient and its Hessian plus l2."""
    return min(max(-gradient / max(penalised, TINY), low), high)


@kernel
def decrease(gradient, penalised, value):
    """Return how much the value decreases the loss."""
    return -value * (gradient + 0.5 * penalised * value)


@kernel
def split_gain(rule, total, left, low, high, direction):
    """Return the gain of a split into packed sums, relative to no split; -1 if it is against the direction of the column."""
    g, h = np.float64(total >> HALF) * rule.gradient_unit, np.float64(total & LOW_HALF) * rule.hessian_unit
    gl, hl = np.float64(left >> HALF) * rule.gradient_unit, np.float64(left & LOW_HALF) * rule.hessian_unit
    own, to_left, to_right = h + rule.l2, hl + rule.l2, h - hl + rule.l2
    value_left, value_right = bounded_value(gl, to_left, low, high), bounded_value(g - gl, to_right, low, high)
    if direction * (value_right - value_left) < 0.0:
        return -1.0
    before = decrease(g, own, bounded_value(g, own, low, high))
    return decrease(gl, to_left, value_left) + decrease(g - gl, to_right, value_right) - before


@kernel
def search_histogram(histogram, begin, end, rule, total, low, high, directions, gains, cuts):
    """Fill ``gains[k]`` and ``cuts[k]`` with the best split of column k, for some k; the lowest code on ties.

    Children may be of any size.
    """
    n = rule.n_bins - 1
    codes, half_g, half_h = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    sums, found = np.empty(n, np.int64), np.empty(n)
    g, h = np.float64(total >> HALF) * rule.gradient_unit, np.float64(total & LOW_HALF) * rule.hessian_unit
    before = decrease(g, h + rule.l2, bounded_value(g, h + rule.l2, low, high))
    for k in range(begin, end):
        n_cuts = fill_sums(histogram[k], n, codes, sums, half_g, half_h)
        fill_gains(half_g, half_h, n_cuts, rule, g, h, 0.0, 0.0, low, high, np.float64(directions[k]), before, found)
        best, best_code = -1.0, 0
        for i in range(n_cuts):
            if found[i] > best:
                best, best_code = found[i], codes[i]
        gains[k], cuts[k] = best, best_code


@kernel
def fill_sums(of_column, n, codes, sums, half_g, half_h):
    """Fill the codes below n that occur, and the sums of the values up to each; return how many there are.

    A cut after any other code is the same as one before. Sums are kept in halves of 32 bits, too, so that loops over them
    vectorise; they are taken apart at the end, because each store counts in the loop over all codes.
    """
    n_found, left = np.uint64(0), np.int64(0)
    for code in range(n):
        value = of_column[code]
        left += value
        codes[n_found], sums[n_found] = code, left
        n_found += np.uint64(value != 0)
    n_cuts = np.int64(n_found)
    for i in range(n_cuts):
        half_g[i], half_h[i] = sums[i] >> HALF, sums[i] & LOW_HALF
    return n_cuts


@kernel
def search_counted(codes, rows, column, histogram, k, rule, total, low, high, direction):
    """Return gain, code and sides of the best split of one column whose children have enough rows and Hessians."""
    counts = np.zeros(rule.n_bins, np.int64)
    for r in range(rows.shape[0]):
        counts[codes[rows[r], column]] += 1
    best, best_code, best_sides, paid = -1.0, 0, 0, 0.0
    n_codes = rule.one_code if rule.one_code > 0 else rule.n_bins - 1
    for sides in range(N_SIDES if rule.one_code > 0 else 1):
        left, n_left, price = np.int64(0), np.int64(0), 0.0
        if rule.one_code > 0:
            price = price_of(sides, counts[rule.one_code], counts[rule.one_code + 1])
            left = left_states(histogram[k], rule.one_code, sides)
            n_left = left_states(counts, rule.one_code, sides)
        for code in range(n_codes):
            left += histogram[k, code]
            n_left += counts[code]
            separates_states = rule.one_code > 0 and code == n_codes - 1
            if counts[code] == 0 and not separates_states:  # the same split as before
                continue
            hessian = left & LOW_HALF
            if min(hessian, (total & LOW_HALF) - hessian) < rule.min_hessian:
                continue
            if min(n_left, rows.shape[0] - n_left) >= rule.min_leaf:
                gain = split_gain(rule, total, left, low, high, 0 if separates_states else direction)
                if gain - price > best:
                    best, best_code, best_sides, paid = gain - price, code, sides, price
    return best + paid, best_code, best_sides


@kernel
def left_states(of_column, one_code, sides):
    """Return the sum of the states that go to the first child."""
    one = 0 if sides & ONE_ABOVE else of_column[one_code]
    return one + (0 if sides & BOTH_ABOVE else of_column[one_code + 1])


@kernel
def price_of(sides, one, both):
    """Return what a choice of sides must gain: nothing if the two states are on one side, or only one of them occurs."""
    return APART if sides in (ONE_ABOVE, BOTH_ABOVE) and one != 0 and both != 0 else 0.0


@kernel
def fill_gains(half_g, half_h, n, rule, g, h, more_g, more_h, low, high, way, before, found):
    """Fill ``found[code]`` with the gain of a split whose first child has the sums of the codes up to ``code``, and more.

    The loop vectorises: hence comparisons instead of min and max, which treat NaN differently.
    """
    unit_g, unit_h, l2 = rule.gradient_unit, rule.hessian_unit, rule.l2
    for code in range(n):
        gl, hl = np.float64(half_g[code]) * unit_g + more_g, np.float64(half_h[code]) * unit_h + more_h
        gr, to_left, to_right = g - gl, hl + l2, h - hl + l2
        to_left = to_left if to_left > TINY else TINY
        to_right = to_right if to_right > TINY else TINY
        value_left, value_right = -gl / to_left, -gr / to_right
        value_left = value_left if value_left > low else low
        value_left = value_left if value_left < high else high
        value_right = value_right if value_right > low else low
        value_right = value_right if value_right < high else high
        gain = -value_left * (gl + 0.5 * to_left * value_left) - value_right * (gr + 0.5 * to_right * value_right) - before
        found[code] = gain if way * (value_right - value_left) >= 0.0 else -1.0


@kernel
def fraction(u, share, least):
    """Return numerator and denominator of a gain, see `fill_best_sides`."""
    v = share * (1.0 - share)
    return u * u, v if v > least else least


@kernel
def fill_best_sides(half_g, half_h, n, rule, total, one, both, found, chosen):
    """Fill ``chosen[code]`` with the sides of the largest gain without bounds less its price, and ``found[code]`` to rank it.

    With the sums g and t = h + l2 of the children, G = g_left + g_right, T = t_left + t_right, s = t_left / T and
    u = g_left - G s, twice the gain is u^2 / (T s (1 - s)) plus what is the same for all splits. It is computed in units of
    the sums. What a state adds to u and s does not depend on the cut, and fractions are compared by their products: one
    division for the four choices, in a loop that vectorises. Ties go to the same side for both, then to the first choice.
    """
    l2 = rule.l2 / rule.hessian_unit
    g, scale = np.float64(total >> HALF), 1.0 / (np.float64(total & LOW_HALF) + 2.0 * l2)
    one_s, both_s = np.float64(one & LOW_HALF) * scale, np.float64(both & LOW_HALF) * scale
    one_u, both_u = np.float64(one >> HALF) - g * one_s, np.float64(both >> HALF) - g * both_s
    # A child with a pair has a Hessian of at least one unit: only those without any have a smaller denominator than this.
    least = 0.25 * scale
    price = 2.0 * APART / scale * (rule.hessian_unit / rule.gradient_unit) / rule.gradient_unit
    for code in range(n):
        s = (np.float64(half_h[code]) + l2) * scale
        u = np.float64(half_g[code]) - g * s
        top, bottom = fraction(u + (one_u + both_u), s + (one_s + both_s), least)
        a, b = fraction(u, s, least)
        better = a * bottom > top * b
        top, bottom, side = a if better else top, b if better else bottom, 1.0 * ALL_ABOVE if better else 0.0
        apart, below = fraction(u + both_u, s + both_s, least)
        a, b = fraction(u + one_u, s + one_s, least)
        better = a * below > apart * b
        apart, below, other = a if better else apart, b if better else below, 1.0 * BOTH_ABOVE if better else 1.0 * ONE_ABOVE
        apart -= price * below
        better = apart * bottom > top * below
        top, bottom, chosen[code] = apart if better else top, below if better else bottom, other if better else side
        found[code] = top / bottom


@kernel
def search_state_histogram(histogram, begin, end, rule, total, low, high, directions, gains, cuts, states):
    """Fill ``gains[k]``, ``cuts[k]`` and ``states[k]`` with the best split of column k, for some k, as `search_histogram` does.

    Each cut is scored with the four choices of sides for the states of missing values, less the price of the choice; gains are
    without it. The cut after the last value separates states only: the direction of a column says nothing about it. Ties go to
    the lowest code, then to the same side for both states.

    Bounds only lower gains. So the best split without them, which is found faster, is the best one if its values are within.
    """
    n = rule.one_code
    codes, half_g, half_h = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    sums, found, chosen = np.empty(n, np.int64), np.empty(n), np.empty(n)
    unit_g, unit_h = rule.gradient_unit, rule.hessian_unit
    g, h = np.float64(total >> HALF) * unit_g, np.float64(total & LOW_HALF) * unit_h
    before = decrease(g, h + rule.l2, bounded_value(g, h + rule.l2, low, high))
    for k in range(begin, end):
        of_column, way = histogram[k], np.float64(directions[k])
        one, both = of_column[n], of_column[n + 1]
        n_cuts = fill_sums(of_column, n, codes, sums, half_g, half_h)
        if n_cuts == 0:  # without values, there are states to separate
            codes[0], half_g[0], half_h[0], n_cuts = 0, 0, 0, 1
        if way == 0.0 and (one != 0 or both != 0):
            fill_best_sides(half_g, half_h, n_cuts, rule, total, one, both, found, chosen)
            at = first_largest(found, n_cuts)
            # A state that does not occur is on no side.
            side = np.int64(chosen[at]) & ((ONE_ABOVE if one != 0 else 0) | (BOTH_ABOVE if both != 0 else 0))
            left = sums[at] + left_states(of_column, n, side)
            if is_unbounded(rule, total, left, low, high):
                gains[k], cuts[k], states[k] = split_gain(rule, total, left, low, high, 0), codes[at], side
                continue
        gains[k], cuts[k], states[k], paid = -1.0, 0, 0, 0.0
        last = n_cuts - 1
        for side in range(N_SIDES):
            if (side & ONE_ABOVE and one == 0) or (side & BOTH_ABOVE and both == 0):
                continue  # the same as a choice before
            more = left_states(of_column, n, side)
            more_g, more_h = np.float64(more >> HALF) * unit_g, np.float64(more & LOW_HALF) * unit_h
            fill_gains(half_g, half_h, last, rule, g, h, more_g, more_h, low, high, way, before, found)
            fill_gains(half_g[last:], half_h[last:], 1, rule, g, h, more_g, more_h, low, high, 0.0, before, found[last:])
            price = price_of(side, one, both)
            for i in range(n_cuts):
                gain = found[i] - price
                if gain > gains[k] or (gain == gains[k] and codes[i] < cuts[k]):
                    gains[k], cuts[k], states[k], paid = gain, codes[i], side, price
        gains[k] += paid


@kernel
def is_unbounded(rule, total, left, low, high):
    """Return whether the values of the children of a split into packed sums are within the bounds."""
    g, h = np.float64(total >> HALF) * rule.gradient_unit, np.float64(total & LOW_HALF) * rule.hessian_unit
    gl, hl = np.float64(left >> HALF) * rule.gradient_unit, np.float64(left & LOW_HALF) * rule.hessian_unit
    value_left, value_right = -gl / max(hl + rule.l2, TINY), -(g - gl) / max(h - hl + rule.l2, TINY)
    return low <= value_left <= high and low <= value_right <= high


@kernel
def left_sum(of_column, cut, states, rule):
    """Return the packed sums of the codes up to a cut, and of the states that go with them."""
    left = np.int64(0)
    for code in range(cut + 1):
        left += of_column[code]
    return left + left_states(of_column, rule.one_code, states) if rule.one_code > 0 else left


@kernel
def search(histogram, begin, end, rule, total, low, high, directions, found, at):
    """Fill row ``at`` of ``found`` with the best split of each column, for some of them."""
    if rule.one_code > 0:
        by_column = (found.gain[at], found.code[at], found.states[at])
        search_state_histogram(histogram, begin, end, rule, total, low, high, directions, *by_column)
    else:
        search_histogram(histogram, begin, end, rule, total, low, high, directions, found.gain[at], found.code[at])
