"""mounted_files.py VERSION             the names of what files of a server of that version of NFS have
mounted_files.py FOLDER NAME…        does these in FOLDER, which `stag mount` has mounted, and exits 1 where one is not as it should be

What programs do with files that know nothing of NFS, for servers of every kind: mount_files_test.py has `stag serve`, tests/interop Linux's knfsd."""
import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
import subprocess
import sys
import tempfile

ONLY_42 = ("xattrs", "allocates", "finds_holes", "copies_within")  # by version 4.2
SIZES = (0, 1, 4095, 4096, 4097, 1_048_577, 3_000_001)
KEEP_SIZE, PUNCH_HOLE = 1, 2  # fallocate(2)
RANGE = struct.Struct("hhqqi4x")  # struct flock


def need(truth, sentence):
    if not truth:
        raise AssertionError(sentence)


def fails_with(number, function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        need(error.errno == number, f"fails with {error}, not {os.strerror(number)}")
    else:
        raise AssertionError(f"does not fail with {os.strerror(number)}")


def put(path, content):
    with open(path, "wb") as file:
        file.write(content)


def got(path):
    with open(path, "rb") as file:
        return file.read()


def holds(path, content):
    need(got(path) == content, f"{path} holds something else")


# -- what is done, each in a folder of its own ---------------------------------------------------------


def files(at):
    """Files of sizes that matter are written, read, changed in the middle and appended to."""
    for size in SIZES:
        content = bytearray(os.urandom(size))
        put(at(f"{size}"), content)
        holds(at(f"{size}"), content)
        with open(at(f"{size}"), "r+b") as file:
            file.seek(size // 2)
            file.write(b"changed")
        content[size // 2 : size // 2 + 7] = b"changed"
        with open(at(f"{size}"), "ab") as file:
            file.write(b"appended")
        holds(at(f"{size}"), bytes(content) + b"appended")
    fails_with(errno.EEXIST, os.open, at("0"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    for size in SIZES:
        os.unlink(at(f"{size}"))
    need(os.listdir(at()) == [], "something is left")


def kept_open(at):
    """An open file stays what it is when its name is removed, or another file takes it."""
    put(at("removed"), b"removed")
    put(at("replaced"), b"replaced")
    with open(at("removed"), "r+b", buffering=0) as removed, open(at("replaced"), "rb") as replaced:
        os.unlink(at("removed"))
        put(at("new"), b"new")
        os.rename(at("new"), at("replaced"))
        need(not os.path.exists(at("removed")), "the removed one is still there")
        removed.write(b"R")
        removed.seek(0)
        need((removed.read(), replaced.read()) == (b"Removed", b"replaced"), "what is open holds something else")
        holds(at("replaced"), b"new")


def truncates(at):
    content = os.urandom(100_000)
    put(at("file"), content)
    for size in (4097, 4096, 1, 0, 50_000):
        os.truncate(at("file"), size)
        content = content[:size] + bytes(size - len(content[:size]))
        holds(at("file"), content)
        need(os.stat(at("file")).st_size == size, "its size is another")
    with open(at("file"), "wb"):
        need(os.stat(at("file")).st_size == 0, "O_TRUNC does not")


def links(at):
    put(at("file"), b"content")
    os.chmod(at("file"), 0o604)
    os.link(at("file"), at("hard"))
    os.symlink("file", at("soft"))
    os.symlink("t/" * 500, at("dangling"))
    os.utime(at("file"), (1_000_000_000, 1_100_000_000))
    for path in (at("file"), at("hard"), at("soft")):
        found = os.stat(path)
        need((found.st_nlink, found.st_mode & 0o777, found.st_mtime) == (2, 0o604, 1_100_000_000), f"{path} is {found}")
    need((os.readlink(at("soft")), os.readlink(at("dangling"))) == ("file", "t/" * 500), "a symbolic link says something else")
    fails_with(errno.ENOENT, os.stat, at("dangling"))
    os.unlink(at("file"))
    holds(at("hard"), b"content")
    need(os.stat(at("hard")).st_nlink == 1, "links are counted otherwise")


def long_links(at):
    """The longest that Linux has."""
    target = "t/" * 2047 + "t"
    os.symlink(target, at("soft"))
    need((os.readlink(at("soft")), os.lstat(at("soft")).st_size) == (target, 4095), "it says something else")
    fails_with(errno.ENAMETOOLONG, os.symlink, "t" * 4096, at("longer"))


def long_names(at):
    """Of 255 bytes, which may be fewer letters."""
    names = ["d" * 255, "ü" * 127 + "f", "€" * 85]
    os.mkdir(at(names[0]))
    put(at(names[0], names[1]), b"content")
    need(os.listdir(at(names[0])) == [names[1]], "another name is listed")
    os.rename(at(names[0], names[1]), at(names[2]))
    holds(at(names[2]), b"content")
    need(set(os.listdir(at())) == {names[0], names[2]}, "other names are listed")
    fails_with(errno.ENAMETOOLONG, os.mkdir, at("d" * 256))
    fails_with(errno.ENAMETOOLONG, os.rename, at(names[2]), at(names[0], "ü" * 128))


def owners(at):
    put(at("file"), b"content")
    os.symlink("nothing", at("soft"))
    root, own = os.geteuid() == 0, (os.geteuid(), os.getegid())
    for user, group in [(1234, 4321), own] if root else [own]:
        os.chown(at("file"), user, group)
        os.chown(at("soft"), user, group, follow_symlinks=False)
        for found in (os.stat(at("file")), os.lstat(at("soft"))):
            need((found.st_uid, found.st_gid) == (user, group), f"the owner is {found.st_uid}, the group {found.st_gid}")
    if not root:
        return fails_with(errno.EPERM, os.chown, at("file"), 0, -1)
    os.chown(at("file"), -1, 4321)
    os.chown(at("file"), 1234, -1)
    found = os.stat(at("file"))
    need((found.st_uid, found.st_gid) == (1234, 4321), "one of the two is changed with the other")


def special(at):
    """A FIFO and a socket, which are the server's as names, and this machine's otherwise."""
    for name, kind in (("fifo", stat.S_IFIFO), ("socket", stat.S_IFSOCK)):
        os.mknod(at(name), kind | 0o640)
        fails_with(errno.EEXIST, os.mknod, at(name), kind | 0o640)
        need(os.lstat(at(name)).st_mode == kind | 0o640, f"the {name} is another kind of file")
    with open(os.open(at("fifo"), os.O_RDONLY | os.O_NONBLOCK), "rb") as reader, open(at("fifo"), "wb", buffering=0) as writer:
        writer.write(b"through it")
        need(reader.read(10) == b"through it", "something else comes through the FIFO")
    fails_with(errno.ENXIO, os.open, at("socket"), os.O_RDONLY)
    for name in os.listdir(at()):
        os.unlink(at(name))


def archives(at):
    """tar(1) finds in what it has unpacked what it has packed."""
    os.makedirs(at("tree", "empty"))
    os.mkdir(at("copy"))
    for number in range(50):
        put(at("tree", f"{number}"), os.urandom(number * 1000))
        os.chmod(at("tree", f"{number}"), 0o400 + number)
        os.utime(at("tree", f"{number}"), (1_000_000_000 + number, 1_100_000_000 + number))
    os.link(at("tree", "1"), at("tree", "hard"))
    os.symlink("1", at("tree", "soft"))
    os.mkfifo(at("tree", "fifo"))
    with open(at("tree", "sparse"), "wb") as file:
        file.truncate(1 << 20)
    os.utime(at("tree", "empty"), (1_000_000_000, 1_100_000_000))
    with tempfile.TemporaryDirectory() as elsewhere:
        archive = os.path.join(elsewhere, "archive")
        for words in (["-cSf", archive, "-C", at("tree"), "."], ["-xpf", archive, "-C", at("copy")], ["-df", archive, "-C", at("copy")]):
            done = subprocess.run(["tar", *words], capture_output=True, text=True)
            need((done.returncode, done.stderr) == (0, ""), f"tar {words[0]}: {done.stdout}{done.stderr}")
    need(os.stat(at("copy", "hard")).st_ino == os.stat(at("copy", "1")).st_ino, "a hard link has become a file")


def lists(at):
    names = {f"a name that makes the listing long {number}" for number in range(200)}
    for name in names:
        os.close(os.open(at(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    listed = os.listdir(at())
    need(len(listed) == 200 and set(listed) == names, f"{len(listed)} are listed")
    fails_with(errno.ENOTEMPTY, os.rmdir, at())
    for name in names:
        os.unlink(at(name))
    need(os.listdir(at()) == [], "something is left")


def maps(at):
    size = 100_000
    with open(at("file"), "w+b") as file:
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as mapped:
            mapped[:] = bytes(number % 251 for number in range(size))
            mapped.flush()
    with open(at("file"), "rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
        need(mapped[:] == bytes(number % 251 for number in range(size)), "what was mapped is otherwise")


def direct(at):
    """O_DIRECT, at places and of lengths that are no whole blocks."""
    content, memory = os.urandom(600_001), mmap.mmap(-1, 1 << 18)  # pages
    steps = [1, 3, 4095, 4097, 65_537, 131_071] * 3
    file = os.open(at("file"), os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    for turn in ("written", "read"):
        place = 0
        for step in steps:
            step = min(step, len(content) - place)
            with memoryview(memory)[:step] as room:
                if turn == "written":
                    room[:] = content[place : place + step]
                    need(os.pwrite(file, room, place) == step, "less is written")
                else:
                    need(os.preadv(file, [room], place) == step, "less is read")
                    need(bytes(room) == content[place : place + step], "something else is read")
            place += step
    need(place == len(content), "these steps are too short")
    os.close(file)
    holds(at("file"), content)


class Other:
    """Another process, which does with a file of its own open what it is told, and says whether it could."""

    def __init__(self, path):
        self.orders, orders, answers, self.answers = *reversed(os.pipe()), *reversed(os.pipe())
        self.child = os.fork()
        if self.child == 0:
            os.close(self.orders)
            with open(path, "r+b") as file:
                while order := os.read(orders, 1):
                    os.write(answers, self.done(file, order))
            os._exit(0)
        os.close(orders)
        os.close(answers)

    @staticmethod
    def done(file, order):
        kinds = {b"r": lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0), b"w": lambda: fcntl.lockf(file, fcntl.LOCK_EX, 10, 0),
                 b"b": lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10), b"u": lambda: fcntl.lockf(file, fcntl.LOCK_UN),
                 b"f": lambda: fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB), b"g": lambda: fcntl.flock(file, fcntl.LOCK_UN)}  # fmt: skip
        try:
            kinds[order]()
        except BlockingIOError:
            return b"-"
        except OSError:
            return b"!"
        return b"+"

    def begins(self, order):
        os.write(self.orders, order)

    def ends(self):
        return os.read(self.answers, 1) == b"+"

    def can(self, order):
        self.begins(order)
        return self.ends()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.orders)
        os.waitpid(self.child, 0)
        os.close(self.answers)


def locks(at):
    """fcntl(2) locks of one process are in the way of another one's, until they are given back."""
    put(at("file"), b"content")
    with Other(at("file")) as other, open(at("file"), "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
        need(not other.can(b"r"), "another process gets a lock that is held")
        need(other.can(b"b"), "another process does not get what lies beside it")
        found = RANGE.unpack(fcntl.fcntl(file, fcntl.F_GETLK, RANGE.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)))
        need(found[:4] == (fcntl.F_WRLCK, os.SEEK_SET, 10, 10), f"F_GETLK says {found}")
        need(other.can(b"u"), "another process cannot give its lock back")
        other.begins(b"w")
        fcntl.lockf(file, fcntl.LOCK_UN)
        need(other.ends(), "who waits for a lock does not get it")
        fails_with(errno.EAGAIN, fcntl.lockf, file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with open(at("file"), "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the process is gone


def locks_whole_files(at):
    """The same of flock(2)."""
    put(at("file"), b"content")
    with Other(at("file")) as other, open(at("file"), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        need(not other.can(b"f"), "another process gets a lock that is held")
        fcntl.flock(file, fcntl.LOCK_UN)
        need(other.can(b"f"), "another process does not get a lock that was given back")
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fails_with(errno.EAGAIN, fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def tells_its_room(at):
    found = os.statvfs(at())
    need(found.f_blocks >= found.f_bfree > 0 and found.f_files > 0 and found.f_namemax >= 255, f"statvfs says {found}")


def xattrs(at):
    put(at("file"), b"")
    os.setxattr(at("file"), "user.color", b"\0red" * 100, os.XATTR_CREATE)
    os.setxattr(at("file"), "user.empty", b"")
    fails_with(errno.EEXIST, os.setxattr, at("file"), "user.color", b"", os.XATTR_CREATE)
    fails_with(errno.ENODATA, os.setxattr, at("file"), "user.none", b"", os.XATTR_REPLACE)
    need(os.getxattr(at("file"), "user.color") == b"\0red" * 100, "a value is another")
    need(sorted(os.listxattr(at("file"))) == ["user.color", "user.empty"], "others are listed")
    os.removexattr(at("file"), "user.color")
    fails_with(errno.ENODATA, os.getxattr, at("file"), "user.color")


def fallocate(file, mode, offset, length):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(file.fileno(), mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def allocates(at):
    with open(at("file"), "w+b") as file:
        fallocate(file, 0, 0, 1 << 20)
    found = os.stat(at("file"))
    need(found.st_size == 1 << 20 and found.st_blocks >= (1 << 20) // 512, f"the file is {found}")
    holds(at("file"), bytes(1 << 20))


def finds_holes(at):
    mebibyte = 1 << 20
    with open(at("file"), "wb") as file:
        file.write(b"d" * mebibyte)
        file.flush()
        file.truncate(3 * mebibyte)
        os.pwrite(file.fileno(), b"d" * mebibyte, 2 * mebibyte)
    with open(at("file"), "rb") as file:
        find = lambda offset, what: os.lseek(file.fileno(), offset, what)
        need((find(0, os.SEEK_HOLE), find(mebibyte, os.SEEK_DATA)) == (mebibyte, 2 * mebibyte), "a hole is elsewhere")
        need(find(2 * mebibyte, os.SEEK_HOLE) == 3 * mebibyte, "the end of a file is no hole")
        fails_with(errno.ENXIO, find, 3 * mebibyte, os.SEEK_DATA)
        with open(at("file"), "r+b") as writing:
            fallocate(writing, PUNCH_HOLE | KEEP_SIZE, 0, mebibyte)
        need(find(0, os.SEEK_DATA) == 2 * mebibyte, "no hole was made")
    holds(at("file"), bytes(2 * mebibyte) + b"d" * mebibyte)


def copies_within(at):
    """copy_file_range(2)."""
    content = os.urandom(3_000_001)
    put(at("from"), content)
    with open(at("from"), "rb") as source, open(at("to"), "wb") as target:
        left = len(content)
        while left > 0:
            left -= (copied := os.copy_file_range(source.fileno(), target.fileno(), left))
            need(copied > 0, "nothing is copied")
    holds(at("to"), content)


CHECKS = {check.__name__: check for check in (files, kept_open, truncates, links, long_links, long_names, owners, special, archives, lists, maps,
                                              direct, locks, locks_whole_files, tells_its_room, xattrs, allocates, finds_holes,
                                              copies_within)}  # fmt: skip


def names(version):
    return [name for name in CHECKS if version == "4.2" or name not in ONLY_42]


def run(folder, name):
    """Raises AssertionError or OSError where something is not as it should be."""
    own = os.path.join(folder, name)
    os.mkdir(own)
    CHECKS[name](lambda *parts: os.path.join(own, *parts))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(*names(sys.argv[1]))
    for word in sys.argv[2:]:
        run(sys.argv[1], word)
