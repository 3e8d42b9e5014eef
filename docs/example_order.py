"""The order of the example gallery: from a first model to the paper's table."""

ORDER = [
    "plot_unseen_identities.py",
    "plot_known_classes.py",
    "plot_choose_threshold.py",
    "plot_probabilities.py",
    "plot_search.py",
    "plot_read_tree.py",
    "plot_explain_pair.py",
    "plot_given_pairs.py",
    "plot_own_splitter.py",
    "plot_paper_table.py",
]


def position(filename: str) -> int:
    """Return the place of an example in the gallery; one that is not in the list comes last."""
    return ORDER.index(filename) if filename in ORDER else len(ORDER)
