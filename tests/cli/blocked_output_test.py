"""Commands whose output nobody takes: a pipe that is full, a terminal that is stopped. The first signal ends them, after they have cleaned up."""
import fcntl
import os
import signal
import subprocess
import termios

import harness
from harness import Case, Proxy

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}
NAMES = 3000
PIPE = 4096  # bytes, the least


class FullPipe(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.many = os.path.join(cls.served, "many")
        os.mkdir(cls.many)
        for number in range(NAMES):
            with open(os.path.join(cls.many, f"a-name-that-takes-some-room-{number}"), "wb"):
                pass

    def start(self, *command):
        """The command, which has filled the pipe that its output goes to."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE)
        process = subprocess.Popen([harness.STAG, *command], stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        os.close(writer)
        while self.waiting(reader) < PIPE:
            self.assertIsNone(process.poll(), command)
        return process, reader

    @staticmethod
    def waiting(reader):
        return int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), "little")

    def ended(self, process, code, command):
        errors = process.communicate(timeout=harness.PATIENCE)[1]
        self.assertEqual((process.returncode, errors.count("\n") <= 1), (code, True), (command, errors))

    def test_ends_commands_that_print(self):
        url = self.server.url("/files/many")
        for command in (["ls"], ["find"], ["tree"], ["du", "-a"], ["ls", "--json"]):
            for number, code in SIGNALS.items():
                process, _ = self.start(*command, url)
                process.send_signal(number)
                self.ended(process, code, command)

    def test_ends_commands_that_write_files(self):
        self.write(self.there("big"), os.urandom(1 << 20))
        for command in (["cat", self.url("big")], ["cp", self.url("big"), "-"]):
            for number, code in SIGNALS.items():
                process, _ = self.start(*command)
                process.send_signal(number)
                self.ended(process, code, command)

    def test_ends_copies_that_say_what_they_do(self):
        process, _ = self.start("cp", "-r", "-v", self.server.url("/files/many"), self.at("copy"))
        process.send_signal(signal.SIGTERM)
        self.ended(process, 143, "cp -v")
        self.assertEqual([name for name in os.listdir(self.at("copy")) if name.startswith(".stag-")], [])

    def test_that_is_read_after_a_while_gets_everything(self):
        self.write(self.there("big"), os.urandom(1 << 20))
        for command, complete in (
            (["find", self.server.url("/files/many")], lambda text: text.count(b"\n") == NAMES + 1),
            (["cat", self.url("big")], lambda text: text == self.read(self.there("big"))),
        ):
            process, reader = self.start(*command)
            with open(os.dup(reader), "rb") as pipe:
                self.assertTrue(complete(pipe.read()), command)
            self.ended(process, 0, command)


class StoppedTerminal(Case):
    SIZE = 2 << 30  # of a hole: the progress is drawn several times

    def terminal(self):
        """The end for the command of a terminal that shows nothing, as after Ctrl-S."""
        master, slave = harness.open_terminal(self)
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        termios.tcflow(slave, termios.TCOOFF)
        return slave

    def copy(self, source, *target):
        copy = subprocess.Popen([harness.STAG, "cp", source, *target], stdin=subprocess.DEVNULL, stderr=self.terminal())
        self.addCleanup(copy.kill)
        return copy

    def setUp(self):
        super().setUp()
        with open(self.there("big"), "wb") as file:
            file.truncate(self.SIZE)

    def test_holds_up_no_copy(self):
        copy = self.copy(self.url("big") + "&version=3", self.at("big"))
        # Nothing was drawn, so that nothing has to go.
        self.assertEqual(copy.wait(harness.PATIENCE), 0)
        self.assertEqual(os.stat(self.at("big")).st_size, self.SIZE)

    def test_holds_up_no_interruption(self):
        for number, code in SIGNALS.items():
            proxy = Proxy(self.server.rdma_port, "down", 64 << 20)
            self.addCleanup(proxy.cut)
            copy = self.copy(self.url("big", port=proxy.port) + "&version=3", self.at("big"))
            self.assertTrue(proxy.reached.wait(harness.PATIENCE))
            copy.send_signal(number)
            proxy.released.set()
            self.assertEqual(copy.wait(harness.PATIENCE), code)
            self.assertEqual(os.listdir(self.at()), [])


if __name__ == "__main__":
    harness.main()
