"""Which of scikit-learn's checks cannot hold for estimators of pairs, and a mixin with which they do."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from simtree.pairs._inputs import check_samples

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

    def pair_score(self, pairs, X=None):
        check_is_fitted(self)
        samples = check_samples(self, pairs)
        return super().pair_score(np.stack([samples, np.zeros_like(samples)], axis=1))
