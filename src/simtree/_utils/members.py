"""Estimators with named members, whose parameters are those of the estimator, too, as in scikit-learn's `VotingClassifier`."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.metaestimators import _BaseComposition


class NamedMembers(_BaseComposition):
    """Base class of estimators that have a list of (name, estimator) tuples as a parameter.

    Subclasses set ``_MEMBERS``, the name of that parameter.
    """

    _MEMBERS: str

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator and, if ``deep``, of its members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the members and their parameters.

        Returns
        -------
        dict
            Parameters by name.
        """
        params: dict[str, Any] = self._get_params(self._MEMBERS, deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, replace members by name, or set their parameters as ``name__parameter``.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator.

        Returns
        -------
        self
            The estimator.
        """
        self._set_params(self._MEMBERS, **params)
        return self

    def _check_names(self, example: str) -> None:
        """Raise an error if there are no members, or if their names are not distinct and usable."""
        names = [name for name, _ in getattr(self, self._MEMBERS)]
        if not names:
            raise ValueError(f"{self._MEMBERS} is empty; give a list of (name, {example}) tuples.")
        self._validate_names(names)
