"""The README's moving picture shows what the program answers."""

from benchmarks.demo import PICTURE, draw


def test_the_picture_is_of_this_program() -> None:
    assert draw() == PICTURE.read_text(encoding="utf-8"), "run: python -m benchmarks.demo"
