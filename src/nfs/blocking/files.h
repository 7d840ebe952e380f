// nfs/blocking: the files of an NFS server for programs without loops and coroutines: functions
// that block the calling thread. One thread of its own, or one of the caller's Loops, does the
// work.
//
//   Outcome<Files> files = Files::open(*Url::parse("nfs://server/export?proto=tcp"));
//   if (!files) ... files.error().sentence ...
//   Outcome<std::vector<Entry>> names = files->list("dir");
//
// Names, paths, errors and results are those of nfs/client/file_system.h; whatever has no function
// here goes by run().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "endpoint/connector.h"
#include "endpoint/loops.h"
#include "nfs/client/session/session.h"

namespace stag::nfs::blocking {

template <class T>
using Outcome = client::Outcome<T>;

struct Options {
  // Credentials, time limits, sizes of transfers. What the URL says of the user goes before
  // AUTH_NONE and AUTH_SYS here: sec=krb5, krb5i and krb5p are Kerberos with the tickets of the
  // process's credential cache or client keytab, uid= and gid= are AUTH_SYS with those ids.
  client::FileSystemOptions files{};
  // Options of both connections. The URL decides about `transport` and `fabric`.
  endpoint::ConnectorOptions connector{};
  // The work is done on the first loop. Null: on one of its own.
  std::shared_ptr<endpoint::Loops> loops{};
};

// Thread: any number at a time, none of them a loop's. Its destruction, after the last function has
// returned, gives back what the server keeps for this client, and closes the connections.
class Files {
 public:
  // Connects, as client::Session::open() does. Kind::Call where the server cannot be reached, or
  // the system has no descriptor or thread for this. May ask a KDC.
  static Outcome<Files> open(const client::Url& url, Options options = {});
  Files(Files&&) noexcept;
  Files& operator=(Files&&) noexcept;
  ~Files();

  // Paths are below the path of the URL, which is the empty path. find(), list() and open() follow
  // symbolic links, as FileSystem::walk() does; the functions that create, remove and rename act on
  // the last name itself.
  Outcome<client::Node> find(std::string path);
  // Not more than client::Listing::kMostKept entries, without "." and "..".
  Outcome<std::vector<client::Entry>> list(std::string path);
  Outcome<client::Node> mkdir(std::string path, client::SetAttributes attributes = {.mode = 0755});
  Outcome<Ok> remove(std::string path);
  Outcome<Ok> rmdir(std::string path);
  Outcome<Ok> rename(std::string from, std::string to);

  // `asked`: of the bits kRead and kModify of client::access. The caller closes what it opens.
  Outcome<client::Opened> open(std::string path, std::uint32_t asked);
  Outcome<client::Opened> create(std::string path,
                                 client::SetAttributes attributes = {.mode = 0644},
                                 client::CreateMode mode = client::CreateMode::Unchecked);
  Outcome<Ok> close(client::File file);
  // Reads from byte `offset` on until `to` is full or the file ends, and yields the bytes.
  Outcome<std::uint64_t> read(client::File file, std::uint64_t offset, MutableBytes to);
  // Writes all of `data`, and makes it durable.
  Outcome<Ok> write(client::File file, std::uint64_t offset, Bytes data);

  // Runs the Task that `make` returns for the FileSystem, and returns its value:
  // files.run([&](client::FileSystem& f) { return f.getattr(handle); }). What the Task refers to
  // outlives run(); the Task throws nothing.
  template <class Make>
  auto run(Make make) {
    return endpoint::wait_on(loop(), [&] { return make(session().files()); });
  }

  // The session and its loop; the session is used on the loop only.
  client::Session& session() const;
  net::EpollLoop& loop() const;

 private:
  struct State;
  explicit Files(std::unique_ptr<State> state);
  std::string full(const std::string& path) const;
  std::unique_ptr<State> state_;
};

}  // namespace stag::nfs::blocking
