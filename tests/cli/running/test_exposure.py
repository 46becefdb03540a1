"""Test whether other people can sign in to the machine."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from cli.running.exposure import has_other_users


@pytest.mark.parametrize(("we", "expected"), [(1000, True), (1001, False), (0, False)])
def test_accounts_that_can_sign_in_count_as_other_people_and_root_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, we: int, expected: bool
) -> None:
    def account(name: str, number: int, shell: str = "/bin/sh") -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", number, number, "", str(tmp_path), shell))

    accounts = [account("root", 0), account("daemon", 2), account("eve", 1001), account("git", 1002, "/sbin/nologin")]
    monkeypatch.setattr(pwd, "getpwall", lambda: accounts)
    monkeypatch.setattr(os, "getuid", lambda: we)
    assert has_other_users() is expected
