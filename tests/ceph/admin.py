"""What tests ask of the cluster, as its administrator does (docs/scale.md)."""
import ctypes
import json
import subprocess

from harness import PATIENCE


def has_sqlite_module():
    try:
        ctypes.CDLL("libcephsqlite.so")
    except OSError:
        return False
    return True


def ceph(conf, *arguments):
    done = subprocess.run(["ceph", "-c", conf, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise AssertionError((arguments, done.stderr))
    return done.stdout


def sessions(conf):
    return json.loads(ceph(conf, "tell", "mds.a", "client", "ls"))


def fence(conf, name):
    """Of the gateway of that name; it is done when the result is called."""
    dead = [each["id"] for each in sessions(conf) if each["client_metadata"].get("uuid") == f"{name}:/data"]
    assert len(dead) == 1, dead
    # A process of its own from the start: one that begins while a file of a dead gateway is open here waits with it.
    command = f"read go && exec ceph -c {conf} tell mds.a client evict id={dead[0]}"
    process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)

    def go():
        process.communicate("go\n", PATIENCE)
        assert process.returncode == 0

    return go
