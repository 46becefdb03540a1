"""Test text in columns: a Korean letter takes two."""

from cli.output import cut, display_width, printable, wrap


def test_a_letter_is_as_wide_as_in_a_terminal() -> None:
    for text, width in [("abc", 3), ("피보나치", 8), ("é", 1), ("👍", 2), ("", 0), ("a피", 3)]:
        assert display_width(text) == width


def test_a_cut_text_ends_with_an_ellipsis() -> None:
    assert cut("피보나치", 5) == "피보…"
    assert cut("피보", 5) == "피보"


def test_long_lines_break_at_spaces() -> None:
    assert list(wrap("시간 복잡도를 개선", 10)) == ["시간", "복잡도를", "개선"]


def test_a_word_longer_than_the_line_is_broken() -> None:
    assert list(wrap("x" * 25, 10)) == ["x" * 10, "x" * 10, "x" * 5]
    assert list(wrap("피보나치", 3)) == ["피", "보", "나", "치"]


def test_code_is_not_broken() -> None:
    code = "```python\n" + "x = " + "1" * 40 + "\n```"
    assert "\n".join(wrap(code + "\nand so on", 20)) == code + "\nand so on"


def test_a_stored_text_cannot_control_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\r\nc\td") == "a[2Jb\nc\td"


def test_invisible_characters_of_a_stored_text_are_shown_in_a_terminal() -> None:
    assert printable("a\u202eb\x1b[2J \U000e0041 é 👨‍👩‍👧") == "a⟦U+202E⟧b[2J ⟦U+E0041⟧ é 👨‍👩‍👧"
