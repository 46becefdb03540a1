"""What the cluster's backups are for: the registry as it was at a moment, as a server of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from deploy.ha.cluster import NODES, UP_S, Cluster
from deploy.ha.processes import ADDRESS, wait_until


def restore(cluster: Cluster, into: Path, to: str, port: int) -> str:
    """The registry as it was at a time, beside the cluster that goes on: the address of a server of its own."""
    node = cluster.leader() or NODES[0]
    if cluster.is_led():
        cluster.backrest(node, "check")  # what was written last is archived now, not in a minute
    into.mkdir(parents=True)
    cluster.own(into)
    data = into / "data"
    cluster.backrest(
        node, f"--pg1-path={data}", "--type=time", f"--target={to}", "--target-action=promote", "restore",
        "--archive-mode=off",
    )  # fmt: skip
    (into / "pg_hba.conf").write_text(f"host all all {ADDRESS}/32 scram-sha-256\n", encoding="utf-8")
    (data / "postgresql.conf").write_text(  # Patroni's own names the nodes' places
        f"listen_addresses = '{ADDRESS}'\nport = {port}\nunix_socket_directories = ''\n"
        f"hba_file = '{into / 'pg_hba.conf'}'\narchive_mode = off\nmax_connections = 100\n"
        "max_wal_senders = 8\nmax_replication_slots = 8\n",
        encoding="utf-8",
    )
    cluster.own(into)
    cluster.start("restored", [str(cluster.bin / "postgres"), "-D", str(data)])
    url = f"postgresql://ctxr:{cluster.passwords()['CTXR_PASSWORD']}@{ADDRESS}:{port}/ctxr"
    wait_until(lambda: _is_writable(cluster, port), "the restored server", UP_S)
    return url


def end_restored(cluster: Cluster) -> None:
    """End the server that `restore` started."""
    cluster.end("restored", signal.SIGINT)


def _is_writable(cluster: Cluster, port: int) -> bool:
    env = {**os.environ, "PGPASSWORD": cluster.passwords()["SUPERUSER_PASSWORD"], "PGCONNECT_TIMEOUT": "2"}
    asked = [str(cluster.bin / "psql"), "-XAtq", "-h", ADDRESS, "-p", str(port), "-U", "postgres"]
    done = subprocess.run(
        [*asked, "-c", "SELECT pg_is_in_recovery()"], env=env, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() == "f"
