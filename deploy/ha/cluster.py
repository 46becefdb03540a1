"""Three PostgreSQL nodes under Patroni, three of etcd, and HAProxy: what runs in a folder, and how it is ended."""

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
    """The cluster of one folder; what runs stands in its `pids.json`."""

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
        """For CTXR_DATABASE_URL: wherever the leader is."""
        return f"postgresql://ctxr:{self.passwords()['CTXR_PASSWORD']}@{ADDRESS}:{self.leader_port}/ctxr"

    def up(self) -> None:
        """Start what does not run, and wait until there is a leader with a synchronous replica."""
        check_programs()
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in NODES:
            self._configure(name)
        self._configure_proxy()
        self.own()
        for name in NODES:
            self.start(f"etcd-{name}", self._etcd(name))
        wait_until(lambda: answers(f"http://{ADDRESS}:{self.etcd_ports[NODES[0]][0]}/health"), "etcd", UP_S)
        for name in NODES:
            self.start_node(name)
        self.start("haproxy", ["haproxy", "-W", "-db", "-f", str(self.folder / "haproxy.cfg")])
        wait_until(self.is_led, "a leader", UP_S)
        self.backrest(self.leader(), "stanza-create")  # nothing new where there is one
        wait_until(self.is_safe, "a leader with a synchronous replica", UP_S)
        wait_until(lambda: accepts(self.leader_port), "HAProxy", UP_S)

    def down(self) -> None:
        """End everything that this started, a restored server too."""
        self.end("restored", signal.SIGINT)
        for name in NODES:
            self.kill_node(name, signal.SIGTERM)
        for name in ("haproxy", *(f"etcd-{node}" for node in NODES)):
            self.end(name, signal.SIGTERM)

    def start_node(self, name: str) -> None:
        """Start a node, as its machine does when it comes back."""
        self.start(name, ["patroni", str(self._node(name) / "patroni.yaml")])

    def kill_node(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End a node's Patroni and PostgreSQL at once, as when its machine goes."""
        pids = [*self._postgres_pids(name)] if how == signal.SIGKILL else []
        self.end(name, how)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def hold_lines(self) -> list[int]:
        """Let the followers receive nothing from now on: those who would, for `cut_lines`."""
        leader = self.leader()
        found = [pid for name in NODES if name != leader for pid in self._postgres_pids(name) if _receives(pid)]
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        return found

    def cut_lines(self, held: Sequence[int]) -> None:
        """Lose what was on its way to them."""
        for pid in held:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)  # it ends before it reads on
                os.kill(pid, signal.SIGCONT)

    def members(self) -> list[dict[str, Any]]:
        """The nodes as Patroni knows them: name, role, state, timeline, lag; of any node that answers."""
        for port in self.rest_ports.values():
            address = f"http://{ADDRESS}:{port}/cluster"
            with suppress(OSError, ValueError), urllib.request.urlopen(address, timeout=2) as answer:
                found: list[dict[str, Any]] = json.load(answer)["members"]
                return found
        return []

    def leader(self) -> str:
        """The name of the node that leads, or ""."""
        return next((one["name"] for one in self.members() if one["role"] == "leader"), "")

    def is_safe(self) -> bool:
        """Whether one leads and another confirms what it writes, or only follows where that was chosen."""
        roles = {one["role"] for one in self.members() if one["state"] in ("running", "streaming")}
        return {"leader", "sync_standby" if self.is_synchronous() else "replica"} <= roles

    def is_synchronous(self) -> bool:
        """What `set_synchronous` has chosen, for as long as the cluster is there."""
        for port in self.rest_ports.values():
            address = f"http://{ADDRESS}:{port}/config"
            with suppress(OSError, ValueError), urllib.request.urlopen(address, timeout=2) as answer:
                return bool(json.load(answer)["synchronous_mode"])
        return True

    def is_whole(self) -> bool:
        """Whether all nodes are there and follow."""
        return self.is_safe() and len([one for one in self.members() if one["state"] in ("running", "streaming")]) == 3

    def set_synchronous(self, *, is_on: bool) -> None:
        """Choose between what is safe and what is quick: Patroni's own setting, for all nodes."""
        asked = json.dumps({"synchronous_mode": is_on, "synchronous_mode_strict": is_on}).encode()
        address = f"http://{ADDRESS}:{self.rest_ports[self.leader()]}/config"
        urllib.request.urlopen(urllib.request.Request(address, asked, method="PATCH"), timeout=10).close()

    def backrest(self, node: str, *words: str) -> str:
        """Run pgBackRest as a node would; what it says."""
        command = ["pgbackrest", f"--config={self._node(node) / 'pgbackrest.conf'}", "--stanza=ctxr", *words]
        done = subprocess.run(command, user=self.user, cwd="/", capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def is_led(self) -> bool:
        """Whether one of them leads."""
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
            # three on one disk are slow at times; on machines of their own leave these two out
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
        """Made once, kept in the folder."""
        file = self.folder / "passwords.json"
        if not file.exists():
            names = ("SUPERUSER", "REPLICATION", "REWIND", "CTXR")
            made = {f"{name}_PASSWORD": secrets.token_hex(16) for name in names}
            file.touch(mode=0o600)
            file.write_text(json.dumps(made), encoding="utf-8")
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
        return found

    def own(self, folder: Path | None = None) -> None:
        """Let PostgreSQL's user have a folder, the cluster's if none is named."""
        if self.user:
            subprocess.run(["chown", "-R", f"{self.user}:", str(folder or self.folder)], check=True)

    def _pids(self) -> dict[str, int]:
        file = self.folder / "pids.json"
        found: dict[str, int] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return {name: pid for name, pid in found.items() if is_running(pid)}

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program under a name, unless it runs."""
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
        """End the program of that name, if it runs."""
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
    """Write one of the files beside this one with its names filled in."""
    into.write_text(Template((HERE / template).read_text(encoding="utf-8")).substitute(given), encoding="utf-8")
    into.chmod(0o600)


def _receives(pid: int) -> bool:
    """Whether it takes in what a leader writes."""
    with suppress(OSError):
        return b"walreceiver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
