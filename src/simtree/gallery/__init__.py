"""1:N: identities enrolled in one file, that loses nothing and forgets on request, and the search among them."""

from simtree.gallery._answers import AuditTrail, Candidates, Duplicate, Enrolment, Groups, Identity, Verifications
from simtree.gallery._errors import GalleryError, NotEnrolledError
from simtree.gallery._gallery import Gallery

__all__ = [
    "AuditTrail",
    "Candidates",
    "Duplicate",
    "Enrolment",
    "Gallery",
    "GalleryError",
    "Groups",
    "Identity",
    "NotEnrolledError",
    "Verifications",
]
