"""Test the configuration of the cluster in `deploy/ha`, without starting it; `make ha` kills its leader ten times."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.ha import cluster
from deploy.ha.cluster import NODES, Cluster
from deploy.ha.processes import MissingPrograms, check_programs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a cluster's folder with all its configurations; its programs need not be installed."""
    monkeypatch.setattr(cluster, "programs_of_postgres", lambda: Path("/usr/lib/postgresql/15/bin"))
    made = Cluster(tmp_path)
    for name in NODES:
        made._configure(name)
    made._configure_proxy()
    return tmp_path


def node(folder: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((folder / name / "patroni.yaml").read_text(encoding="utf-8"))
    return read


def test_an_acknowledged_write_is_on_two_disks_and_archived(folder: Path) -> None:
    for name in NODES:
        settings = node(folder, name)
        dcs = settings["bootstrap"]["dcs"]
        assert (dcs["synchronous_mode"], dcs["synchronous_mode_strict"]) == (True, True)
        assert dcs["loop_wait"] + 2 * dcs["retry_timeout"] <= dcs["ttl"]
        assert dcs["postgresql"]["parameters"]["archive_mode"] == "on"
        assert f"{folder}/{name}/pgbackrest.conf" in settings["postgresql"]["parameters"]["archive_command"]


def test_nodes_share_no_port_and_listen_only_on_loopback(folder: Path) -> None:
    listening = [node(folder, name)[part]["listen"] for name in NODES for part in ("restapi", "postgresql")]
    assert len(set(listening)) == 6
    assert {one.partition(":")[0] for one in listening} == {"127.0.0.1"}


def test_each_cluster_has_new_passwords_that_only_its_owner_can_read(folder: Path, tmp_path: Path) -> None:
    secrets = {
        node(folder, NODES[0])["postgresql"]["authentication"][who]["password"] for who in ("superuser", "rewind")
    }
    assert len(secrets) == 2
    assert all(len(one) == 32 for one in secrets)
    for file in (folder / "passwords.json", folder / NODES[0] / "patroni.yaml", folder / "make_database"):
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
    other = Cluster(tmp_path / "other")
    other.folder.mkdir()
    assert other.url != Cluster(folder).url


@pytest.mark.skipif(not shutil.which("haproxy"), reason="no haproxy")
def test_haproxy_accepts_its_configuration(folder: Path) -> None:
    done = subprocess.run(["haproxy", "-c", "-f", folder / "haproxy.cfg"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("patroni"), reason="no patroni")
def test_patroni_accepts_its_configuration(folder: Path) -> None:
    asked: list[str | Path] = ["patroni", "--validate-config", folder / NODES[0] / "patroni.yaml"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    problems = (done.stdout + done.stderr).splitlines()
    # Its validation needs a public address, free ports, and a running etcd.
    expected = ("connect_address", "in use", "not reachable")
    assert [line for line in problems if not any(words in line for words in expected)] == []


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name in ("etcd", "patroni") else name)
    with pytest.raises(MissingPrograms, match="apt-get install patroni etcd-server"):
        check_programs()
