// Error: why an operation of the client failed, as a value that a program can branch on and a
// sentence that a person can read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"
#include "nfs/client/protocol/types.h"
#include "rpc/call_error.h"

namespace stag::nfs::client {

// The operation, for the sentence of an Error: "cannot create 'report.txt': ...". The views outlive
// the operation.
struct OperationContext {
  std::string_view verb;  // "create"
  std::string_view name;  // may be empty
  // Since when the operation has waited to be sent, calls that go before it included, where the
  // protocol has it wait; else the epoch.
  TimePoint waits_since{};
};

struct Error {
  enum class Kind : std::uint8_t {
    Url,       // the URL cannot be used
    Call,      // there is no usable Reply; `call` says why (also Cancelled and TimedOut)
    Mount,     // the MOUNT service refused; `status` says why
    Nfs,       // the NFS server refused; `status` says why
    Protocol,  // the server's answer contradicts its protocol
    Links,     // a symbolic link leads in circles, or out of what is mounted
    Local,     // the caller's DataSource or DataSink failed
  };
  Kind kind = Kind::Nfs;
  Status status = Status::Ok;  // of Mount and Nfs; of Local where it means the same
  rpc::CallError call{};       // of Call
  std::string sentence;  // what happened and, where that helps, what to do; no final full stop

  bool is(Status wanted) const { return kind == Kind::Nfs && status == wanted; }
  bool cancelled() const { return kind == Kind::Call && call.reason == Reason::Cancelled; }
  // Of this process, for the Call or for its Reply.
  bool out_of_memory() const { return kind == Kind::Call && call.reason == Reason::OutOfMemory; }

  // One of each Kind. `what` of of_protocol() continues "the server ...".
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
