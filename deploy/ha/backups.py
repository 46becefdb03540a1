"""Point-in-time recovery from the cluster's backups, into a separate server."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from deploy.ha.cluster import NODES, UP_S, Cluster
from deploy.ha.processes import ADDRESS, wait_until


def restore(cluster: Cluster, into: Path, to: str, port: int) -> str:
    """Restore the registry to the time `to` on a separate server, while the cluster runs. Return the server's URL."""
    node = cluster.leader() or NODES[0]
    if cluster.is_led():
        cluster.backrest(node, "check")  # archives the latest WAL now instead of within a minute
    into.mkdir(parents=True)
    cluster.give_to_postgres(into)
    data = into / "data"
    cluster.backrest(
        node, f"--pg1-path={data}", "--type=time", f"--target={to}", "--target-action=promote", "restore",
        "--archive-mode=off",
    )  # fmt: skip
    (into / "pg_hba.conf").write_text(f"host all all {ADDRESS}/32 scram-sha-256\n", encoding="utf-8")
    (data / "postgresql.conf").write_text(  # replaces Patroni's, which has the node's paths
        f"listen_addresses = '{ADDRESS}'\nport = {port}\nunix_socket_directories = ''\n"
        f"hba_file = '{into / 'pg_hba.conf'}'\narchive_mode = off\nmax_connections = 100\n"
        "max_wal_senders = 8\nmax_replication_slots = 8\n",
        encoding="utf-8",
    )
    cluster.give_to_postgres(into)
    cluster.start("restored", [str(cluster.bin / "postgres"), "-D", str(data)])
    url = f"postgresql://ctxr:{cluster.passwords()['CTXR_PASSWORD']}@{ADDRESS}:{port}/ctxr"
    wait_until(lambda: _is_writable(cluster, port), "the restored server", UP_S)
    return url


def stop_restored(cluster: Cluster) -> None:
    """Stop the server that `restore` started."""
    cluster.end("restored", signal.SIGINT)


def _is_writable(cluster: Cluster, port: int) -> bool:
    env = {**os.environ, "PGPASSWORD": cluster.passwords()["SUPERUSER_PASSWORD"], "PGCONNECT_TIMEOUT": "2"}
    asked = [str(cluster.bin / "psql"), "-XAtq", "-h", ADDRESS, "-p", str(port), "-U", "postgres"]
    done = subprocess.run(
        [*asked, "-c", "SELECT pg_is_in_recovery()"], env=env, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() == "f"
