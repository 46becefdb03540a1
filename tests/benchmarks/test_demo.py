"""Test that the README's animation shows the program's answers."""

from benchmarks.demo import PICTURE, draw


def test_the_animation_shows_this_programs_answers() -> None:
    assert draw() == PICTURE.read_text(encoding="utf-8"), "run: python -m benchmarks.demo"
