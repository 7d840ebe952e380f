"""`stag cp` with -p, -a and --preserve: access control lists and extended attributes."""
import collections
import os
import struct

import harness
import rpc_proxy
from harness import Case, stag

NFSACL, NO_PROGRAM = 100227, 100999
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
UNSET = 0xFFFFFFFF


def access_list(*entries):
    """A POSIX ACL as the kernel keeps it: (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# user::rw-, user:1234:r--, group::r--, group:5678:rw-, mask::rw-, other::---
LISTED = access_list((1, 6, UNSET), (2, 4, 1234), (4, 4, UNSET), (8, 6, 5678), (0x10, 6, UNSET), (0x20, 0, UNSET))
# user::rwx, user:1234:r-x, group::r-x, mask::r-x, other::---
OF_NEW = access_list((1, 7, UNSET), (2, 5, 1234), (4, 5, UNSET), (0x10, 5, UNSET), (0x20, 0, UNSET))


class WithoutNfsacl(rpc_proxy.RpcProxy):
    """The server hears of a program that it does not serve; counts the calls of each program."""

    def __init__(self, port):
        self.programs = collections.Counter()
        super().__init__(port, told=struct.pack(">II", NFSACL, 3), true=struct.pack(">II", NO_PROGRAM, 3))

    def _see_call(self, record):
        self.programs[struct.unpack(">I", record[12:16])[0]] += 1
        return super()._see_call(record)


class Marked(Case):
    def marked(self, path, attribute, value):
        try:
            os.setxattr(path, attribute, value)
        except OSError as error:
            self.skipTest(f"this file system has no {attribute}: {error}")
        return path

    def marked_tree(self):
        """A folder with files f and g: each has a list and an attribute."""
        os.mkdir(self.at("tree"))
        for name in ("f", "g"):
            self.marked(self.write(self.at("tree", name), b"content"), ACCESS, LISTED)
            self.marked(self.at("tree", name), "user.colour", b"red\0blue")
        self.marked(self.at("tree"), DEFAULT, OF_NEW)
        self.marked(self.at("tree"), "user.of", b"the folder")

    def expect_lists(self, root):
        self.assertEqual(os.getxattr(os.path.join(root, "f"), ACCESS), LISTED)
        self.assertEqual(os.getxattr(root, DEFAULT), OF_NEW)
        self.assertEqual(os.stat(os.path.join(root, "f")).st_mode & 0o777, 0o660)

    def expect_attributes(self, root):
        self.assertEqual(os.getxattr(os.path.join(root, "f"), "user.colour"), b"red\0blue")
        self.assertEqual(os.getxattr(root, "user.of"), b"the folder")

    def without_nfsacl(self):
        """A proxy, and the URL of this test's folder by it."""
        proxy = WithoutNfsacl(self.server.tcp_port)
        self.addCleanup(proxy.close)
        return proxy, proxy.url(f"/files/{self.name}") + f"&mountport={self.server.tcp_port}"


class Lists(Marked):
    def test_are_kept_with_p_as_by_cp_and_extended_attributes_are_not(self):
        self.marked_tree()
        for number, version in enumerate(("", "&version=2", "&version=3", "&version=4.0", "&version=4.2")):
            first, second, back = f"first{number}", f"second{number}", f"back{number}"
            self.good("cp", "-r", "-p", self.at("tree"), self.url(first) + version)
            self.good("cp", "-r", "--preserve=mode", self.url(first) + version, self.url(second) + version)
            self.good("cp", "-r", "-p", self.url(second) + version, self.at(back))
            for root in (self.there(first), self.there(second), self.at(back)):
                with self.subTest(root=root, version=version):
                    self.expect_lists(root)
                    self.assertEqual((os.listxattr(root), os.listxattr(os.path.join(root, "g"))), ([DEFAULT], [ACCESS]))
        self.good("cp", "-r", self.at("tree"), self.url("plain"))
        self.assertEqual((os.listxattr(self.there("plain")), os.listxattr(self.there("plain", "f"))), ([], []))

    def test_of_one_form_become_those_of_the_other_with_p(self):
        self.marked_tree()
        self.good("cp", "-r", "-p", self.at("tree"), self.url("tree"))
        self.good("cp", "-r", "-p", self.url("tree") + "&version=3", self.url("by4") + "&version=4.0")
        self.good("cp", "-r", "-p", self.url("by4") + "&version=4.1", self.url("by3") + "&version=3")
        for name in ("by4", "by3"):
            self.expect_lists(self.there(name))

    @harness.release_only
    def test_go_where_the_source_has_none_with_p(self):
        for version in ("3", "4.2"):
            for below in (self.at, self.there):
                self.write(below("from"), b"content")
                os.chmod(below("from"), 0o640)
                # It has another name, and is written in place.
                self.marked(self.write(below("to"), b"old"), ACCESS, LISTED)
                os.link(below("to"), below("other name"))
            self.good("cp", "-p", self.at("from"), self.url("to") + f"&version={version}")
            self.good("cp", "-p", self.url("from") + f"&version={version}", self.at("to"))
            for below in (self.at, self.there):
                self.assertEqual((self.read(below("other name")), os.listxattr(below("to")), os.stat(below("to")).st_mode & 0o777),
                                 (b"content", [], 0o640), version)
                os.unlink(below("to"))
                os.unlink(below("other name"))

    @harness.release_only
    def test_that_a_server_of_version_3_without_NFSACL_cannot_have_are_told_of_once_with_p_and_a(self):
        for option in ("-p", "-a"):
            _, url = self.without_nfsacl()
            names = [self.at(f"{option}{number}") for number in range(20)]
            for name in names:
                self.marked(self.write(name, b"content"), ACCESS, LISTED)
            copied = stag("cp", option, *names, url)
            self.assertEqual(copied.returncode, 0, copied.stderr)
            self.assertRegex(copied.stderr, f"access control lists are not copied, from {self.at(option)}[0-9]+ on: ")
            self.assertEqual(copied.stderr.count("\n"), 1, "they are left out of all")
            for name in names:
                copy = self.there(os.path.basename(name))
                self.assertEqual((self.read(copy), os.listxattr(copy), os.stat(copy).st_mode & 0o777), (b"content", [], 0o660))
        self.bad(1, "the server does not serve this program", "cp", "--preserve=mode,acl", self.at("-p0"), url)

    def test_are_asked_for_once_of_a_server_of_version_3_without_NFSACL(self):
        os.mkdir(self.there("tree"))
        for number in range(20):
            self.write(self.there("tree", f"plain{number}"), b"content")
            self.marked(self.write(self.at(f"listed{number}"), b"content"), ACCESS, LISTED)
        for option in ("-p", "-a"):
            proxy, url = self.without_nfsacl()
            # It has none to lose, as far as anybody can see.
            self.good("cp", "-r", option, url.replace("?", "/tree?"), self.at(f"tree{option}"))
            self.assertEqual(len(os.listdir(self.at(f"tree{option}"))), 20)
            self.assertEqual(proxy.programs[NFSACL], 1)
            proxy, url = self.without_nfsacl()
            stag("cp", option, *(self.at(f"listed{number}") for number in range(20)), url)
            self.assertEqual(proxy.programs[NFSACL], 1)
            self.assertGreater(proxy.programs[rpc_proxy.NFS], 20)
            # Standard output keeps none.
            proxy, url = self.without_nfsacl()
            self.assertEqual(self.good("cp", option, url.replace("?", "/tree/plain0?"), "-"), "content")
            self.assertEqual(proxy.programs[NFSACL], 0)

    @harness.release_only
    def test_with_preserve_acl_go_by_version_3_where_the_URL_names_none(self):
        self.marked_tree()
        self.good("cp", "-r", "--preserve=mode,acl", self.at("tree"), self.url("tree"))
        self.good("cp", "-r", "--preserve=mode,acl", self.url("tree"), self.at("back"))
        for root in (self.there("tree"), self.at("back")):
            self.expect_lists(root)

    def test_and_attributes_together_by_version_4_2_with_a(self):
        self.marked_tree()
        for version in ("", "&version=4.2"):
            first, second = self.url("first" + version[-1:]) + version, self.url("second" + version[-1:]) + version
            self.good("cp", "-a", self.at("tree"), first)
            self.good("cp", "-r", "--preserve=mode,xattr,acl", first, second)
            self.good("cp", "-a", second, self.at("back" + version[-1:]))
            for root in (self.there("first" + version[-1:]), self.there("second" + version[-1:]), self.at("back" + version[-1:])):
                with self.subTest(root):
                    self.expect_lists(root)
                    self.expect_attributes(root)
        # Lists of one form become those of the other.
        self.good("cp", "-r", "--preserve=mode,acl", self.url("first"), self.url("by4") + "&version=4.0")
        self.good("cp", "-r", "--preserve=mode,acl", self.url("by4") + "&version=4.1", self.url("by3") + "&version=3")
        for name in ("by4", "by3"):
            self.expect_lists(self.there(name))


class ExtendedAttributes(Marked):
    def test_with_a_by_version_4_2(self):
        os.mkdir(self.at("tree"))
        self.marked(self.write(self.at("tree", "f"), b"content"), "user.colour", b"red\0blue")
        self.marked(self.at("tree"), "user.of", b"the folder")
        url = self.url("tree") + "&version=4.2"
        self.good("cp", "-a", self.at("tree"), url)
        self.good("cp", "-a", url, self.at("back"))
        for root in (self.there("tree"), self.at("back")):
            self.expect_attributes(root)
        self.good("cp", self.at("tree", "f"), self.url("plain") + "&version=4.2")
        self.assertEqual(os.listxattr(self.there("plain")), [])
        self.bad(0, "extended attributes are not copied", "cp", "-a", self.at("tree", "f"), self.url("by3") + "&version=3")
        self.bad(1, "extended attribute", "cp", "--preserve=xattr", self.at("tree", "f"), self.url("by3") + "&version=3")

    @harness.release_only
    def test_with_a_that_are_left_out_are_told_of_once(self):
        self.marked_tree()
        for version in ("3", "4.1"):
            self.bad(0, "extended attributes are not copied, from", "cp", "-a", self.at("tree"), self.url("by" + version) + "&version=" + version)
            self.assertEqual(sorted(os.listdir(self.there("by" + version))), ["f", "g"])


if __name__ == "__main__":
    harness.main()
