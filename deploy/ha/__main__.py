"""Three PostgreSQL nodes under Patroni, three of etcd, and HAProxy, on this machine's loopback: a place to rehearse.

Debian has all of it: apt-get install postgresql patroni etcd-server haproxy pgbackrest. README.md of `deploy` says what
is different on real machines. Everything is in one folder, nothing else is touched.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from deploy.ha.backups import restore
from deploy.ha.cluster import NODES, Cluster
from deploy.ha.processes import Missing


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(prog="python -m deploy.ha", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/ctxr-ha"))
    parser.add_argument("--base-port", type=int, default=21500)
    asked = parser.add_subparsers(dest="asked", required=True)
    asked.add_parser("up", help="start it, and print the database's address")
    asked.add_parser("down", help="end it; what is stored stays")
    asked.add_parser("status", help="who leads, who follows")
    kill = asked.add_parser("kill", help="kill -9 a node; the leader if none is named")
    kill.add_argument("node", nargs="?", choices=NODES)
    start = asked.add_parser("start", help="start a node again")
    start.add_argument("node", choices=NODES)
    asked.add_parser("backup", help="a full backup into the folder's `backups`")
    restore = asked.add_parser("restore", help="the registry as it was at a time, as a server of its own")
    restore.add_argument("--to", required=True, help="such as '2026-05-01 14:30:00+00'")
    restore.add_argument("--into", type=Path, required=True, help="a new folder")
    restore.add_argument("--port", type=int, default=21599)
    options = parser.parse_args()
    try:
        cluster = Cluster(options.folder, options.base_port)
        print(_carried_out(cluster, options))
    except (Missing, TimeoutError, RuntimeError) as exc:
        sys.exit(str(exc))


def _carried_out(cluster: Cluster, options: argparse.Namespace) -> str:
    if options.asked == "up":
        cluster.up()
        return f"CTXR_DATABASE_URL={cluster.url}"
    if options.asked == "kill":
        cluster.kill_node(options.node or cluster.leader())
    if options.asked == "start":
        cluster.start_node(options.node)
    if options.asked == "down":
        cluster.down()
    if options.asked == "backup":
        return cluster.backrest(cluster.leader(), "--type=full", "backup")
    if options.asked == "restore":
        return f"CTXR_DATABASE_URL={restore(cluster, options.into, options.to, options.port)}"
    return "\n".join(json.dumps(one) for one in cluster.members()) or "nothing runs"


if __name__ == "__main__":
    main()
