"""Plots of a tree: its cells, its pruning path, the importances of features, and the explanation of one pair."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_integer, count, refuse_pipeline
from simtree.models._base import check_similarity
from simtree.models._tree import SimilarityTree, TreeLearner
from simtree.plots._style import FAINT, FONT_SIZE, INK, PALETTE, Display, shorten
from simtree.trees._explanation import Explanation, value_text
from simtree.trees._export import describe_region, inside_paths
from simtree.trees._pruning import PruningPath
from simtree.trees._rank_tree import RankTree
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion, Region

# Layout of a level of the tree, of height 1: the box of a cell, its test, and the edges to its children; then the legend.
BOX_WIDTH, BOX_HEIGHT, TEST_BOTTOM, BAR, LEGEND = 0.9, 0.5, 0.75, 0.79, 0.55
COLUMN_INCHES, LEVEL_INCHES = 1.25, 1.35
# Room for the title above the tree of a new figure, in levels.
TITLE = 0.3
# A bar of all other features is clipped at this multiple of the range of the bars that are shown.
CLIPPED_AT = 1.5
NAME_LENGTHS = (60, 40, 30, 24, 20, 16, 13, 10, 8, 6)


class TreeDisplay(Display):
    """Top of a similarity tree: its cells level by level, with the most similar ones on the left.

    A cell shows its name in the paper, ``C_{d,k}``, its numbers of training pairs and, if it is terminal, its score
    ``2^D (1 - k/2^d)``. Its colour is the ratio of its proportions of same and different pairs. Below it is the test that
    contributes most to its split.

    Parameters
    ----------
    tree : RankTree
        ``tree_`` of a fitted `SimilarityTree`.
    max_depth : int, default=3
        Maximum depth of the cells that are drawn.
    feature_names : sequence of str, optional
        Names of the features; x0, x1, ... by default.

    Attributes
    ----------
    ax_, figure_, colorbar_
        Axes and figure the tree was last drawn on, and the colour bar.
    text_, test_text_ : dict
        Texts by cell (a row of ``tree.cells``): of each drawn cell, and of the test of each cell whose children are drawn.

    Examples
    --------
    >>> from simtree.plots import TreeDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from simtree import SimilarityTree
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]
    >>> tree = SimilarityTree(max_depth=1, splitter="cut", random_state=0).fit(X, y)
    >>> display = TreeDisplay.from_estimator(tree, feature_names=["size"])
    >>> display.test_text_[0].get_text()
    "|size - size'| ≤ 0.5"
    >>> display.text_[1].get_text().splitlines()
    ['$C_{1,0}$', '2 same', '0 different', 'score 2']
    """

    def __init__(self, tree: RankTree, *, max_depth: int = 3, feature_names: Sequence[str] | None = None) -> None:
        check_integer("max_depth", max_depth, 0)
        self.tree = tree
        self.max_depth = max_depth
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls, estimator: SimilarityTree, *, max_depth: int = 3, feature_names: Sequence[str] | None = None, ax: Any = None
    ) -> Self:
        """Draw a fitted tree.

        Parameters
        ----------
        estimator : SimilarityTree
            Fitted tree.
        max_depth, feature_names, ax
            As in `TreeDisplay` and `plot`; names are by default those of the data frame that the tree was fitted on.

        Returns
        -------
        Self
            The display, drawn.
        """
        refuse_pipeline("estimator", estimator)
        if not isinstance(estimator, SimilarityTree):
            raise TypeError(f"estimator={estimator!r} is not a SimilarityTree; give a single tree.")
        check_similarity(estimator, "estimator")
        return cls(estimator.tree_, max_depth=max_depth, feature_names=estimator._names(feature_names)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the tree; the font size is reduced to fit.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on, which are cleared; by default a new figure whose size depends on the tree.

        Returns
        -------
        Self
            The display, drawn.
        """
        columns = self._columns()
        levels, last = max(int(self.tree.cells.depth[cell]) for cell in columns), max(columns.values())
        width, height = max(4.0, last + 1.0), levels + BOX_HEIGHT + LEGEND
        edges = {"left": 0.0, "right": 1.0, "bottom": 0.0, "top": height / (height + TITLE)}
        ax = self._take_axes(ax, figsize=(COLUMN_INCHES * width, LEVEL_INCHES * (height + TITLE)), gridspec_kw=edges)
        ax.clear()
        ax.set(xlim=((last - width) / 2, (last + width) / 2), ylim=(0.04 - height, 0.04))
        ax.set_axis_off()
        deepest = int(self.tree.cells.depth.max())
        shown = "" if levels == deepest else f", {count(levels, 'level')} of {deepest:,}"
        ax.set_title(f"Similarity tree{shown}", pad=2.0)
        colours = self._draw_cells(columns)
        self.figure_.canvas.figure.draw_without_rendering()  # Computes the layout, so that text can be measured.
        extents = [text.get_window_extent() for text in self.text_.values()]
        x_pixels, y_pixels = ax.transData.transform((1.0, 1.0)) - ax.transData.transform((0.0, 0.0))
        room = 0.92 * BOX_WIDTH * x_pixels, 0.92 * BOX_HEIGHT * y_pixels
        size = FONT_SIZE * min(1.0, *(min(room[0] / box.width, room[1] / box.height) for box in extents))
        for text in self.text_.values():
            text.set_fontsize(size)
        self._draw_tests(columns, 0.9 * size, 1.9 * x_pixels)
        self._draw_legend(colours, (last / 2 - 1.0, 0.04 - height + 0.55 * LEGEND, 2.0, 0.07), 0.9 * size)
        return self

    def _is_open(self, cell: int) -> bool:
        """Whether the children of the cell are drawn."""
        return bool(self.tree.cells.inside[cell] >= 0 and self.tree.cells.depth[cell] < self.max_depth)

    def _columns(self) -> dict[int, float]:
        """Return the horizontal position of each drawn cell: one column per cell without children, parents centred above."""
        # Two cells of a level are then at least one column apart, and two cells with children at least two, so their tests fit.
        position: dict[int, float] = {}

        def visit(cell: int, column: int) -> int:
            if not self._is_open(cell):
                position[cell] = float(column)
                return column + 1
            inside, outside = int(self.tree.cells.inside[cell]), int(self.tree.cells.outside[cell])
            column = visit(outside, visit(inside, column))
            position[cell] = (position[inside] + position[outside]) / 2
            return column

        visit(0, 0)
        return position

    def _log_ratios(self) -> NDArray[np.float64]:
        """Return log10 of the proportion of same over that of different pairs of each cell, smoothed by half a pair."""
        same, different = self.tree.cells.n_same, self.tree.cells.n_different
        half = 0.5 * different[0] / same[0]
        odds = (same + 0.5) / (different + half)
        return np.asarray(np.log10(odds / odds[0]), dtype=np.float64)

    def _draw_cells(self, columns: dict[int, float]) -> Any:
        """Draw the boxes of the cells with their texts, and return the colour map."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, Normalize
        from matplotlib.patches import FancyBboxPatch

        ratios = self._log_ratios()
        decades = min(3, max(1, math.ceil(np.abs(ratios[list(columns)]).max() - 0.5)))
        colours = ScalarMappable(Normalize(-decades, decades, clip=True), LinearSegmentedColormap.from_list("simtree", PALETTE))
        look: dict[str, Any] = {"boxstyle": f"round,pad=0,rounding_size={0.12 * BOX_HEIGHT}", "ec": FAINT, "lw": 0.8}
        style = {"ha": "center", "va": "center", "size": FONT_SIZE, "color": INK, "linespacing": 1.25}
        self.text_: dict[int, Any] = {}
        for cell, x in columns.items():
            y = -int(self.tree.cells.depth[cell]) - BOX_HEIGHT
            corner, face = (x - BOX_WIDTH / 2, y), colours.to_rgba(ratios[cell])
            self.ax_.add_patch(FancyBboxPatch(corner, BOX_WIDTH, BOX_HEIGHT, fc=face, **look))
            self.text_[cell] = self.ax_.text(x, y + BOX_HEIGHT / 2, self._describe(cell), **style)
        return colours

    def _draw_legend(self, colours: Any, bounds: tuple[float, float, float, float], size: float) -> None:
        """Draw the colour bar."""
        bar = self.ax_.inset_axes(bounds, transform=self.ax_.transData)
        self.colorbar_ = self.figure_.colorbar(colours, cax=bar, orientation="horizontal")
        self.colorbar_.outline.set_visible(False)
        powers = range(round(colours.norm.vmin), round(colours.norm.vmax) + 1)
        self.colorbar_.set_ticks(powers, labels=[f"{10**k}" if k >= 0 else f"1/{10**-k}" for k in powers])
        bar.tick_params(labelsize=0.9 * size, length=2, colors=FAINT)
        bar.set_xlabel("share of same pairs / share of different pairs", size=size, color=FAINT)
        for x, side, word in ((-0.03, "right", "different"), (1.03, "left", "similar")):
            bar.text(x, 0.5, word, transform=bar.transAxes, ha=side, va="center", size=size)

    def _describe(self, cell: int) -> str:
        """Return the text of a cell: name, counts, and its score or a note that its children are not drawn."""
        cells = self.tree.cells
        depth, rank, same, different = cells.depth[cell], cells.rank[cell], cells.n_same[cell], cells.n_different[cell]
        score = float(self.tree.scores[cell])
        end = f"\nscore {score:.0f}" if score < 1e7 else f"\nscore {score:.4g}"
        if cells.inside[cell] >= 0:
            end = "" if self._is_open(cell) else "\nsplit further ..."
        return f"$C_{{{depth},{rank}}}$\n{same:,} same\n{different:,} different{end}"

    def _draw_tests(self, columns: dict[int, float], size: float, room: float) -> None:
        """Draw the test (at most ``room`` wide) and the two edges below each cell whose children are drawn."""
        style = {"ha": "center", "va": "center", "size": size}
        ground = {"fc": self.ax_.get_facecolor(), "ec": "none", "pad": 1.0}
        self.test_text_: dict[int, Any] = {}
        for cell in filter(self._is_open, columns):
            x, top = columns[cell], -int(self.tree.cells.depth[cell])
            text = self.ax_.text(x, top - (BOX_HEIGHT + TEST_BOTTOM) / 2, "", parse_math=False, linespacing=1.15, **style)
            self.test_text_[cell] = text
            for candidate in self._test_texts(cell):
                text.set_text(candidate)
                if text.get_window_extent().width <= room:
                    break
            self.ax_.plot([x, x], [top - TEST_BOTTOM, top - BAR], color=FAINT, lw=0.8, zorder=0)
            for child, label in ((self.tree.cells.inside[cell], "inside"), (self.tree.cells.outside[cell], "outside")):
                end = columns[int(child)]
                self.ax_.plot([x, end, end], [top - BAR, top - BAR, top - 1.0], color=FAINT, lw=0.8, zorder=0)
                self.ax_.text(end, top - (BAR + 1.0) / 2, label, bbox=ground, color=FAINT, **style)

    def _test_texts(self, cell: int) -> Iterator[str]:
        """Iterate over ever shorter texts of the main test of a cell: first with shorter feature names, then cut off."""
        test, n_more = _main_test(self.tree.region(cell))
        note = f"\n+ {n_more} more test{'s' if n_more > 1 else ''}" if n_more else ""
        n_lines = 1 if note else 2
        names = self.feature_names
        features = [f"x{j}" for j in range(self.tree.pair_map.n_all_features)] if names is None else list(map(str, names))
        for length in NAME_LENGTHS if isinstance(test, AxisRegion) else NAME_LENGTHS[:6]:
            short = [shorten(name, length) for name in features]
            labels, subjects = self.tree.pair_map.names(short), self.tree.pair_map.subjects(short)
            described = describe_region(test, labels, subjects=subjects)[0]
            rule = " ".join(described.replace("<=", "≤").replace(">=", "≥").split())
            yield rule + note
            if n_lines == 2:
                yield textwrap.fill(rule, len(rule) // 2 + 6)
        for length in range(NAME_LENGTHS[0], 4, -2):
            yield textwrap.fill(rule, length, max_lines=n_lines, placeholder=" …", break_on_hyphens=False) + note


class ExplanationDisplay(Display):
    """Bar chart of the contribution of each feature to the score of a pair, positive for similar and negative for different.

    Parameters
    ----------
    explanation : Explanation
        Result of `explain_pair`.
    max_features : int, default=15
        Number of features that are shown, those with the largest contributions; the others are summed in one hatched bar, which
        is clipped if it is much longer than the others.
    threshold : float, optional
        Threshold in use, which the title compares with the score.

    Attributes
    ----------
    ax_, figure_, bars_
        Axes and figure it was last drawn on, and the bars.

    Examples
    --------
    >>> from simtree.plots import ExplanationDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from simtree import SimilarityTree
    >>> X, y = [[0.0, 5.0], [0.1, 3.0], [1.0, 4.0], [1.1, 6.0]], [0, 0, 1, 1]
    >>> tree = SimilarityTree(max_depth=1, splitter="cut").fit(X, y)
    >>> display = ExplanationDisplay.from_estimator(tree, X[0], X[2])
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['x0: 0, 1', 'x1: 5, 4']
    """

    def __init__(self, explanation: Explanation, *, max_features: int = 15, threshold: float | None = None) -> None:
        check_integer("max_features", max_features, 1)
        self.explanation = explanation
        self.max_features = max_features
        self.threshold = threshold

    @classmethod
    def from_estimator(
        cls,
        estimator: TreeLearner,
        x: ArrayLike,
        x2: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        max_features: int = 15,
        ax: Any = None,
    ) -> Self:
        """Draw the explanation of the score that a fitted similarity gives the pair (x, x2).

        Parameters
        ----------
        estimator : SimilarityTree or SimilarityForest
            Fitted similarity.
        x, x2 : array-like of shape (n_features,)
            The two samples.
        feature_names, max_features, ax
            As in `explain_pair`, `ExplanationDisplay` and `plot`.

        Returns
        -------
        Self
            The display, drawn.
        """
        check_similarity(estimator, "estimator")
        explanation = estimator.explain_pair(x, x2, feature_names=feature_names)
        return cls(explanation, max_features=max_features, threshold=float(estimator.threshold_)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on, which are cleared; a new figure by default.

        Returns
        -------
        Self
            The display, drawn.
        """
        explanation = self.explanation
        shown, rest = np.split(explanation.order(), [self.max_features])
        added = explanation.contributions[shown]
        labels = [
            f"{shorten(explanation.feature_names[j], 30)}: {value_text(explanation.x[j])}, {value_text(explanation.x2[j])}"
            for j in shown
        ]
        if len(rest):
            added = np.append(added, explanation.contributions[rest].sum())
            labels.append(count(len(rest), "more feature"))
        ax = self._take_axes(ax, figsize=(6.4, 1.2 + 0.3 * len(labels)), layout="constrained")
        ax.clear()
        position = np.arange(len(labels))
        self.bars_ = ax.barh(position, added, color=[PALETTE[-1] if value >= 0.0 else PALETTE[0] for value in added])
        ax.set_yticks(position, labels)
        ax.invert_yaxis()
        ax.axvline(0.0, color=FAINT, lw=0.8)
        if len(rest):
            self._clip_rest(added)
        title = f"score {explanation.score:.4g}; baseline (average pair) {explanation.base:.4g}"
        if self.threshold is not None:
            decision = "accepted" if explanation.score >= self.threshold else "rejected"
            title = f"{title}\n{decision} at threshold {self.threshold:.4g}"
        ax.set(xlabel="contribution to the score (+ same, - different)", title=title)
        return self

    def _clip_rest(self, added: NDArray[np.float64]) -> None:
        """Hatch the bar of the other features, and clip it if it would dwarf the others; its value is written then."""
        *_, bar = self.bars_
        bar.set(hatch="////", facecolor="white", edgecolor=bar.get_facecolor())
        low, high = min(0.0, *added[:-1]), max(0.0, *added[:-1])
        most = CLIPPED_AT * max(high - low, 1e-300)
        if abs(added[-1]) <= most:
            return
        self.ax_.set_xlim(
            min(1.05 * low, -most if added[-1] < 0.0 else 0.0), max(1.05 * high, most if added[-1] > 0.0 else 0.0)
        )
        ground = {"fc": "white", "ec": "none", "alpha": 0.9, "pad": 1.0}
        side = "right" if added[-1] > 0.0 else "left"
        x = 0.97 * most * np.sign(added[-1])
        self.ax_.text(x, len(added) - 1, f"{added[-1]:+.3g}", ha=side, va="center", bbox=ground, size=FONT_SIZE)


class PruningDisplay(Display):
    """Pruning path of a tree: training AUC and number of terminal cells against the penalty.

    Parameters
    ----------
    path : PruningPath
        Result of `cost_complexity_path`.
    chosen : float, optional
        Penalty that was used, marked by a line.

    Attributes
    ----------
    ax_, figure_, line_, cells_ax_, cells_line_
        Axes and figure it was last drawn on, the line of the AUC, and the second axes with its line.

    Examples
    --------
    >>> from simtree.plots import PruningDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from simtree import SimilarityTree
    >>> tree = SimilarityTree(max_depth=3, splitter="cut").fit([[0.0], [0.3], [0.2], [1.1]], [0, 0, 1, 1])
    >>> PruningDisplay.from_estimator(tree).ax_.get_ylabel()
    'AUC on training pairs'
    """

    def __init__(self, path: PruningPath, *, chosen: float | None = None) -> None:
        self.path = path
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: SimilarityTree, *, ax: Any = None) -> Self:
        """Draw the pruning path of a fitted tree, and the penalty it was pruned with.

        Parameters
        ----------
        estimator : SimilarityTree
            Fitted tree.
        ax : matplotlib axes, optional
            As in `plot`.

        Returns
        -------
        Self
            The display, drawn.
        """
        check_similarity(estimator, "estimator")
        return cls(estimator.cost_complexity_path(), chosen=estimator.prune_penalty_ or None).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        Self
            The display, drawn.
        """
        ax = self._take_axes(ax, figsize=(5.6, 4.0), layout="constrained")
        # A logarithmic axis cannot show zero: a penalty of zero is drawn a decade to the left of the smallest positive one.
        positive = self.path.penalties[self.path.penalties > 0.0]
        first = positive.min() / 10 if len(positive) else 1e-6
        penalties = np.append(np.maximum(self.path.penalties, first), max(first, self.path.penalties[-1]) * 2)
        style = {"drawstyle": "steps-post"}
        (self.line_,) = ax.plot(penalties, np.append(self.path.aucs, self.path.aucs[-1]), color=INK, **style)
        self.cells_ax_ = ax.twinx()
        leaves = np.append(self.path.n_leaves, self.path.n_leaves[-1])
        (self.cells_line_,) = self.cells_ax_.plot(penalties, leaves, color=PALETTE[0], **style)
        self.cells_ax_.set_yscale("log")
        self.cells_ax_.set_ylabel("terminal cells", color=PALETTE[0])
        ax.set(xscale="log", xlabel="penalty (minimum AUC gain per terminal cell)", ylabel="AUC on training pairs")
        self._title("Pruning path")
        if self.chosen is not None:
            ax.axvline(self.chosen, color=FAINT, ls=":", lw=1.2)
        return self


class ImportanceDisplay(Display):
    """Bar chart of the importances of features.

    Parameters
    ----------
    importances : array of shape (n_features,)
        ``feature_importances_`` of a fitted similarity.
    feature_names : sequence of str, optional
        Names of the features; x0, x1, ... by default.
    max_features : int, default=15
        Number of features that are shown, the most important ones; the others are summed in one bar.

    Attributes
    ----------
    ax_, figure_, bars_
        Axes and figure it was last drawn on, and the bars.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.plots import ImportanceDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = ImportanceDisplay(np.array([0.2, 0.7, 0.1]), max_features=2).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['x1', 'x0', '1 more feature']
    """

    def __init__(self, importances: ArrayLike, *, feature_names: Sequence[str] | None = None, max_features: int = 15) -> None:
        check_integer("max_features", max_features, 1)
        self.importances = np.asarray(importances, dtype=np.float64)
        self.feature_names = feature_names
        self.max_features = max_features

    @classmethod
    def from_estimator(
        cls,
        estimator: TreeLearner,
        *,
        feature_names: Sequence[str] | None = None,
        max_features: int = 15,
        ax: Any = None,
    ) -> Self:
        """Draw the importances of a fitted similarity.

        Parameters
        ----------
        estimator : SimilarityTree or SimilarityForest
            Fitted similarity.
        feature_names, max_features, ax
            As in `ImportanceDisplay` and `plot`; names are by default those of the data frame that it was fitted on.

        Returns
        -------
        Self
            The display, drawn.
        """
        check_similarity(estimator, "estimator")
        names = estimator._names(feature_names)
        return cls(estimator.feature_importances_, feature_names=names, max_features=max_features).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on, which are cleared; a new figure by default.

        Returns
        -------
        Self
            The display, drawn.
        """
        names = [f"x{j}" for j in range(len(self.importances))] if self.feature_names is None else self.feature_names
        shown, rest = np.split(np.argsort(-self.importances, kind="stable"), [self.max_features])
        shares, labels = self.importances[shown], [shorten(str(names[j]), 30) for j in shown]
        if len(rest):
            shares = np.append(shares, self.importances[rest].sum())
            labels.append(count(len(rest), "more feature"))
        ax = self._take_axes(ax, figsize=(5.6, 1.0 + 0.28 * len(labels)), layout="constrained")
        ax.clear()
        position = np.arange(len(labels))
        colours = [PALETTE[-1]] * len(shown) + [PALETTE[3]] * (len(labels) - len(shown))
        self.bars_ = ax.barh(position, shares, color=colours)
        ax.set_yticks(position, labels)
        ax.invert_yaxis()
        if len(rest):
            self.bars_[-1].set(hatch="////", facecolor="white", edgecolor=colours[-1])
        ax.set(xlabel="share of the total AUC gain", title="Feature importances")
        ax.grid(visible=True, axis="x", alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)
        return self


def _main_test(region: Region) -> tuple[Region, int]:
    """Return the test of an axis region that decreases impurity most, as a region, and the number of its other tests.

    The test has the direction (at most, or greater than) that most paths to the inside take. Other regions are returned
    unchanged.
    """
    if not isinstance(region, AxisRegion):
        return region, 0
    best = int(np.argmax(region.decrease))
    test = int(region.coordinate[best]), float(region.threshold[best])
    sides = [step.at_most for path in inside_paths(region) for step in path if step[:2] == test]
    inside, outside = np.array([[INSIDE], [OUTSIDE]], dtype=np.int32)
    if_le, if_gt = (inside, outside) if 2 * sum(sides) >= len(sides) else (outside, inside)
    one = slice(best, best + 1)
    states = None if region.states is None else region.states[one]
    test_alone = AxisRegion(region.coordinate[one], region.threshold[one], if_le, if_gt, region.decrease[one], states)
    return test_alone, len(region.coordinate) - 1
