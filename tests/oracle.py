"""Similarity TreeRank in plain NumPy: the most obvious statement of each algorithm. Every kernel is compared with this file.

Pairs are an (n, 2, q) array; a coordinate is a column of ``coordinates(pairs, kinds)``.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

INSIDE, OUTSIDE = True, False


# Symmetric coordinates of a pair (x, x') -------------------------------------------------------------


def coordinates(pairs, kinds=("abs_diff", "sum"), directions=None):
    """One column per kind and feature (or direction): kind by kind, feature by feature; one column per pairwise kind."""
    x, x2 = pairs[:, 0].astype(float), pairs[:, 1].astype(float)
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(x2, axis=1)
    formula = {
        "abs_diff": np.abs(x - x2),
        "sum": x + x2,
        "min": np.minimum(x, x2),
        "max": np.maximum(x, x2),
        "product": x * x2,
        "dot": (x * x2).sum(axis=1, keepdims=True),
        "cosine": ((x * x2).sum(axis=1) / np.where(norms > 0, norms, np.inf))[:, None],
        "euclidean": np.linalg.norm(x - x2, axis=1)[:, None],
        "manhattan": np.abs(x - x2).sum(axis=1, keepdims=True),
    }
    if directions is not None:
        formula["oblique"] = np.hstack([np.abs((x - x2) @ directions.T), (x + x2) @ directions.T])
    return np.hstack([formula[kind] for kind in kinds])


ONE_MISSING, BOTH_MISSING = np.inf, -np.inf


def coordinates_with_missing(pairs, kinds=("abs_diff", "sum"), directions=None):
    """The coordinates pair by pair: the state of a feature that a sample lacks; of many features those that both have."""
    n = pairs.shape[2]
    found = []
    for pair in pairs:
        missing = np.isnan(pair).sum(axis=0)
        state = np.select([missing == 1, missing == 2], [ONE_MISSING, BOTH_MISSING], 0.0)
        joint = pair[None, :, missing == 0]
        row = []
        for kind in kinds:
            if kind in ("dot", "manhattan", "euclidean", "cosine"):
                share = {"cosine": 1.0, "euclidean": np.sqrt(n / max(1, joint.shape[2]))}.get(kind, n / max(1, joint.shape[2]))
                row += [share * coordinates(joint, [kind])[0, 0] if joint.shape[2] else BOTH_MISSING]
            elif kind == "oblique":
                w, present = directions, missing == 0
                sizes = np.abs(w).sum(axis=1), np.abs(w[:, present]).sum(axis=1)
                values = coordinates(joint, ["oblique"], w[:, present])[0].reshape(2, -1)
                with np.errstate(all="ignore"):
                    row += np.where(sizes[1] > 0, values * sizes[0] / sizes[1], BOTH_MISSING).ravel().tolist()
            else:
                row += np.where(missing == 0, coordinates(pair[None], [kind])[0], state).tolist()
        found.append(row)
    return np.array(found)


# Pairs -----------------------------------------------------------------------------------------------


def all_pairs(y):
    """Each unordered pair i < j, and whether it is a same pair."""
    return [(i, j, y[i] == y[j]) for i in range(len(y)) for j in range(i + 1, len(y))]


# Cuts of one cell ------------------------------------------------------------------------------------


def impurity_decrease(criterion, weight, same, left):
    """How much a split into left and not left lowers the weighted impurity of the pairs."""

    def impurity(rows):
        a, b = weight[rows & same].sum(), weight[rows & ~same].sum()
        if criterion == "auc":
            return min(a, b)  # the weight of the errors, if the heavier kind is predicted
        if a == 0 or b == 0:
            return 0.0
        if criterion == "gini":
            return 2 * a * b / (a + b)
        return -a * np.log(a / (a + b)) - b * np.log(b / (a + b))

    return impurity(left | ~left) - impurity(left) - impurity(~left)


def cuts(column):
    """Thresholds between neighbouring distinct values."""
    values = np.unique(column)
    return (values[:-1] + values[1:]) / 2


def best_cut(F, same, weight, criterion, min_leaf):
    """The coordinate and threshold with the greatest decrease; among equals the first coordinate, then the lowest threshold."""
    best = (1e-9 * weight.sum(), None, None)
    for c in range(F.shape[1]):
        for t in cuts(F[:, c]):
            left = F[:, c] <= t
            if min(left.sum(), (~left).sum()) < min_leaf:
                continue
            decrease = impurity_decrease(criterion, weight, same, left)
            if decrease > best[0] * (1 + 1e-9):
                best = (decrease, c, t)
    return best


def splits_with_states(column):
    """Every way to cut the values of a column and to choose sides for the two states, as which pairs go left."""
    is_value = np.isfinite(column)
    thresholds = [*cuts(column[is_value]), np.inf] if is_value.any() else [np.inf]
    for one_left, both_left in ((True, True), (False, True), (True, False), (False, False)):
        for t in thresholds:
            states = (one_left & (column == ONE_MISSING)) | (both_left & (column == BOTH_MISSING))
            yield np.where(is_value, column <= t, states).astype(bool)


def best_split_with_states(F, same, weight, criterion, min_leaf):
    """The decrease of the best split of any column, and the pairs that go left; among equals the first."""
    best = (1e-9 * weight.sum(), None)
    for c in range(F.shape[1]):
        for left in splits_with_states(F[:, c]):
            if min(left.sum(), (~left).sum()) >= min_leaf:
                decrease = impurity_decrease(criterion, weight, same, left)
                if decrease > best[0] * (1 + 1e-9):
                    best = (decrease, left)
    return best


def balancing_weights(same):
    """The paper's costs: 1 - p for each same pair and p for each different pair, p the share of same pairs."""
    p = same.mean()
    return np.where(same, 1 - p, p)


def cart_region(F, same, criterion="gini", max_depth=5, min_leaf=1, weight=None):
    """Which pairs a cost-sensitive classification tree calls same."""
    weight = balancing_weights(same) if weight is None else weight
    inside = np.full(len(same), weight[same].sum() >= weight[~same].sum() - 1e-9 * weight.sum())
    if max_depth > 0 and same.any() and not same.all():
        _, c, t = best_cut(F, same, weight, criterion, min_leaf)
        if c is not None:
            for side in (F[:, c] <= t, F[:, c] > t):
                inside[side] = cart_region(F[side], same[side], criterion, max_depth - 1, min_leaf, weight[side])
    return inside


def cross_region(least, greatest, same, min_leaf=1):
    """The best square of one feature: both values on one side of t; or what lies outside it."""
    weight = np.where(same, 1.0, -1.0) * balancing_weights(same)
    best_gain, best = 1e-9, None
    for j in range(least.shape[1]):
        for t in cuts(np.concatenate([least[:, j], greatest[:, j]])):
            square = (greatest[:, j] <= t) | (least[:, j] > t)
            for inside in (square, ~square):
                gain = weight[inside].sum()
                if min(inside.sum(), (~inside).sum()) >= min_leaf and gain > best_gain * (1 + 1e-9):
                    best_gain, best = gain, inside
    return best


# TreeRank --------------------------------------------------------------------------------------------


def tree_rank(F, same, leaf_rank, max_depth):
    """The algorithm box: scores of the training pairs, and the gain of each split made.

    ``leaf_rank(F, same)`` returns which pairs of a cell are inside, or None.
    """
    n_same, n_different = same.sum(), (~same).sum()
    scores = np.full(len(same), 2.0**max_depth)
    gains = []
    cells = [(0, np.arange(len(same)))]  # k and the pairs of C_{d,k}
    for d in range(max_depth):
        children = []
        for k, rows in cells:
            fpr, tpr = (~same[rows]).sum() / n_different, same[rows].sum() / n_same
            if fpr == 0 or tpr == 0:
                continue
            inside = leaf_rank(F[rows], same[rows])
            if inside is None:
                continue
            gain = fpr * same[rows[inside]].sum() / n_same - tpr * (~same[rows[inside]]).sum() / n_different
            if gain <= 1e-12:
                continue
            gains.append(gain)
            for child, part in ((2 * k, rows[inside]), (2 * k + 1, rows[~inside])):
                scores[part] = 2.0**max_depth * (1 - child / 2 ** (d + 1))
                children.append((child, part))
        cells = children
    return scores, gains


def roc(scores, same):
    """Points (share of different pairs, share of same pairs) with a score of at least t, for all t."""
    points = [(0.0, 0.0)]
    for t in np.unique(scores)[::-1]:
        points.append(((scores[~same] >= t).mean(), (scores[same] >= t).mean()))
    return np.array(points)


def auc(scores, same):
    """Rate of concording pairs of a same and a different pair, ties counting half."""
    difference = scores[same][:, None] - scores[~same][None, :]
    return (difference > 0).mean() + 0.5 * (difference == 0).mean()


# Gradient boosting -----------------------------------------------------------------------------------


def gradients(scores, same, weights):
    """First and second derivatives of the weighted logistic loss log(1 + exp(score)) - [same] score."""
    p = 1 / (1 + np.exp(-scores))
    return weights * (p - same), weights * p * (1 - p)


def class_gradients(scores, targets):
    """The same for the loss -log(softmax of the scores of a row, of its target), by the score of each class."""
    p = np.exp(scores - scores.max(axis=0))
    p /= p.sum(axis=0)
    return p - (np.arange(len(scores))[:, None] == targets), p * (1 - p)


def bounded_value(g, h, l2, low, high):
    """The minimiser of g v + (h + l2) v^2 / 2 between the bounds."""
    return np.clip(-g / (h + l2), low, high)


def boosted_split(codes, g, h, l2, min_leaf, low, high, directions, min_hessian=0.0):
    """Gain, column and code of the split that decreases the loss most; among equals the first column, then the lowest code."""

    def decrease(rows):
        v = bounded_value(g[rows].sum(), h[rows].sum(), l2, low, high)
        return -v * (g[rows].sum() + (h[rows].sum() + l2) * v / 2), v

    best = (1e-9, None, None)
    everywhere = np.ones(len(codes), dtype=bool)
    for column in range(codes.shape[1]):
        values = np.unique(codes[:, column]).astype(int)
        for code, following in pairwise(values):
            left = codes[:, column] <= code
            if min(left.sum(), (~left).sum()) < min_leaf or min(h[left].sum(), h[~left].sum()) < min_hessian:
                continue
            (of_left, v_left), (of_right, v_right) = decrease(left), decrease(~left)
            gain = of_left + of_right - decrease(everywhere)[0]
            if directions[column] * (v_right - v_left) >= 0 and gain > best[0] * (1 + 1e-9):
                best = (gain, column, (code + following - 1) // 2)  # the middle of codes that give the same split
    return best


def boosted_tree(codes, g, h, l2, min_leaf, max_leaves, max_depth, bound, directions, min_hessian=0.0):
    """Leaves as (rows, value), in the order in which they were made: the leaf with the largest gain is split next."""
    rows = np.arange(len(codes))

    def leaf(rows, depth, low, high):
        split = (0.0, None, None)
        if depth < max_depth:
            split = boosted_split(codes[rows], g[rows], h[rows], l2, min_leaf, low, high, directions, min_hessian)
        return {"rows": rows, "depth": depth, "low": low, "high": high, "split": split}

    leaves = [leaf(rows, 0, -bound, bound)]
    while len(leaves) < max_leaves:
        at = max(range(len(leaves)), key=lambda k: leaves[k]["split"][0] if leaves[k]["split"][1] is not None else -1)
        _, column, code = leaves[at]["split"]
        if column is None:
            break
        parent = leaves.pop(at)
        left = codes[parent["rows"], column] <= code
        parts = parent["rows"][left], parent["rows"][~left]
        values = [bounded_value(g[part].sum(), h[part].sum(), l2, parent["low"], parent["high"]) for part in parts]
        bounds = [[parent["low"], parent["high"]], [parent["low"], parent["high"]]]
        if directions[column]:
            lower = 0 if directions[column] > 0 else 1
            bounds[lower][1] = bounds[1 - lower][0] = (values[0] + values[1]) / 2
        leaves += [leaf(part, parent["depth"] + 1, *own) for part, own in zip(parts, bounds, strict=True)]
    return leaves


# Routing ---------------------------------------------------------------------------------------------


def route(F, coordinate, threshold, if_le, if_gt, at=0):
    """Walk each pair through a table of tests until a negative number -1 - e: the exit e."""
    exits = []
    for values in F:
        node = at
        while node >= 0:
            node = if_le[node] if values[coordinate[node]] <= threshold[node] else if_gt[node]
        exits.append(-1 - node)
    return np.array(exits)


# Points ----------------------------------------------------------------------------------------------


def rbf_features(X, landmarks, gamma):
    """exp(-gamma |x - c|^2) for each row x and each column c of the landmarks."""
    return np.array([[np.exp(-gamma * np.sum((x - c) ** 2)) for c in landmarks.T] for x in X.astype(float)])


def class_shares(X, trees, n_classes):
    """Sum over trees of the class shares of the leaf that each row reaches."""
    total = np.zeros((len(X), n_classes))
    for root in trees.root:
        leaves = route(X, trees.feature, trees.threshold, trees.if_le, trees.if_gt, root)
        for i, leaf in enumerate(leaves):
            entries = slice(trees.leaf_start[leaf], trees.leaf_start[leaf + 1])
            total[i, trees.leaf_class[entries]] += trees.leaf_share[entries]
    return total
