"""Which of scikit-learn's checks cannot hold for estimators of pairs, and a mixin with which they do."""

from __future__ import annotations

import numpy as np

ON_POINTS = "the check hands points to predict and decision_function, which take pairs; passed by AgainstOrigin below"
EXPECTED_FAILURES = dict.fromkeys(
    (
        "check_dict_unchanged",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    ),
    ON_POINTS,
)


class AgainstOrigin:
    """Takes a point for the pair of it and the origin, so that scikit-learn's checks can hand over points."""

    def _check_pairs(self, pairs, X):
        points = np.asarray(self._check_points(pairs))
        return super()._check_pairs(np.stack([points, np.zeros_like(points)], axis=1), X)
