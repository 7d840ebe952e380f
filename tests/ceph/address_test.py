"""Two gateways of one CephFS, each on a machine of its own, of which one loses its power with all that it had: its address is moved to the other, and so are its
clients, by the records that it kept in the cluster (docs/scale.md). The cluster is started here, where all machines reach it."""
import os
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../cli"))
import admin  # noqa: E402
import harness  # noqa: E402
import moved_address  # noqa: E402
import network  # noqa: E402

CLUSTER = os.path.join(here, "cluster")


class Address(moved_address.Pair):
    conf = None

    def export(self, name):
        return f"/data=ceph:/?conf={self.conf}&gateway={name},no_root_squash"

    def arguments(self, name):
        return ("--records", f"ceph:metadata/{name}?conf={self.conf}") if admin.has_sqlite_module() else ()

    def fence(self, name):
        return admin.fence(self.conf, name)

    def place(self, gateway):
        if not admin.has_sqlite_module():
            return gateway.state
        shutil.rmtree(gateway.state)
        return f"ceph:metadata/{gateway.name}"

    def test_clients_of_a_machine_that_is_lost_go_on_where_its_address_goes(self):
        self.try_a_loss()


def main():
    folder = os.path.join(os.environ[network.INSIDE], "cluster")
    started = subprocess.run([CLUSTER, "start", folder, network.HERE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if started.returncode == harness.SKIPPED:
        print(f"skipped: {started.stdout.strip()}", file=sys.stderr)
    if started.returncode != 0:
        sys.exit(started.returncode)
    Address.conf = os.path.join(folder, "ceph.conf")
    # For clients alone: how long the records of the dead stay locked is not what is tried here.
    with open(Address.conf, "a") as file:
        file.write("cephsqlite lock renewal timeout = 5000\n")
    harness.main()


if __name__ == "__main__":
    network.isolate(main)
