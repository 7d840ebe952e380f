"""What the tests of the `stag` command share: the program, a server of it, and a proxy that can hold traffic back.

Each *_test.py is run as `python3 x_test.py STAG`; exit code 77 says that it was skipped.
"""
import contextlib
import ctypes
import functools
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

STAG = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None
# A program that is built with sanitizers writes nothing of these to standard error, where tests count lines.
os.environ.setdefault("LSAN_OPTIONS", f"print_suppressions=0:suppressions={os.path.join(os.path.dirname(os.path.abspath(__file__)), 'leaks_of_libraries.txt')}")
# Whoever began the tests may have had it ignored (nohup), and programs leave it at that.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
SKIPPED = 77
PATIENCE = 120  # seconds until something that should come is given up


def stag(*arguments, **options):
    """Runs the program to its end; the result has returncode, stdout and stderr."""
    options.setdefault("text", True)
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("timeout", PATIENCE)
    return subprocess.run([STAG, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@functools.cache
def is_sanitized():
    """Whether the program was built with a sanitizer, whose runtime opens files when it pleases."""
    with open(STAG, "rb") as program:
        contents = program.read()
    return b"__asan_init" in contents or b"__tsan_init" in contents


def release_only(test):
    """A test, or all of a class, whose code others run with sanitizers: there a command takes half a second to begin."""
    return unittest.skipIf(is_sanitized(), "others run the same code with sanitizers")(test)


def enter_mount_namespace():
    """This process gets mounts of its own; false where a container may not have that."""
    new_namespace, private, recursive = 0x20000, 1 << 18, 1 << 14
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(new_namespace) == 0 and libc.mount(None, b"/", None, private | recursive, None) == 0


@functools.cache
def may_mount():
    child = os.fork()
    if child == 0:
        os._exit(0 if enter_mount_namespace() else 1)
    return os.waitpid(child, 0)[1] == 0


def open_terminal(case):
    """Both ends of a new terminal; skips the test where there is no /dev/pts."""
    try:
        return pty.openpty()
    except OSError as error:
        case.skipTest(f"no terminal can be had here: {error}")


def sees_descriptors(process):
    """Whether this process may look at the descriptors of a server that switches users (CAP_SYS_PTRACE)."""
    try:
        os.readlink(f"/proc/{process.pid}/fd/0")
    except PermissionError:
        return False
    return True


def ignore_terminal():
    """In a new process, before its program begins: SIGHUP as nohup has it, SIGINT as a script has it for what it runs in the background."""
    for each in (signal.SIGHUP, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)


def is_ignored(process, number):
    with open(f"/proc/{process.pid}/status") as file:
        (ignored,) = re.findall(r"(?m)^SigIgn:\s+(\w+)$", file.read())
    return int(ignored, 16) >> number - 1 & 1 == 1


def stand_still(case, process):
    """Stops a child of this process until SIGCONT, or the end of the case. Returns when all its threads have: until then they answer."""
    process.send_signal(signal.SIGSTOP)
    case.addCleanup(process.send_signal, signal.SIGCONT)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


class SilentPipe:
    """In place of a file: whoever reads it waits for what comes next, as for a file system that does not answer."""

    def __init__(self, case):
        self.reading, self.writing = (open(end, mode, buffering=0) for end, mode in zip(os.pipe(), ("rb", "wb")))
        for each in (self.reading, self.writing):
            case.addCleanup(each.close)
        # Of the process that is to read it.
        self.passed = {"pass_fds": [self.reading.fileno()]}

    def replace(self, path):
        os.unlink(path)
        self.writing.write(b"\n")
        os.symlink(f"/proc/self/fd/{self.reading.fileno()}", path)

    def is_read(self):
        return not select.select([self.reading], [], [], 0)[0]

    def end(self, text):
        self.writing.write(text)
        self.writing.close()


class Server:
    """`stag serve` on free ports of 127.0.0.1, ended by SIGTERM."""

    def __init__(self, exports, state, arguments=(), ports=("--rdma-port", "0", "--tcp-port", "0"), before=(), **options):
        command = [*before, STAG, "serve", *ports] + (["--state", state] if state else [])
        for export in exports:
            command += ["--export", export]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True, **options
        )
        self.lines = []
        self.urls = {}
        while "TCP" not in self.urls:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the server ended: {self.log()}, {self.end()}")
            self.lines.append(line.rstrip("\n"))
            ready = re.match(r"ready: (\S+) +(\S+)$", line)
            if ready:
                self.urls[ready[1]] = ready[2]
        self.rdma_port, self.tcp_port = (int(re.search(r":(\d+)/", self.urls[kind])[1]) for kind in ("RPC-over-RDMA", "TCP"))

    def url(self, path, port=None, mount_port=None):
        return f"nfs://127.0.0.1:{port or self.rdma_port}{path}?mountport={mount_port or self.tcp_port}"

    def tcp(self, path):
        return f"nfs://127.0.0.1:{self.tcp_port}{path}?proto=tcp"

    def log(self):
        # The server writes at the position of the same open file: it must not be moved.
        return os.pread(self.errors.fileno(), os.fstat(self.errors.fileno()).st_size, 0).decode(errors="replace")

    def end(self):
        """Its exit code. The log can be read before only."""
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        if code != 0:
            print(self.log(), file=sys.stderr)
        self.errors.close()
        return code


def request_rdma(port, flags=0x10, source="127.0.0.1"):
    """A connection on which an MPA Request with these flags has been sent, and its Reply, which has 12 bytes of private data."""
    peer = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
    peer.settimeout(PATIENCE)
    peer.sendall(b"MPA ID Req Frame" + bytes([flags, 2, 0, 12]) + bytes.fromhex("00200020 f6ab0e18 01010303"))
    reply = b""
    while len(reply) < 32 and (part := peer.recv(32 - len(reply))):
        reply += part
    return peer, reply


class Proxy:
    """Forwards TCP connections to `port`, and once `limit` bytes went one way ("up" to the server, "down" to the client) holds
    everything back until released; `reached` is set then."""

    def __init__(self, port, direction, limit):
        self.target, self.direction, self.left = port, direction, limit
        self.reached, self.released = threading.Event(), threading.Event()
        self.sockets = []
        self.ending = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = []
        self._start(self._accept)

    def _start(self, target, *arguments):
        self.threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self.threads[-1].start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            self.sockets.append(client)
            if self.ending:
                self.listener.close()
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.shutdown(socket.SHUT_RDWR)
                continue
            self.sockets.append(server)
            self._start(self._forward, client, server, "up")
            self._start(self._forward, server, client, "down")

    def _forward(self, source, target, direction):
        try:
            while data := source.recv(65536):
                if direction == self.direction:
                    self.left -= len(data)
                if self.left <= 0:
                    self.reached.set()
                    self.released.wait(PATIENCE)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            # One side has reset its connection: the other must not wait for it.
            for each in (source, target):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def interrupt(self):
        """The connections end; those that are made from now on go through."""
        self.left = 1 << 40
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.released.set()

    def cut(self):
        """Everything ends, and nobody listens any more."""
        # Neither close() nor shutdown() would wake the thread that accepts.
        self.ending = True
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.released.set()
        for thread in self.threads:
            thread.join(PATIENCE)
        for each in self.sockets:
            each.close()


class Case(unittest.TestCase):
    """A temporary folder, and a server of a folder (/files) and of memory (/memory) for the whole class."""

    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="stag-cli-")
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        cls.served = os.path.join(cls.work, "served")
        os.mkdir(cls.served)
        cls.server = Server([f"/files={cls.served},no_root_squash", "/memory=memory,no_root_squash"], os.path.join(cls.work, "state"))

    @classmethod
    def tearDownClass(cls):
        code = cls.server.end()
        if code != 0:
            raise AssertionError(f"the server ended with {code}")

    def setUp(self):
        self.local = tempfile.mkdtemp(dir=self.work)
        self.name = os.path.basename(self.local)
        os.mkdir(os.path.join(self.served, self.name))

    def at(self, *parts):
        """A path in this test's local folder."""
        return os.path.join(self.local, *parts)

    def there(self, *parts):
        """A path in this test's served folder, as the server's machine sees it."""
        return os.path.join(self.served, self.name, *parts)

    def url(self, *parts, **options):
        """The URL of the same."""
        return self.server.url("/".join(["/files", self.name, *parts]), **options)

    def good(self, *arguments, **options):
        result = stag(*arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def bad(self, code, sentence, *arguments, **options):
        """Fails with that exit code and one line on standard error that holds `sentence`."""
        result = stag(*arguments, **options)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        self.assertIn(sentence, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith(f"stag {arguments[0]}: "), result.stderr)
        return result

    def write(self, path, content=b""):
        with open(path, "wb") as file:
            file.write(content)
        return path

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()


def main():
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
