// Why an operation of the client did not succeed, as a value a program can branch on and a sentence
// a person can read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "nfs/client/protocol/types.h"
#include "rpc/call_error.h"

namespace stag::nfs::client {

// What was being done, for the sentence: "cannot create 'report.txt': ...". Views of what outlives
// the operation.
struct OperationContext {
  std::string_view verb;
  std::string_view name;  // may be empty
};

struct Error {
  enum class Kind : std::uint8_t {
    Url,       // the URL cannot be used
    Call,      // no usable Reply: `call` has the reason (also when cancelled or timed out)
    Mount,     // the MOUNT service refused: `status`
    Nfs,       // the NFS server refused: `status`
    Protocol,  // the server's answer contradicts its protocol
    Links,     // a symbolic link leads in circles or out of what is mounted
    Local,     // the caller's DataSource or DataSink failed
  };
  Kind kind = Kind::Nfs;
  Status status = Status::Ok;
  rpc::CallError call{};
  std::string sentence;  // what happened and, where that helps, what to do; no final full stop

  bool is(Status wanted) const { return kind == Kind::Nfs && status == wanted; }
  bool cancelled() const { return kind == Kind::Call && call.reason == Reason::Cancelled; }

  static Error of_url(std::string sentence);
  static Error of_call(OperationContext context, rpc::CallError call);
  static Error of_mount(std::string_view path, Status status);
  static Error of_status(OperationContext context, Status status);
  static Error of_protocol(OperationContext context, std::string_view what);
  static Error of_links(std::string sentence);
  static Error of_local(std::string sentence);
};

template <class T>
using Outcome = Result<T, Error>;

// A status as a phrase for users: "permission denied".
std::string_view words(Status status);

}  // namespace stag::nfs::client
