"""Whether the identities that will be met are taken for those of the training data."""

from __future__ import annotations

# With more labels than this, the identities that will be met are taken for others than those of the training data. To be wrong
# in this direction costs some accuracy; to be wrong in the other promises what unseen identities do not keep.
MAX_CLOSED_SET_LABELS = 10


def is_open_set(n_labels: int) -> bool:
    """Return whether data with this many labels are taken for an open set, to which new identities will come.

    Examples
    --------
    >>> is_open_set(10), is_open_set(11)
    (False, True)
    """
    return n_labels > MAX_CLOSED_SET_LABELS
