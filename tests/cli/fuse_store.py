"""A file system of a test's own, by FUSE: by the program that is the second argument of the test."""
import os
import subprocess
import sys
import time
import unittest

from harness import PATIENCE

PROGRAM = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None


def why_not():
    """What is missing for it; None: nothing."""
    if PROGRAM is None:
        return "libfuse3 was not there when this was built"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no right to use /dev/fuse"
    return None


def mounted(folder, *words, **streams):
    """The process of the one that is mounted at `folder`."""
    process = subprocess.Popen([PROGRAM, "-f", *words, folder], stderr=subprocess.DEVNULL, **streams)
    end = time.monotonic() + PATIENCE
    while not os.path.ismount(folder):
        if process.poll() is not None:
            raise unittest.SkipTest("FUSE does not mount here")
        if time.monotonic() > end:
            raise AssertionError("the store is not mounted")
        time.sleep(0.01)
    return process
