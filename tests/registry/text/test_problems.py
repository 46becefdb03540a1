"""A problem is recognised with other names, paths and numbers."""

from __future__ import annotations

from registry.text.problems import find_problems


def test_the_same_problem_is_recognised() -> None:
    cases: list[tuple[str, str]] = [
        (
            "TypeError: Cannot read properties of undefined (reading 'map')",
            "Uncaught TypeError: Cannot read properties of undefined (reading 'id')",
        ),
        (
            "E   sqlalchemy.exc.OperationalError: connection to server at 10.0.0.3, port 5432 failed",
            "OperationalError: connection to server at 127.0.0.1, port 6543 failed",
        ),
        (
            "src/a.ts(3,1): error TS2345: Argument of type 'X' is not assignable",
            "lib/b.ts(40,12): error TS2345: Argument of type 'Y' is not assignable",
        ),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", "Error: connect ECONNREFUSED 10.1.1.1:6379"),
        ("오류: 포트 8080 이미 사용 중", "오류: 포트 9090 이미 사용 중"),
    ]
    for one, other in cases:
        assert list(find_problems(one)) == list(find_problems(other)) != []


def test_source_code_and_prose_contain_no_problem() -> None:
    cases: list[str] = [
        "except KeyError: continue",
        "raise ValueError('x')",
        "There was an error.",
        "errors: 0",
        "no problem",
    ]
    for text in cases:
        assert find_problems(text) == {}
