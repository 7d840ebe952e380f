// Why an operation of the client did not succeed, as a value a program can branch on and a sentence
// a person can read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "nfs/proto/mount3.h"
#include "nfs/proto/nfs3.h"
#include "rpc/call_error.h"

namespace stag::nfs::client {

// What was being done, for the sentence: "cannot create 'report.txt': ...". Views of what outlives
// the operation.
struct Doing {
  std::string_view verb;
  std::string_view name;  // may be empty
};

struct Error {
  enum class Kind : std::uint8_t {
    Url,       // the URL cannot be used
    Call,      // no usable Reply: `call` says why (also when cancelled or timed out)
    Mount,     // the MOUNT service refused: `mount_status`
    Nfs,       // the NFS server refused: `status`
    Protocol,  // the server's answer contradicts RFC 1813
    Links,     // a symbolic link leads in circles or out of what is mounted
    Local,     // the caller's DataSource or DataSink failed
  };
  Kind kind = Kind::Nfs;
  v3::nfsstat3 status = v3::NFS3_OK;
  mount3::mountstat3 mount_status = mount3::MNT3_OK;
  rpc::CallError call{};
  std::string sentence;  // what happened and, where that helps, what to do; no final full stop

  bool is(v3::nfsstat3 wanted) const { return kind == Kind::Nfs && status == wanted; }
  bool cancelled() const { return kind == Kind::Call && call.reason == Reason::Cancelled; }

  static Error of_url(std::string sentence);
  static Error of_call(Doing doing, rpc::CallError call);
  static Error of_mount(std::string_view path, mount3::mountstat3 status);
  static Error of_status(Doing doing, v3::nfsstat3 status);
  static Error of_protocol(Doing doing, std::string_view what);
  static Error of_links(std::string sentence);
  static Error of_local(std::string sentence);
};

template <class T>
using Outcome = Result<T, Error>;

// A status in a user's words: "permission denied".
std::string_view words(v3::nfsstat3 status);

}  // namespace stag::nfs::client
