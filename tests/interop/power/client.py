"""client.py work|check HOST STAG JOURNAL: a client of a `stag serve` whose machine loses its power.

work   writes, creates, renames, removes, opens and locks until it is told to end (SIGTERM), and keeps in JOURNAL what was acknowledged
       as stable. Says "under way" when each of its workers has had some acknowledged.
check  compares what the server has now, after it was started again, with JOURNAL, claims opens and locks again, and sends again what
       was not committed. A line for each thing that is lost; exits 1 if there is any.
"""
import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cli"))
import nfs4_client  # noqa: E402
from nfs4_client import OK, opaque, words  # noqa: E402

EXPORTS = ["data", "more"]
OWNER = b"a client that comes back"
READ_LINK, READ, WRITE, CREATE, MKDIR, SYMLINK, REMOVE, RMDIR, RENAME, LINK, LOOKUP, COMMIT = 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 3, 21
UNSTABLE, FILE_SYNC = 0, 2
NO_ENTRY = 2
GRACE, DENIED = 10013, 10010
ATTRIBUTES = words(1, 0o644, 0, 0, 0, 0, 0)
ENOUGH = 4  # of each worker's, until the power may be cut
MOST_OPENS = 6  # of each start of the server


class Results:
    """What is left of the results of a procedure of version 3."""

    def __init__(self, data):
        self.data, self.at = data, 0
        self.status = self.number()

    def number(self):
        self.at += 4
        return struct.unpack_from(">I", self.data, self.at - 4)[0]

    def fixed(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def opaque(self):
        size = self.number()
        data = self.fixed(size)
        self.at += -size % 4
        return data

    def attributes(self):
        if self.number():
            self.fixed(84)

    def changes(self):  # wcc_data
        if self.number():
            self.fixed(24)
        self.attributes()


class Refused(Exception):
    pass


class Version3:
    def __init__(self, host, export):
        self.client = nfs4_client.Client(2049, b"", host)
        mounted = Results(self.client.call(100005, 3, 1, opaque(b"/" + export.encode())))
        if mounted.status != OK:
            raise Refused(f"MNT {export}: {mounted.status}")
        self.root = mounted.opaque()

    def call(self, procedure, arguments, also=()):
        results = Results(self.client.call(100003, 3, procedure, arguments))
        if results.status != OK and results.status not in also:
            raise Refused(f"procedure {procedure}: {results.status}")
        return results

    def name(self, name):
        return opaque(self.root) + opaque(name.encode())

    def lookup(self, name):
        """The file handle; None: there is no such name."""
        found = self.call(LOOKUP, self.name(name), also=[NO_ENTRY])
        return found.opaque() if found.status == OK else None

    def create(self, name):
        made = self.call(CREATE, self.name(name) + words(1) + ATTRIBUTES)
        assert made.number() == 1
        return made.opaque()

    def write(self, handle, offset, data, stable):
        """The write verifier."""
        arguments = opaque(handle) + struct.pack(">QII", offset, len(data), stable) + opaque(data)
        written = self.call(WRITE, arguments)
        written.changes()
        count, committed = written.number(), written.number()
        if count != len(data) or committed < stable:
            raise Refused(f"WRITE: {count} bytes, committed {committed}")
        return written.fixed(8)

    def commit(self, handle):
        committed = self.call(COMMIT, opaque(handle) + struct.pack(">QI", 0, 0))
        committed.changes()
        return committed.fixed(8)

    def content(self, handle):
        data, ended = b"", False
        while not ended:
            part = self.call(READ, opaque(handle) + struct.pack(">QI", len(data), 65536))
            part.attributes()
            part.number()
            ended = part.number()
            data += part.opaque()
        return data

    def target(self, handle):
        link = self.call(READ_LINK, opaque(handle))
        link.attributes()
        return link.opaque().decode()


class Journal:
    def __init__(self, path):
        self.path = path
        self.names = {}  # (export, name): ("file", content), ("link", target), ("folder",), or None where it was removed
        self.beginnings = {}  # (export, name): what was acknowledged of a file that was being written
        self.doubtful = set()  # names of operations without an answer
        self.uncommitted = {}  # (export, name): (content, write verifier)
        self.verifiers = set()
        self.opened = {}  # name: file handle
        self.starts = 0
        self.acknowledged = 0

    @staticmethod
    def load(path):
        if not os.path.exists(path):
            return Journal(path)
        with open(path, "rb") as file:
            return pickle.load(file)

    def save(self):
        with open(self.path, "wb") as file:
            pickle.dump(self, file)


class Doing:
    """An operation on names: they are in doubt until it is answered, and then as `changes` says."""

    def __init__(self, work, export, changes):
        self.work, self.changes = work, {(export, name): what for name, what in changes.items()}

    def __enter__(self):
        with self.work.lock:
            self.work.journal.doubtful.update(self.changes)

    def __exit__(self, kind, error, trace):
        if kind is None:
            with self.work.lock:
                self.work.journal.names.update(self.changes)
                self.work.journal.doubtful.difference_update(self.changes)
            self.work.acknowledged()


class Work:
    def __init__(self, host, stag, journal):
        self.host, self.stag, self.journal = host, stag, journal
        self.lock = threading.RLock()
        self.counts, self.faults, self.said = {}, [], False
        self.ending = threading.Event()
        self.copies = {}  # export: process
        journal.starts += 1

    def acknowledged(self):
        with self.lock:
            self.journal.acknowledged += 1
            name = threading.current_thread().name
            self.counts[name] += 1
            if all(count >= ENOUGH for count in self.counts.values()) and not self.said:
                self.said = True
                print("under way", flush=True)

    def data(self, size):
        return random.randbytes(random.randrange(1, size))

    def stable_writes(self, export, prefix):
        """Files that are written piece by piece with FILE_SYNC."""
        server, number = Version3(self.host, export), 0
        while True:
            number += 1
            name, content = f"{prefix}.{number}", b""
            with Doing(self, export, {name: ("file", b"")}):
                handle = server.create(name)
            with self.lock:
                self.journal.beginnings[export, name] = b""
                self.journal.doubtful.add((export, name))
            for _ in range(random.randrange(1, 6)):
                piece = self.data(20000)
                server.write(handle, len(content), piece, FILE_SYNC)
                content += piece
                with self.lock:
                    self.journal.beginnings[export, name] = content
                self.acknowledged()
            with self.lock:
                self.journal.names[export, name] = ("file", content)
                self.journal.doubtful.discard((export, name))
                del self.journal.beginnings[export, name]

    def committed_writes(self, export, prefix):
        """Files that are written and then committed; each fourth is not."""
        server, number = Version3(self.host, export), 0
        while True:
            number += 1
            name, content = f"{prefix}.{number}", self.data(200000)
            with Doing(self, export, {name: ("file", b"")}):
                handle = server.create(name)
            with self.lock:
                self.journal.doubtful.add((export, name))
            verifiers = set()
            for offset in range(0, len(content), 30000):
                verifiers.add(server.write(handle, offset, content[offset:offset + 30000], UNSTABLE))
            with self.lock:
                self.journal.verifiers |= verifiers
                if number % 4 == 0:
                    self.journal.uncommitted[export, name] = (content, verifiers)
                    continue
            verifiers.add(server.commit(handle))
            if len(verifiers) > 1:
                raise Refused("the write verifier changed while the server ran")
            with self.lock:
                self.journal.names[export, name] = ("file", content)
                self.journal.doubtful.discard((export, name))
            self.acknowledged()

    def names(self, export, prefix):
        """Names that come, go and change."""
        server, number = Version3(self.host, export), 0

        def doing(**changes):
            return Doing(self, export, {f"{prefix}.{number}.{name}": what for name, what in changes.items()})

        def at(name):
            return server.name(f"{prefix}.{number}.{name}")

        while True:
            number += 1
            content = self.data(3000)
            with doing(file=("file", content)):
                server.write(server.create(f"{prefix}.{number}.file"), 0, content, FILE_SYNC)
            with doing(other=("file", content)):
                server.call(LINK, opaque(server.lookup(f"{prefix}.{number}.file")) + at("other"))
            with doing(other=None, moved=("file", content)):
                server.call(RENAME, at("other") + at("moved"))
            with doing(link=("link", "far/away")):
                server.call(SYMLINK, at("link") + ATTRIBUTES + opaque(b"far/away"))
            with doing(folder=("folder",)):
                server.call(MKDIR, at("folder") + ATTRIBUTES)
            if number % 2:
                with doing(file=None):
                    server.call(REMOVE, at("file"))
                with doing(folder=None):
                    server.call(RMDIR, at("folder"))

    def opens(self, export, prefix):
        """Opens and locks by version 4.1, beside those that `check` has claimed again."""
        client = nfs4_client.Client(2049, OWNER, self.host).connect()
        client.reclaim_complete()
        for number in range(MOST_OPENS):
            name = f"{prefix}.{number}"
            with self.lock:
                self.journal.doubtful.add((export, name))
            status, stateid, handle = client.create_file(name.encode())
            locked = client.lock(handle, stateid, reclaim=0) if status == OK else status
            if locked != OK:
                raise Refused(f"OPEN and LOCK: {status}, {locked}")
            with self.lock:
                self.journal.names[export, name] = ("file", b"")
                self.journal.doubtful.discard((export, name))
                self.journal.opened[name] = handle
            self.acknowledged()
        while not self.ending.wait(5):  # a lease is renewed
            client.in_session()

    def copied(self, export, prefix):
        """Files that `stag cp` has copied over RDMA."""
        with tempfile.TemporaryDirectory(dir=os.path.dirname(self.journal.path)) as folder:
            number = 0
            while not self.ending.is_set():
                number += 1
                name, content = f"{prefix}.{number}", self.data(300000)
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(content)
                url = f"nfs://{self.host}:20049/{export}/{name}?mountport=2049&version=3"  # leaves no client that the grace period waits for
                with self.lock:
                    self.journal.doubtful.add((export, name))
                    copy = self.copies[export] = subprocess.Popen([self.stag, "cp", file.name, url], stderr=subprocess.DEVNULL)
                if copy.wait() == 0:
                    with self.lock:
                        self.journal.names[export, name] = ("file", content)
                        self.journal.doubtful.discard((export, name))
                    self.acknowledged()

    def run(self):
        threads = []
        for export in EXPORTS:
            for worker in [self.stable_writes, self.committed_writes, self.names, self.copied] + [self.opens] * (export == "data"):
                name = f"{worker.__name__}.{self.journal.starts}"
                self.counts[name + export] = 0
                threads.append(threading.Thread(target=self.guarded, args=(worker, export, name), name=name + export, daemon=True))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        for thread in threads:
            thread.start()
        signal.sigwait([signal.SIGTERM])
        self.ending.set()
        with self.lock:
            for copy in self.copies.values():
                copy.kill()
            self.journal.save()
            for fault in self.faults:
                print(fault)
            print(f"acknowledged {self.journal.acknowledged}, in doubt {len(self.journal.doubtful)}", flush=True)
            os._exit(1 if self.faults else 0)

    def guarded(self, worker, export, name):
        try:
            worker(export, name)
        except Exception as error:  # the thread's end is the fault
            if not self.ending.is_set():
                self.faults.append(f"{name} in {export}: {type(error).__name__} {error}")
                print(self.faults[-1], flush=True)


def claim_again(client, journal):
    """Opens and locks of an earlier start of the server, which it must still know; what it does not is told."""
    lost = []
    for name, handle in journal.opened.items():
        status, stateid = client.reclaim(handle)
        locked = client.lock(handle, stateid, reclaim=1) if status == OK else status
        if locked != OK:
            lost.append(f"open of {name}: OPEN {status}, LOCK {locked}")
    done = client.reclaim_complete()
    if done != OK:
        lost.append(f"RECLAIM_COMPLETE: {done}")
    return lost


class Check:
    def __init__(self, host, journal):
        self.host, self.journal = host, journal
        self.lost = []

    def run(self):
        self.open_again()
        servers = {export: Version3(self.host, export) for export in EXPORTS}
        for (export, name), what in self.journal.names.items():
            if (export, name) not in self.journal.doubtful:
                self.compare(servers[export], f"{export}/{name}", name, what)
        for (export, name), beginning in self.journal.beginnings.items():
            handle = servers[export].lookup(name)
            if handle is None or not servers[export].content(handle).startswith(beginning):
                self.lost.append(f"{export}/{name}: the first {len(beginning)} bytes, written with FILE_SYNC")
        for (export, name), (content, _) in self.journal.uncommitted.items():
            self.send_again(servers[export], f"{export}/{name}", name, content)
        self.forget()

    def compare(self, server, place, name, what):
        handle = server.lookup(name)
        if what is None or handle is None:
            if what is not None or handle is not None:
                self.lost.append(f"{place}: {'it is gone' if handle is None else 'it is there again'}")
        elif what[0] == "file" and server.content(handle) != what[1]:
            self.lost.append(f"{place}: its {len(what[1])} bytes are others now")
        elif what[0] == "link" and server.target(handle) != what[1]:
            self.lost.append(f"{place}: it leads elsewhere")

    def send_again(self, server, place, name, content):
        handle = server.lookup(name)  # its CREATE was answered
        if handle is None:
            self.lost.append(f"{place}: it is gone")
            return
        verifier = server.write(handle, 0, content, UNSTABLE)
        if verifier in self.journal.verifiers:
            self.lost.append(f"{place}: the write verifier is that of before, so nobody would write it again")
        server.commit(handle)
        if server.content(handle) != content:
            self.lost.append(f"{place}: what was sent again is not there")

    def open_again(self):
        if not self.journal.opened:
            return
        other = nfs4_client.Client(2049, b"a client that is new", self.host).connect()
        other.reclaim_complete()
        status = other.create_file(b"too early")[0]
        if status != GRACE:
            self.lost.append(f"the time of grace: who has nothing to claim again may open at once ({status})")
        client = nfs4_client.Client(2049, OWNER, self.host).connect()
        self.lost += claim_again(client, self.journal)

    def forget(self):
        """What was in doubt says nothing about the next cut either."""
        for place in self.journal.doubtful:
            self.journal.names.pop(place, None)
        self.journal.doubtful.clear()
        self.journal.beginnings.clear()
        self.journal.uncommitted.clear()


def main(what, host, stag, path):
    journal = Journal.load(path)
    if what == "work":
        Work(host, stag, journal).run()
    checked = len(journal.names)
    check = Check(host, journal)
    check.run()
    journal.save()
    for line in check.lost[:20]:
        print(line)
    print(f"compared {checked} names, lost {len(check.lost)}")
    sys.exit(1 if check.lost else 0)


main(*sys.argv[1:])
