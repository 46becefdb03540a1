"""Test the tests by mutation: python -m benchmarks.mutants [--lines N] [--only PREFIX]

Changes a random sample of lines, one at a time, in a copy of the checkout (a comparison, a condition, a number, a
removed call), and runs the nearest tests until one fails. Prints the mutants that survive.
"""

from __future__ import annotations

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from benchmarks.setup.figures import table

PACKAGES = ("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli")
TEST_TIMEOUT_S = 60  # some mutants never end
TESTS_ELSEWHERE = {"backoffice/pages": "tests/pages"}  # the only folder whose tests have another path

DOORS = {
    "registry": "tests/orchestrator",
    "orchestrator": "tests/mcp_server",
}  # some behaviour is tested one layer above

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Mutant(NamedTuple):
    """A changed line: `before`, at the bytes from `start` to `end`, is replaced by `after`."""

    file: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} -> {self.after}"


class Result(NamedTuple):
    """A mutant, and whether a test failed."""

    mutant: Mutant
    is_killed: bool


def changed(node: ast.AST) -> ast.AST | None:
    """Return the node with one change; None if the node is of another kind."""
    match node:
        case ast.Compare(left, [operator], right) if type(operator) in COMPARISONS:
            return ast.Compare(left, [COMPARISONS[type(operator)]()], right)
        case ast.BoolOp(operator, values):
            return ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() as value):
            return ast.Constant(value + 1)
        case ast.IfExp(test, body, orelse):
            return ast.IfExp(test, orelse, body)
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            return ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await()):
            return ast.Pass()
    return None


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file that changes one line inside a function."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in {child for function in functions for part in function.body for child in ast.walk(part)}:
        line, end_line = getattr(node, "lineno", 0), getattr(node, "end_lineno", None)
        if not line or line != end_line or "logger." in lines[line - 1]:
            continue
        if after := changed(node):
            start, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined] # it has a line, so these too
            code = lines[line - 1].encode()
            yield Mutant(file, line, start, end, code[start:end].decode(), ast.unparse(after))


def sample(count: int, seed: int, only: str) -> list[Mutant]:
    """Choose random lines and one mutant for each, reproducibly for the same seed and code."""
    chosen = random.Random(seed)
    of_lines: dict[tuple[Path, int], list[Mutant]] = {}
    for package in PACKAGES:
        for file in sorted(Path(package).rglob("*.py")):
            if file.as_posix().startswith(only):
                for mutant in sorted(mutants_of(file)):
                    of_lines.setdefault((mutant.file, mutant.line), []).append(mutant)
    lines = chosen.sample(sorted(of_lines), min(count, len(of_lines)))
    return [chosen.choice(of_lines[line]) for line in lines]


def nearest_tests(file: Path) -> list[str]:
    """Return tests, nearest first: named like the file, importing it, in its folder, its package, the layer above."""
    module = ".".join(file.with_suffix("").parts)
    package = file.parts[0]
    mirrored = next((Path(tests) for part, tests in TESTS_ELSEWHERE.items() if file.is_relative_to(part)), None)
    folders = [mirrored or Path("tests") / file.parent, Path("tests") / package, Path(DOORS.get(package, "tests/none"))]

    def distance(test: Path) -> int:
        if file.stem in test.stem:
            return -2
        if module in test.read_text(encoding="utf-8"):
            return -1
        return next((place for place, folder in enumerate(folders) if test.is_relative_to(folder)), len(folders))

    distances = {test: distance(test) for test in sorted(Path("tests").rglob("test_*.py"))}
    return [str(test) for test in sorted(distances, key=distances.__getitem__) if distances[test] < len(folders)]


def run_tests(copy: Path, mutant: Mutant) -> Result:
    """Write the mutant into a copy of the checkout, run the nearest tests, and restore the file."""
    place = copy / mutant.file
    original = place.read_bytes()
    lines = original.split(b"\n")
    line = lines[mutant.line - 1]
    after = mutant.after if mutant.after == "pass" or mutant.after.startswith("return") else f"({mutant.after})"
    lines[mutant.line - 1] = line[: mutant.start] + after.encode() + line[mutant.end :]
    place.write_bytes(b"\n".join(lines))
    is_page = any(mutant.file.is_relative_to(part) for part in TESTS_ELSEWHERE)  # all tests of pages are marked slow
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--timeout={TEST_TIMEOUT_S}",
        *([] if is_page else ["-m", "not slow"]),
    ]
    command = [sys.executable, "-m", "pytest", *options, *nearest_tests(mutant.file)]
    try:
        return Result(mutant, subprocess.run(command, cwd=copy, capture_output=True).returncode != 0)
    finally:
        place.write_bytes(original)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--lines", type=int, default=200, help="number of lines to change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="PREFIX", help="only files whose path begins with this")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    mutants = sample(options.lines, options.seed, options.only)
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.workers):
            copy = Path(folder) / str(number)
            shutil.copytree(".", copy, ignore=shutil.ignore_patterns(".venv", ".git", "node_modules", ".*_cache"))
            copies.put(copy)

        def work(mutant: Mutant) -> Result:
            copy = copies.get()
            try:
                result = run_tests(copy, mutant)
                print("killed  " if result.is_killed else "SURVIVED", mutant, flush=True)
                return result
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(options.workers) as pool:
            results = list(pool.map(work, mutants))
    by_package = Counter(one.mutant.file.parts[0] for one in results)
    killed = Counter(one.mutant.file.parts[0] for one in results if one.is_killed)
    rows = [[name, str(by_package[name]), str(killed[name])] for name in PACKAGES if by_package[name]]
    rows.append(["all", str(len(results)), f"{sum(killed.values())} ({sum(killed.values()) / len(results):.0%})"])
    print(table(["package", "lines", "killed"], rows))


if __name__ == "__main__":
    main()
