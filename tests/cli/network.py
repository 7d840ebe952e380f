"""Machines on a network for tests: each is a network namespace of its own with a device eth0, at a switch where a plug can be pulled. Nothing of it has a
name outside of the test, which runs in namespaces of processes, mounts and networks that end with it, however it ends."""
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import harness

INSIDE = "STAG_TEST_NETWORK"  # in the environment of who is there already: the folder for its files
NEEDED = {"arping": "iputils-arping", "ip": "iproute2", "nsenter": "util-linux", "sysctl": "procps", "tc": "iproute2", "unshare": "util-linux"}
# The network of examples, so that what documents show can be run as it stands.
PREFIX = "192.0.2."
HERE = PREFIX + "254"  # of the switch, where the test itself runs


def run(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=harness.PATIENCE)
    if done.returncode != 0:
        raise AssertionError((words, done.returncode, done.stdout))
    return done.stdout


def end_with_parent():
    death_signal = 1
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


def make_switch():
    """A bridge, where the test runs, which has an address on it, too."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "name", "switch", "type", "bridge")
    run("ip", "address", "add", f"{HERE}/24", "dev", "switch")
    run("ip", "link", "set", "switch", "up")


def isolate(main):
    """Runs `main` at the switch, in namespaces of its own, with a folder of its own in $STAG_TEST_NETWORK; skips all where that cannot be."""
    if INSIDE in os.environ:
        make_switch()
        return main()
    lacks = [f"{program} (Debian: {package})" for program, package in NEEDED.items() if shutil.which(program) is None]
    apart = ("unshare", "--net", "--mount", "--pid", "--mount-proc", "--kill-child")
    bridged = "ip link add name switch type bridge && ip link add name one type veth peer name two && echo 1 >/proc/sys/net/ipv4/ip_nonlocal_bind"
    why = None
    if os.geteuid() != 0:
        why = "networks of namespaces need root"
    elif lacks:
        why = f"not installed: {', '.join(lacks)}"
    elif (tried := subprocess.run([*apart, "sh", "-c", bridged], capture_output=True, text=True)).returncode != 0:
        why = f"no network of namespaces can be made here: {tried.stderr.strip()}"
    if why is not None:
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    # The first process of the namespace is a shell, which takes what daemons leave behind; Python would have to be told to.
    command = [*apart, "sh", "-c", '"$@" & wait $!', "sh", sys.executable, *sys.argv]
    with tempfile.TemporaryDirectory(prefix="stag-network-", ignore_cleanup_errors=True) as folder:
        child = subprocess.Popen(command, env={**os.environ, INSIDE: folder}, preexec_fn=end_with_parent)
        try:
            code = child.wait()
        finally:
            child.kill()
            child.wait()
    sys.exit(code)


class Machine:
    """Its address ends with `number`. What is run by `enter` is run on it."""

    def __init__(self, name, number):
        self.port, self.address = f"port-{name}", f"{PREFIX}{number}"
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.enter = ("nsenter", f"--net=/proc/{self.holder.pid}/ns/net")
        # A machine that comes again has the network card that it had.
        card = ("eth0", "address", f"02:00:c0:00:02:{number:02x}")
        run("ip", "link", "add", "name", self.port, "type", "veth", "peer", "name", *card, "netns", str(self.holder.pid))
        run("ip", "link", "set", self.port, "master", "switch")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.plug("up")

    def run(self, *words):
        return run(*self.enter, *words)

    def plug(self, how):
        """"down": nothing comes from it nor to it any more, and nobody hears of that."""
        run("ip", "link", "set", self.port, how)

    def slow_down(self, rate):
        """What it sends, and what it is sent."""
        shape = ("root", "tbf", "rate", rate, "burst", "64k", "limit", "1m")
        self.run("tc", "qdisc", "add", "dev", "eth0", *shape)
        run("tc", "qdisc", "add", "dev", self.port, *shape)

    def speed_up(self):
        self.run("tc", "qdisc", "del", "dev", "eth0", "root")
        run("tc", "qdisc", "del", "dev", self.port, "root")

    def traffic(self):
        """Bytes that it has sent, and that it was sent."""
        (device,) = json.loads(run("ip", "-json", "-statistics", "link", "show", self.port))
        return device["stats64"]["rx"]["bytes"], device["stats64"]["tx"]["bytes"]

    def stag(self, *arguments):
        return subprocess.run([*self.enter, harness.STAG, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=harness.PATIENCE)

    def end(self):
        """It is gone, with all that it remembered."""
        if self.holder.poll() is None:
            run("ip", "link", "delete", self.port)
            self.holder.communicate()
