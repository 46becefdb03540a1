"""Mask pieces with and without secrets: python -m benchmarks.secrets.pieces [--show] [--pieces FOLDER]

Each third piece is held out: it counts, but `--show` never prints it, so that rules are tuned without it. A planted
piece is missed if 12 consecutive characters of a secret, or all of a shorter one, remain in the masked text. An
innocent piece is damaged if masking changes it.
"""

from __future__ import annotations

import argparse
import random
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.setup.figures import table
from registry.text.privacy.secrets import mask_secrets

ALPHABETS = {
    "h": "0123456789abcdef",
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "A": string.ascii_uppercase + "234567",
    "b": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_letters + string.digits + "-_",
    "d": string.digits,
}


class Piece(NamedTuple):
    """A text, the secrets in it, its file, and whether it is held out."""

    text: str
    secrets: list[str]
    source: str
    is_held_out: bool


def read_pieces(folder: Path, seed: int = 1) -> Iterator[Piece]:
    """Yield all pieces, with random values for their templates."""
    chance = random.Random(seed)

    def make_up(template: re.Match[str]) -> str:
        letters, length = template[1], int(template[2])
        return "".join(chance.choices(ALPHABETS[letters], k=length))

    for path in sorted(folder.glob("*.txt")):
        texts = [text.strip("\n") for text in re.split(r"(?m)^---$", path.read_text(encoding="utf-8"))]
        texts = [text for text in texts if not text.startswith("# Pieces ")]
        for number, text in enumerate(texts):
            filled = re.sub(r"\{([halAbud])(\d+)\}", make_up, text)
            secrets = re.findall("(?s)⟪(.*?)⟫", filled)
            yield Piece(re.sub("[⟪⟫]", "", filled), secrets, path.stem, number % 3 == 2)


def is_missed(piece: Piece, masked: str) -> bool:
    """Return True if 12 consecutive characters of a secret, or all of a shorter one, are in the masked text."""
    rest = piece.text
    for secret in piece.secrets:
        rest = rest.replace(secret, "")  # a certificate begins like a private key
    runs = (secret[at : at + 12] for secret in piece.secrets for at in range(max(1, len(secret) - 11)))
    return any(run in masked and run not in rest for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secrets.pieces", description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the wrong pieces that are not held out")
    parser.add_argument("--pieces", type=Path, default=Path(__file__).parent / "texts", metavar="FOLDER")
    options = parser.parse_args()
    counts: dict[tuple[str, bool], list[int]] = {}
    for piece in read_pieces(options.pieces):
        masked = mask_secrets(piece.text, b"any")
        is_wrong = is_missed(piece, masked) if piece.secrets else masked != piece.text
        count = counts.setdefault((piece.source, piece.is_held_out), [0, 0])
        count[0] += 1
        count[1] += is_wrong
        if is_wrong and options.show and not piece.is_held_out:
            print(f"--- {piece.source}\n{masked if piece.secrets else f'{piece.text}{chr(10)}>>> {masked}'}"[:700])
    rows = [
        (source, "held out" if held_out else "read", str(total), str(wrong))
        for (source, held_out), (total, wrong) in sorted(counts.items())
    ]
    print(table(("pieces", "", "count", "missed or damaged"), rows))
    for name in ("planted", "innocent"):
        for is_held_out in (False, True):
            chosen = [
                count for (source, held), count in counts.items() if source[:3] == name[:3] and held == is_held_out
            ]
            total, wrong = (sum(column) for column in zip(*chosen, strict=True))
            print(f"{name}, {'held out' if is_held_out else 'read'}: {wrong} of {total}")


if __name__ == "__main__":
    main()
