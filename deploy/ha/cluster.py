"""Configure, start and stop the processes of a cluster: PostgreSQL under Patroni, etcd, HAProxy."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any

from deploy.ha.processes import (
    ADDRESS,
    CHILDREN,
    accepts,
    answers,
    check_programs,
    is_running,
    parents,
    programs_of_postgres,
    wait_until,
)

HERE = Path(__file__).parent
NODES = ("node1", "node2", "node3")
UP_S = 120.0


class Cluster:
    """A cluster in one folder, whose `pids.json` lists the running processes."""

    def __init__(self, folder: Path, base_port: int = 21500) -> None:
        self.folder = folder.absolute()
        self.etcd_ports = {name: (base_port + 10 + at, base_port + 20 + at) for at, name in enumerate(NODES)}
        self.rest_ports = {name: base_port + 30 + at for at, name in enumerate(NODES)}
        self.pg_ports = {name: base_port + 40 + at for at, name in enumerate(NODES)}
        self.leader_port, self.replica_port = base_port, base_port + 1
        self.bin = programs_of_postgres()
        self.user = "postgres" if os.geteuid() == 0 else None
        """PostgreSQL refuses to run as root."""

    @property
    def url(self) -> str:
        """URL of the current leader, for CTXR_DATABASE_URL."""
        return f"postgresql://ctxr:{self.passwords()['CTXR_PASSWORD']}@{ADDRESS}:{self.leader_port}/ctxr"

    def up(self) -> None:
        """Start what does not run, and wait for a leader with a synchronous replica. TimeoutError if there is none."""
        check_programs()
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in NODES:
            self._configure(name)
        self._configure_proxy()
        self.give_to_postgres()
        for name in NODES:
            self.start(f"etcd-{name}", self._etcd(name))
        wait_until(lambda: answers(f"http://{ADDRESS}:{self.etcd_ports[NODES[0]][0]}/health"), "etcd", UP_S)
        for name in NODES:
            self.start_node(name)
        self.start("haproxy", ["haproxy", "-W", "-db", "-f", str(self.folder / "haproxy.cfg")])
        wait_until(self.is_led, "a leader", UP_S)
        self.backrest(self.leader(), "stanza-create")  # does nothing if there is one
        wait_until(self.is_safe, "a leader with a synchronous replica", UP_S)
        wait_until(lambda: accepts(self.leader_port), "HAProxy", UP_S)

    def down(self) -> None:
        """Stop all processes, including a restored server."""
        self.end("restored", signal.SIGINT)
        for name in NODES:
            self.kill_node(name, signal.SIGTERM)
        for name in ("haproxy", *(f"etcd-{node}" for node in NODES)):
            self.end(name, signal.SIGTERM)

    def start_node(self, name: str) -> None:
        """Start a node's Patroni, which starts its PostgreSQL."""
        self.start(name, ["patroni", str(self._node(name) / "patroni.yaml")])

    def kill_node(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End a node's Patroni and PostgreSQL, by default at once (-9), as a failed machine would."""
        pids = [*self._postgres_pids(name)] if how == signal.SIGKILL else []
        self.end(name, how)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def pause_replication(self) -> list[int]:
        """Stop the WAL receivers of all followers; return their process ids, for `drop_replication`."""
        leader = self.leader()
        found = [pid for name in NODES if name != leader for pid in self._postgres_pids(name) if _receives(pid)]
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        return found

    def drop_replication(self, paused: Sequence[int]) -> None:
        """End the paused WAL receivers, so that what the leader sent meanwhile is lost."""
        for pid in paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)  # pending: it ends before it reads again
                os.kill(pid, signal.SIGCONT)

    def members(self) -> list[dict[str, Any]]:
        """Return name, role, state, timeline and lag of each node as one Patroni lists them; [] if none answers."""
        for port in self.rest_ports.values():
            address = f"http://{ADDRESS}:{port}/cluster"
            with suppress(OSError, ValueError), urllib.request.urlopen(address, timeout=2) as answer:
                found: list[dict[str, Any]] = json.load(answer)["members"]
                return found
        return []

    def leader(self) -> str:
        """Return the name of the leader, or ""."""
        return next((one["name"] for one in self.members() if one["role"] == "leader"), "")

    def is_safe(self) -> bool:
        """Return True if there is a leader with a replica, which is synchronous in synchronous mode."""
        roles = {one["role"] for one in self.members() if one["state"] in ("running", "streaming")}
        return {"leader", "sync_standby" if self.is_synchronous() else "replica"} <= roles

    def is_synchronous(self) -> bool:
        """Return True in synchronous mode, or if no node answers."""
        for port in self.rest_ports.values():
            address = f"http://{ADDRESS}:{port}/config"
            with suppress(OSError, ValueError), urllib.request.urlopen(address, timeout=2) as answer:
                return bool(json.load(answer)["synchronous_mode"])
        return True

    def is_whole(self) -> bool:
        """Return True if all three nodes run, and the cluster is safe."""
        return self.is_safe() and len([one for one in self.members() if one["state"] in ("running", "streaming")]) == 3

    def set_synchronous(self, *, is_on: bool) -> None:
        """Switch synchronous mode: commits wait for a replica, which is safe but slower."""
        asked = json.dumps({"synchronous_mode": is_on, "synchronous_mode_strict": is_on}).encode()
        address = f"http://{ADDRESS}:{self.rest_ports[self.leader()]}/config"
        urllib.request.urlopen(urllib.request.Request(address, asked, method="PATCH"), timeout=10).close()

    def backrest(self, node: str, *words: str) -> str:
        """Run pgBackRest with a node's configuration; return its output. RuntimeError if it fails."""
        command = ["pgbackrest", f"--config={self._node(node) / 'pgbackrest.conf'}", "--stanza=ctxr", *words]
        done = subprocess.run(command, user=self.user, cwd="/", capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def is_led(self) -> bool:
        """Return True if a node is the leader."""
        return any(answers(f"http://{ADDRESS}:{port}/primary") for port in self.rest_ports.values())

    def _node(self, name: str) -> Path:
        return self.folder / name

    def _etcd(self, name: str) -> Sequence[str]:
        client, peer = (f"http://{ADDRESS}:{port}" for port in self.etcd_ports[name])
        peers = ",".join(f"{one}=http://{ADDRESS}:{ports[1]}" for one, ports in self.etcd_ports.items())
        return [
            "etcd", "--name", name, "--data-dir", str(self._node(name) / "etcd"),
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", peers, "--initial-cluster-token", "ctxr", "--enable-v2=false",
            # three nodes on one disk are slow at times; leave these two out on separate machines
            "--heartbeat-interval", "300", "--election-timeout", "3000",
        ]  # fmt: skip

    def _configure(self, name: str) -> None:
        node = self._node(name)
        for folder in (node, node / "etcd", node / "sockets", self.folder / "backups", self.folder / "logs"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        given = {
            "NAME": name,
            "ADDRESS": ADDRESS,
            "NETWORK": f"{ADDRESS}/32",
            "REST_PORT": str(self.rest_ports[name]),
            "PG_PORT": str(self.pg_ports[name]),
            "ETCD_HOSTS": ",".join(f"{ADDRESS}:{client}" for client, _ in self.etcd_ports.values()),
            "DATA": str(node / "data"),
            "BIN": str(self.bin),
            "PGPASS": str(node / "pgpass"),
            "SOCKETS": str(node / "sockets"),
            "BACKREST": str(node / "pgbackrest.conf"),
            "POST_BOOTSTRAP": str(self.folder / "make_database"),
            "WATCHDOG": "off",
            **self.passwords(),
        }
        fill("patroni.yaml", node / "patroni.yaml", given)
        fill("pgbackrest.conf", node / "pgbackrest.conf", given | {"REPOSITORY": str(self.folder / "backups")})
        fill("make_database", self.folder / "make_database", given)
        (self.folder / "make_database").chmod(0o700)

    def _configure_proxy(self) -> None:
        nodes = "\n".join(
            f"    server {name} {ADDRESS}:{self.pg_ports[name]} check port {self.rest_ports[name]}" for name in NODES
        )
        ports = {"LEADER_PORT": str(self.leader_port), "REPLICA_PORT": str(self.replica_port)}
        fill("haproxy.cfg", self.folder / "haproxy.cfg", {"ADDRESS": ADDRESS, "NODES": nodes, **ports})

    def passwords(self) -> dict[str, str]:
        """Return the passwords, which are generated once and kept in the folder."""
        file = self.folder / "passwords.json"
        if not file.exists():
            names = ("SUPERUSER", "REPLICATION", "REWIND", "CTXR")
            made = {f"{name}_PASSWORD": secrets.token_hex(16) for name in names}
            file.touch(mode=0o600)
            file.write_text(json.dumps(made), encoding="utf-8")
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
        return found

    def give_to_postgres(self, folder: Path | None = None) -> None:
        """Make PostgreSQL's user the owner of a folder, by default the cluster's."""
        if self.user:
            subprocess.run(["chown", "-R", f"{self.user}:", str(folder or self.folder)], check=True)

    def _pids(self) -> dict[str, int]:
        file = self.folder / "pids.json"
        found: dict[str, int] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return {name: pid for name, pid in found.items() if is_running(pid)}

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program under a name, unless it runs already."""
        running = self._pids()
        if name in running:
            return
        with (self.folder / "logs" / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/",
                user=self.user, group=self.user, start_new_session=True,
            )  # fmt: skip
        (self.folder / "pids.json").write_text(json.dumps(running | {name: process.pid}), encoding="utf-8")
        CHILDREN[process.pid] = process

    def end(self, name: str, how: signal.Signals) -> None:
        """Send a signal to the program of that name, if it runs, and wait for its end. TimeoutError after 60 s."""
        pid = self._pids().get(name)
        if pid is None:
            return
        os.kill(pid, how)
        wait_until(lambda: not is_running(pid), f"the end of {name}", 60.0)

    def _postgres_pids(self, name: str) -> list[int]:
        file = self._node(name) / "data" / "postmaster.pid"
        if not file.exists():
            return []
        postmaster = int(file.read_text(encoding="utf-8").split("\n", 1)[0])
        return [postmaster, *(pid for pid, parent in parents() if parent == postmaster)]


def fill(template: str, into: Path, given: Mapping[str, str]) -> None:
    """Fill in a template of this folder and write the file, readable by its owner only."""
    into.write_text(Template((HERE / template).read_text(encoding="utf-8")).substitute(given), encoding="utf-8")
    into.chmod(0o600)


def _receives(pid: int) -> bool:
    """Return True if a process is a WAL receiver."""
    with suppress(OSError):
        return b"walreceiver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
