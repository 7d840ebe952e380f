// PUTFH and its like, LOOKUP, LOOKUPP, SECINFO (RFC 8881 18.13-14, 18.19-21, 18.27-29).
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Step puts(const std::string& bytes) {
  return plain(OP_PUTFH, &Op::opputfh, {nfs_fh4(bytes_of(bytes))});
}

Scripts puts_and_gets() {
  return {
      {.note = "the root of the server", .steps = {putrootfh()}},
      {.note = "the public filehandle",
       .steps = {putpubfh()},
       .expect = {NFS4_OK, NFS4ERR_NOTSUPP}},
      {.note = "a handle that the server gave", .steps = {at("file")}},
      {.note = "bytes that are no handle",
       .steps = {puts("this is no filehandle of any server")},
       .expect = {NFS4ERR_BADHANDLE, NFS4ERR_STALE}},
      {.note = "a handle of no bytes",
       .steps = {puts("")},
       .expect = {NFS4ERR_BADHANDLE, NFS4ERR_STALE}},
      {.note = "the handle of a file that was removed",
       .steps = {at("gone"), getattr(bits({kType}))},
       .expect = {NFS4ERR_STALE},
       .earlier = true},
      {.note = "the current filehandle", .steps = {at("file"), getfh("same")}},
      {.note = "saved and restored",
       .steps = {at("file"), savefh(), at("dir"), restorefh(), access(ACCESS4_READ)}},
      {.note = "is kept", .steps = {at("file"), savefh()}},
      {.note = "brings back what was saved", .steps = {at("file"), savefh(), restorefh()}},
      {.note = "nothing was saved",
       .minors = k40,
       .steps = {at("file"), restorefh()},
       .expect = {NFS4ERR_RESTOREFH, NFS4ERR_NOFILEHANDLE}},
      {.note = "nothing was saved",
       .minors = kSessions,
       .steps = {at("file"), restorefh()},
       .expect = {NFS4ERR_NOFILEHANDLE, NFS4ERR_RESTOREFH}},
      {.note = "the same handle as before",
       .steps = {at("work"), lookup("file"), getfh("again")},
       .check =
           [](Scene& scene, const COMPOUND4res&) {
             return scene.handle("again") == scene.handle("file") ? std::string()
                                                                  : "another handle came";
           },
       .section = "8881 4.2.2"},
  };
}

Scripts lookups() {
  return {
      {.note = "a file", .steps = {at("work"), lookup("file")}},
      {.note = "a folder in a folder", .steps = {at("work"), lookup("full"), lookup("inner")}},
      {.note = "a name that is not there",
       .steps = {at("dir"), lookup("absent")},
       .expect = {NFS4ERR_NOENT}},
      {.note = "in a file", .steps = {at("file"), lookup("x")}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "in a symbolic link",
       .steps = {at("link"), lookup("x")},
       .expect = {NFS4ERR_SYMLINK}},
      {.note = "in a FIFO", .steps = {at("fifo"), lookup("x")}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "in a folder of mode 0700 of another user",
       .steps = {at("private"), lookup("x")},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "the parent of a folder", .steps = {at("dir"), lookupp(), lookup("file")}},
      {.note = "the parent", .steps = {at("dir"), lookupp()}},
      {.note = "the root has no parent",
       .steps = {putrootfh(), lookupp()},
       .expect = {NFS4ERR_NOENT}},
      {.note = "of a file", .steps = {at("file"), lookupp()}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "of a symbolic link",
       .steps = {at("link"), lookupp()},
       .expect = {NFS4ERR_SYMLINK, NFS4ERR_NOTDIR}},
      {.note = "of a folder of mode 0700 of another user",
       .before = {{own(), create("shut", NF4DIR, mode_is(0700)), getfh("shut")},
                  {at("shut"), create("in", NF4DIR, mode_is(0777)), getfh("in")}},
       .steps = {at("in"), lookupp()},
       .expect = {NFS4ERR_ACCESS, NFS4_OK},
       .stranger = true},
  };
}

Scripts secinfos() {
  return {
      {.note = "of a file", .steps = {at("work"), secinfo("file")}},
      {.note = "a name that is not there",
       .steps = {at("work"), secinfo("absent")},
       .expect = {NFS4ERR_NOENT}},
      {.note = "in a file", .steps = {at("file"), secinfo("x")}, .expect = {NFS4ERR_NOTDIR}},
      {.note = "in a folder of mode 0700 of another user",
       .steps = {at("private"), secinfo("x")},
       .expect = {NFS4ERR_ACCESS},
       .stranger = true},
      {.note = "SECINFO consumes the current filehandle",
       .minors = kSessions,
       .steps = {at("work"), secinfo("file"), getfh("none")},
       .expect = {NFS4ERR_NOFILEHANDLE},
       .section = "8881 2.6.3.1.1.8"},
  };
}

// SECINFO_NO_NAME, and OPENATTR.
Scripts secinfos_without_name() {
  return {
      {.note = "of the current filehandle",
       .minors = kSessions,
       .steps = {at("work"), secinfo_no_name(SECINFO_STYLE4_CURRENT_FH)}},
      {.note = "of the parent",
       .minors = kSessions,
       .steps = {at("dir"), secinfo_no_name(SECINFO_STYLE4_PARENT)}},
      {.note = "the root has no parent",
       .minors = kSessions,
       .steps = {putrootfh(), secinfo_no_name(SECINFO_STYLE4_PARENT)},
       .expect = {NFS4ERR_NOENT}},
      {.note = "of what no RFC knows",
       .minors = kSessions,
       .steps = {at("dir"), secinfo_no_name(static_cast<secinfo_style4>(9))},
       .expect = {NFS4ERR_INVAL, NFS4ERR_BADXDR}},
      {.note = "the parent of a file",
       .minors = kSessions,
       .steps = {at("file"), secinfo_no_name(SECINFO_STYLE4_PARENT)},
       .expect = {NFS4ERR_NOTDIR}},
      {.note = "SECINFO_NO_NAME consumes the current filehandle",
       .minors = kSessions,
       .steps = {at("work"), secinfo_no_name(SECINFO_STYLE4_CURRENT_FH), getfh("none")},
       .expect = {NFS4ERR_NOFILEHANDLE},
       .section = "8881 2.6.3.1.1.8"},
      {.note = "of the parent of a folder of another user",
       .minors = kSessions,
       .before = {{own(), create("shut", NF4DIR, mode_is(0700)), getfh("shut")},
                  {at("shut"), create("in", NF4DIR, mode_is(0777)), getfh("in")}},
       .steps = {at("in"), secinfo_no_name(SECINFO_STYLE4_PARENT)},
       .expect = {NFS4ERR_ACCESS, NFS4_OK},
       .stranger = true},
      {.note = "of a folder", .steps = {at("dir"), openattr()}, .expect = {NFS4_OK, NFS4ERR_NOENT}},
      {.note = "of another user's file of mode 0600",
       .steps = {at("secret"), openattr()},
       .expect = {NFS4ERR_ACCESS, NFS4ERR_NOENT},
       .stranger = true},
  };
}

}  // namespace

Scripts filehandle_cases() {
  Scripts all = puts_and_gets();
  append(all, lookups());
  append(all, secinfos());
  append(all, secinfos_without_name());
  return all;
}

}  // namespace stag::conform::nfs4
