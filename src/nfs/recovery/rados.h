// Records in RADOS, the object store of Ceph: SQLite's VFS "ceph" keeps the database there, and a
// lock on its first object says whose it is. librados and libcephsqlite, which has that VFS, are
// found at run time with dlopen(): to build takes nothing of Ceph, and who keeps records in a
// directory needs none.
//
// The owner renews the lock. When it dies the lock runs out (cephsqlite_lock_renewal_timeout, 30
// s), and the VFS shuts the dead one out of the cluster (blocklist) before it reads what that has
// left. For a lock that is held SQLite would wait for ever: whether it is held is asked before.
//
// Blocking: the cluster may hang. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace stag::nfs::recovery {

struct RadosPlace {
  std::string pool;
  std::string name_space;     // of the pool; each server has its own
  std::string configuration;  // a file like ceph.conf; empty: where Ceph looks for it
  std::string id;             // of the Ceph user: client.ID; empty: Ceph's default
  // Called once before a wait for another server's lock, with the most seconds that it takes.
  std::function<void(unsigned)> waiting{};
};

// "ceph:POOL/NAMESPACE", for people.
std::string name_of(const RadosPlace& place);
// What SQLite opens.
std::string uri_of(const RadosPlace& place);

struct RadosLibraries {
  std::string rados = "librados.so.2";
  std::string sqlite_vfs = "libcephsqlite.so";
};

enum class Existing : bool { Wanted, Maybe };

// Loads what is needed, sees that the pool, and with Existing::Wanted the database, is there, waits
// until its last owner's lock is free or has run out, and makes SQLite's VFS reach the cluster by
// this configuration and user, which stay the same for the process. The error is a part of a
// sentence: what is wrong, and what to do.
Result<Ok, std::string> make_ready(const RadosPlace& place, Existing existing,
                                   const RadosLibraries& libraries = {});

}  // namespace stag::nfs::recovery
