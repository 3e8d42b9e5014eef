"""Requests that are not answered: a status and one sentence, never a traceback or a path of this machine."""

from __future__ import annotations

import math

from simtree.gallery import GalleryError, NotEnrolledError
from simtree.service._calls import CallLogError
from simtree.service._keys import KeyFileError

# After so many seconds a client may ask again when something is out of order.
RETRY_SECONDS = 5


class RefusedError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
        Status of the answer.
    detail : str
        One sentence.
    retry_after : float, optional
        After how many seconds it makes sense to ask again.
    headers : dict, optional
        Further headers of the answer.
    """

    def __init__(
        self, status: int, detail: str, *, retry_after: float | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["retry-after"] = str(max(1, math.ceil(retry_after)))


def refusal_of(error: Exception, path: str) -> RefusedError | None:
    """Return how an error is answered; None if it is not expected.

    Parameters
    ----------
    error : Exception
        What was raised.
    path : str
        The gallery, whose place is not told.

    Returns
    -------
    RefusedError or None
        The answer.
    """
    said = str(error).replace(path, "the gallery")
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, NotEnrolledError):
        # The message of the gallery names an id that is similar, and people must not be guessed from here.
        return RefusedError(404, "the id is not enrolled.")
    if isinstance(error, GalleryError | CallLogError | KeyFileError):
        return RefusedError(503, said, retry_after=RETRY_SECONDS)
    if isinstance(error, TimeoutError):
        return RefusedError(503, "the gallery is locked by another program; try again.", retry_after=RETRY_SECONDS)
    if isinstance(error, OSError):
        return RefusedError(
            503, f"the gallery cannot be read or written ({error.strerror or type(error).__name__}).", retry_after=60
        )
    if isinstance(error, ValueError | TypeError | OverflowError):
        return RefusedError(422, said)
    return None
