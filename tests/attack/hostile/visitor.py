"""visitor.py FOLDER LOCAL: does with files what programs do that know nothing of NFS, in a FOLDER that somebody hostile has filled; LOCAL is of this machine.

Says of each operation its name when it begins, and then what came of it: "ok" or the name of an errno. Any other exception ends it."""
import errno
import fcntl
import mmap
import os
import sys

MOST_ENTRIES, MOST_ERRORS, MOST_DEPTH = 100, 3, 8
MOST_DATA, PIECE = 4 << 20, 1 << 17
FOLDER, LOCAL = sys.argv[1:]


def at(*names):
    return os.path.join(FOLDER, *names)


def listed():
    """`ls -lR`, but not of everything where there is no end of it."""
    folders, entries, errors, first = [(FOLDER, 0)], 0, 0, None
    while folders and entries < MOST_ENTRIES and errors < MOST_ERRORS:
        folder, depth = folders.pop()
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    entries += 1
                    if entries >= MOST_ENTRIES:
                        break
                    os.lstat(entry.path)
                    if depth < MOST_DEPTH and entry.is_dir(follow_symlinks=False):
                        folders.append((entry.path, depth + 1))
        except OSError as error:
            errors, first = errors + 1, first or error
    if first:
        raise first


def copied(name, to=os.devnull):
    with open(at(name), "rb", buffering=0) as source, open(to, "wb") as target:
        done = 0
        while done < MOST_DATA and (data := source.read(PIECE)):
            done += len(data)
            target.write(data)


def written():
    with open(at("new"), "wb", buffering=0) as file:
        for size in (10, 200_000, 1):
            file.write(bytes(size))
        os.fsync(file)


def changed():
    with open(at("file"), "r+b", buffering=0) as file:
        file.seek(1000)
        file.write(b"changed")
        file.truncate(5000)


def mapped():
    """What is written by memory is written at msync; a look at a page that cannot be had would be a signal, not an errno."""
    with open(at("file"), "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        if 0 < size < MOST_DATA:
            mmap.mmap(file.fileno(), size).close()


def locked():
    with open(at("file"), "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def held():
    """What is open stays usable, or says that it is not, while its name goes."""
    with open(at("file"), "r+b", buffering=0) as file:
        os.unlink(at("file"))
        file.write(b"x")
        file.seek(0)
        file.read(10)


def attributes():
    """`getfattr -d`."""
    for name in os.listxattr(at("file"))[:MOST_ENTRIES]:
        os.getxattr(at("file"), name)


def sought():
    file = os.open(at("sparse"), os.O_RDONLY)
    try:
        os.lseek(file, os.lseek(file, 0, os.SEEK_DATA), os.SEEK_HOLE)
    finally:
        os.close(file)


def copied_within():
    with open(at("sparse"), "rb", buffering=0) as source, open(at("copy"), "wb", buffering=0) as target:
        for _ in range(3):
            os.copy_file_range(source.fileno(), target.fileno(), MOST_DATA)


OPERATIONS = {
    "statvfs": lambda: os.statvfs(FOLDER), "ls": listed, "stat": lambda: os.stat(at("file")), "readlink": lambda: os.readlink(at("link")),
    "cat": lambda: copied("file"), "cp": lambda: copied("file", os.path.join(LOCAL, "down")), "copy_file_range": copied_within,
    "mmap": mapped, "seek": sought, "getfattr": attributes,
    "setfattr": lambda: os.setxattr(at("file"), "user.name", b"value"), "write": written, "change": changed, "lock": locked,
    "chmod": lambda: os.chmod(at("file"), 0o600), "mkdir": lambda: os.mkdir(at("made")), "ln": lambda: os.link(at("file"), at("hard")),
    "ln -s": lambda: os.symlink("text", at("soft")), "mv": lambda: os.rename(at("file"), at("moved")), "rm": lambda: os.unlink(at("file")),
    "rmdir": lambda: os.rmdir(at("dir")), "use what is removed": held,
}  # fmt: skip

if __name__ == "__main__":
    for name, operation in OPERATIONS.items():
        print(name, flush=True)
        try:
            operation()
            print("ok", flush=True)
        except OSError as error:
            print(errno.errorcode[error.errno], flush=True)
