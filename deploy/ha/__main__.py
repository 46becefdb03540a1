"""Run a local test cluster: three PostgreSQL nodes under Patroni, three etcd nodes, and HAProxy, on loopback.

On Debian: apt-get install postgresql patroni etcd-server haproxy pgbackrest. All files are in one folder.
deploy/README.md lists the differences to real machines.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from deploy.ha.backups import restore
from deploy.ha.cluster import NODES, Cluster
from deploy.ha.processes import MissingPrograms


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deploy.ha", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/ctxr-ha"))
    parser.add_argument("--base-port", type=int, default=21500)
    asked = parser.add_subparsers(dest="asked", required=True)
    asked.add_parser("up", help="start the cluster, and print the database's URL")
    asked.add_parser("down", help="stop the cluster; data is kept")
    asked.add_parser("status", help="print the role and state of each node")
    kill = asked.add_parser("kill", help="kill -9 a node, by default the leader")
    kill.add_argument("node", nargs="?", choices=NODES)
    start = asked.add_parser("start", help="start a node again")
    start.add_argument("node", choices=NODES)
    asked.add_parser("backup", help="make a full backup in the folder's `backups`")
    restore = asked.add_parser("restore", help="restore the registry to a point in time, on a separate server")
    restore.add_argument("--to", required=True, help="point in time, such as '2026-05-01 14:30:00+00'")
    restore.add_argument("--into", type=Path, required=True, help="a new folder")
    restore.add_argument("--port", type=int, default=21599)
    options = parser.parse_args()
    try:
        cluster = Cluster(options.folder, options.base_port)
        print(run(cluster, options))
    except (MissingPrograms, TimeoutError, RuntimeError) as exc:
        sys.exit(str(exc))


def run(cluster: Cluster, options: argparse.Namespace) -> str:
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
