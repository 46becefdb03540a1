"""What the language of a text alone gives the vectors of the models inside: python -m benchmarks.centres

Writes orchestrator/semantic/centres.npz, from the sets on which the fusion was tuned; the others tell whether it helps.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import orchestrator.semantic
from benchmarks.retrieval.question_sets import own_sets
from orchestrator.semantic.centres import shares
from orchestrator.semantic.models import BUNDLED, loaded_as_it_is
from orchestrator.semantic.prefixes import prefixes_for

SETS = ("developers_en", "developers_ko", "long_dialogues", "development")
FILE = Path(orchestrator.semantic.__file__).parent / "centres.npz"


def means(vectors: NDArray[np.float32], texts: list[str]) -> NDArray[np.float32]:
    """The vector of a text in Hangul and of one in Latin letters that fit all texts best."""
    parts = np.array([shares(text) for text in texts], np.float32)
    return np.linalg.lstsq(parts, vectors, rcond=None)[0]


def main() -> None:
    """Measure and write."""
    sets = [one for one in own_sets() if one.name in SETS]
    asked = [question.text for one in sets for question in one.questions if question.is_answerable]
    said = [message.text[:2000] for one in sets for session in one.sessions for message in session.messages]
    found = {}
    for one in BUNDLED:
        encode, prefixes = loaded_as_it_is(one), prefixes_for(one.name)
        found[one.package] = np.stack(
            [
                means(np.asarray(encode([prefix + text for text in texts])), texts)
                for prefix, texts in ((prefixes.query, asked), (prefixes.passage, said))
            ]
        ).astype(np.float16)
    np.savez_compressed(FILE, allow_pickle=False, **found)


if __name__ == "__main__":
    main()
