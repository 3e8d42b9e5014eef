"""Galleries of each older schema version, as files; run as a program it writes the one of the present version.

The file of a version is written before the version is raised, and kept for ever: later versions of simtree must upgrade it.
"""

from __future__ import annotations

import json
from pathlib import Path

from simtree import Gallery
from tiny_models import fitted, people, probes

FOLDER = Path(__file__).parent / "gallery_files"
# Values of all kinds that metadata can have; 2 and 2.0 are one value, "2" is another.
METADATA = {
    "site": ["A", "B", "ä'; --", "A", "A"],
    "level": [2, 2.0, -1.5, 2**60, "2"],
    "known": [True, False, True, None, True],
}


def fill(gallery):
    """Enrol some, remove one, and search for strangers, so that every table has a content."""
    X, _ = people(50, n=5, n_samples=2)
    gallery.enroll([f"p{k}" for k in range(5)], X[::2], metadata=METADATA, time=[86_400.0 * k for k in range(5)])
    gallery.enroll([f"p{k}" for k in range(5)], X[1::2], time=86_400.0)
    gallery.remove("p1")
    strangers, y = people(51, n=60, n_samples=1)
    gallery.calibrate(strangers, [f"stranger {k}" for k in y])
    gallery.enroll(["late"], probes()[:1])


def answers(gallery):
    """What a gallery says: answers that must be the same after an upgrade."""
    wheres = [{"site": "A"}, {"site": "ä'; --"}, {"level": 2}, {"level": "2"}, {"level": [-1.5, 2**60]}, {"known": True}]
    found = gallery.identify(probes(), k=6, max_fpir=0.5)
    return {
        "ids": gallery.ids(),
        "found": [found.query.tolist(), found.id.tolist()],
        "numbers": [found.score.tolist(), found.expected_false_matches.tolist()],
        "filtered": [sorted(set(gallery.identify(probes(), k=6, where=where).id)) for where in wheres],
        "audit": [gallery.audit().action.tolist(), gallery.audit().subjects.tolist()],
        "of one": gallery.audit("p2").action.tolist(),
    }


if __name__ == "__main__":
    from simtree.gallery._schema import VERSION

    file = FOLDER / f"version_{VERSION}.gallery"
    FOLDER.mkdir(exist_ok=True)
    with Gallery.create(file, fitted("gaussian"), fusion="top_mean", n_best=2, max_samples=3) as made:
        fill(made)
        made.compact()
        file.with_suffix(".json").write_text(json.dumps(answers(made), indent=1) + "\n")
