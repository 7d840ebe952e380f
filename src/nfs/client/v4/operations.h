// COMPOUNDs in the making, and their results by operation; included by .cc files of this folder.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "nfs/client/protocol/types.h"
#include "nfs/proto/nfs4.h"
#include "nfs/session/opens.h"
#include "rpc/message.h"

namespace stag::nfs::client::nfs4 {

using Op = v4::nfs_argop4;
using OpResult = v4::nfs_resop4;

inline v4::nfs_fh4 to_nfs_fh4(const Handle& handle) {
  return v4::nfs_fh4(handle.bytes());
}

// One COMPOUND. Place 0 is kept for SEQUENCE, which the session fills in.
class Request {
 public:
  Request() {
    operations().reserve(kUsual);
    operations().emplace_back().argop = v4::OP_SEQUENCE;
  }

  // Add an operation and return its place among the results.
  std::size_t add(v4::nfs_opnum4 number) {
    operations().emplace_back().argop = number;
    return operations().size() - 1;
  }
  template <class Args>
  std::size_t add(v4::nfs_opnum4 number, Args& (Op::*arguments)(),
                  std::type_identity_t<Args> value) {
    const std::size_t place = add(number);
    (operations()[place].*arguments)() = std::move(value);
    return place;
  }
  std::size_t put_handle(const Handle& handle) {
    const std::size_t place = add(v4::OP_PUTFH);
    STAG_CHECK(operations()[place].opputfh().object.assign(handle.bytes()));
    return place;
  }

  // It must not run twice: the server keeps its results for a retransmission. It changes files,
  // or nothing but state.
  Request& once_only(bool changes = true) {
    once_only_ = true;
    changes_ = changes;
    return *this;
  }

  // An OPEN, whose owner and number the session fills in; at most one. `owner`: the open is held by
  // this name; else it is closed at once, and has a name of its own.
  std::size_t add_open(v4::OPEN4args args, std::optional<session::Opens::Id> owner = std::nullopt) {
    open_place_ = add(v4::OP_OPEN, &Op::opopen, std::move(args));
    open_owner_ = owner;
    return *open_place_;
  }
  // The operation at `place` is by an open that is held, or by locks of `owner` under it: the
  // session fills in their stateid; at most one. `lock`: what LOCK or LOCKU makes of them.
  struct ByOpen {
    std::size_t place = 0;
    session::Opens::Id open = 0;
    session::Opens::LockOwner owner{};
    session::Opens::Lock lock{};
  };
  void set_by(ByOpen by) { by_open_ = std::move(by); }
  const std::optional<ByOpen>& by_open() const { return by_open_; }
  // A status that is an answer, and no failure.
  void expect(v4::nfsstat4 status) { expected_ = status; }
  bool expects(v4::nfsstat4 status) const { return status == v4::NFS4_OK || status == expected_; }

  // Whether it may change attributes of a file: a WRITE, or what must not run
  // twice, but for opens and locks of what is there.
  bool changes_files() const {
    if (by_open_) return operations()[by_open_->place].argop == v4::OP_WRITE;
    if (open_place_)
      return operations()[*open_place_].opopen().openhow.opentype == v4::OPEN4_CREATE;
    return changes_ || std::ranges::any_of(operations(), [](const Op& operation) {
             return operation.argop == v4::OP_WRITE || operation.argop == v4::OP_COPY;
           });
  }

  std::vector<Op>& operations() { return compound_.argarray; }
  const std::vector<Op>& operations() const { return compound_.argarray; }
  // Without its minor version, which the session fills in.
  v4::COMPOUND4args& compound() { return compound_; }
  std::optional<std::size_t> open_place() const { return open_place_; }
  std::optional<session::Opens::Id> open_owner() const { return open_owner_; }
  bool runs_once_only() const { return once_only_; }

  std::span<const rpc::ResultBuffer> sinks{};
  // Bytes of results that are provided for, where the caller knows better than the binding.
  std::optional<std::uint32_t> results_max{};

 private:
  // Operations of a GETATTR, READ or WRITE: as many as the C library keeps room for by thread.
  static constexpr std::size_t kUsual = 3;

  v4::COMPOUND4args compound_;
  std::optional<std::size_t> open_place_;
  std::optional<session::Opens::Id> open_owner_;
  std::optional<ByOpen> by_open_;
  v4::nfsstat4 expected_ = v4::NFS4_OK;
  bool once_only_ = false;
  bool changes_ = false;
};

// The status that a result has of its own.
template <class Result>
v4::nfsstat4 status_in(const Result& result) {
  if constexpr (requires { result.status; })
    return result.status;
  else if constexpr (requires { result.sa_status; })
    return result.sa_status;
  else if constexpr (requires { result.gxr_status; })
    return result.gxr_status;
  else if constexpr (requires { result.lxr_status; })
    return result.lxr_status;
  else if constexpr (requires { result.rp_status; })
    return result.rp_status;
  else if constexpr (requires { result.cnr_status; })
    return result.cnr_status;
  else
    return result.cr_status;
}

// The results of a COMPOUND that succeeded, or ended as expected.
class Reply {
 public:
  explicit Reply(std::vector<OpResult> results) : results_(std::move(results)) {}

  // Null when the COMPOUND ended before.
  template <class Result>
  Result* whatever(std::size_t place, Result& (OpResult::*arm)()) {
    return place < results_.size() ? &(results_[place].*arm)() : nullptr;
  }

  // Null when the operation's own status contradicts that of the COMPOUND.
  template <class Result>
  Result* get(std::size_t place, Result& (OpResult::*arm)()) {
    Result* const result = whatever(place, arm);
    return result != nullptr && status_in(*result) == v4::NFS4_OK ? result : nullptr;
  }

 private:
  std::vector<OpResult> results_;
};

}  // namespace stag::nfs::client::nfs4
