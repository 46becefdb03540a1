"""Mask planted and innocent pieces: python -m benchmarks.secrets.pieces [--show] [--pieces FOLDER]

Each third piece is held out: it counts in the figures and `--show` never prints it, so that rules can be tuned
without reading it. A planted piece is missed if 12 characters in a row of a secret, or the whole of a shorter one,
stay in the masked text. An innocent piece is damaged if masking changes it.
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
    """A text, the secrets in it, the file that it is from, and whether it is held out while rules are tuned."""

    text: str
    secrets: list[str]
    source: str
    is_held_out: bool


def read_pieces(folder: Path, seed: int = 1) -> Iterator[Piece]:
    """Yield all pieces with made-up values in the place of their templates."""
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
    """Return whether a run of 12 characters of a secret is left, or the whole of a shorter one."""
    rest = piece.text
    for secret in piece.secrets:
        rest = rest.replace(secret, "")  # a certificate begins like a private key
    runs = (secret[at : at + 12] for secret in piece.secrets for at in range(max(1, len(secret) - 11)))
    return any(run in masked and run not in rest for run in runs)


def main() -> None:
    """Print how many pieces of each file are missed or damaged, of those read and of those held out."""
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
