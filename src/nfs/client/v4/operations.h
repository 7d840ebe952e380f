// COMPOUNDs in the making, and their results by operation; included by .cc files of this folder.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/inline_vector.h"
#include "nfs/client/protocol/types.h"
#include "nfs/client/v4/attributes.h"
#include "nfs/proto/nfs4.h"
#include "nfs/session/opens.h"
#include "rpc/message.h"

namespace stag::nfs::client::nfs4 {

using Op = v4::nfs_argop4;
using OpResult = v4::nfs_resop4;

inline v4::nfs_fh4 to_nfs_fh4(const Handle& handle) {
  return v4::nfs_fh4(handle.bytes());
}

// One COMPOUND, and what came of it when it was sent last. Its operations have the places from 1
// on: place 0 is that of the SEQUENCE that a session puts in front, and empty without one.
//
// Nearly every COMPOUND has PUTFH, and GETATTR, READ or WRITE: these are no Op, which has room for
// the arguments of any operation, and their results are no OpResult.
class Request {
 public:
  // Add an operation and return its place.
  std::size_t add(v4::nfs_opnum4 number) {
    copies_ = copies_ || number == v4::OP_COPY;
    changes_names_ = changes_names_ || number == v4::OP_REMOVE || number == v4::OP_RENAME;
    operations_.emplace_back(std::in_place_type<AnyOperation>, number);
    return operations_.size();
  }
  template <class Args>
  std::size_t add(v4::nfs_opnum4 number, Args& (Op::*arguments)(),
                  std::type_identity_t<Args> value) {
    const std::size_t place = add(number);
    (operation(place).*arguments)() = std::move(value);
    return place;
  }
  // PUTFH.
  void put_handle(const Handle& handle) {
    operations_.emplace_back(std::in_place_type<Handle>, handle);
  }
  void put_handle(const v4::nfs_fh4& handle) { put_handle(*Handle::from(handle.bytes())); }
  // GETATTR, whose results are read to `to`. Both outlive the Request, wherever that moves.
  void add_getattr(const AskedAttributes& asked, Values& to) {
    to.forget();
    operations_.emplace_back(std::in_place_type<Getattr>, Getattr{&asked, &to});
  }
  std::size_t add_read(std::uint64_t offset, std::size_t count, const v4::stateid4& by = {}) {
    operations_.emplace_back(std::in_place_type<Read>,
                             v4::READ4args{by, offset, static_cast<std::uint32_t>(count)});
    return operations_.size();
  }
  std::size_t add_write(std::uint64_t offset, Rope data, v4::stable_how4 stable) {
    writes_ = true;
    operations_.emplace_back(std::in_place_type<Write>,
                             v4::WRITE4args{{}, offset, stable, std::move(data)});
    return operations_.size();
  }

  // It must not run twice: the server keeps its results for a retransmission. It changes files,
  // or nothing but state.
  Request& once_only(bool changes = true) {
    once_only_ = true;
    changes_ = changes;
    return *this;
  }

  // The operation at `place`, and those before it, are all that it is sent for: once they are done
  // it must not run again, whatever those behind say, which only ask what came of it.
  void done_with(std::size_t place) { done_with_ = place; }
  // So it was, and another one behind failed.
  bool is_done() const {
    return status_ != v4::NFS4_OK && done_with_ != 0 && done_with_ + 1 < answered_;
  }

  // An OPEN, whose owner and number the session fills in; at most one. `owner`: the open is held by
  // this name; else it is closed at once, and has a name of its own.
  std::size_t add_open(v4::OPEN4args args, std::optional<session::Opens::Id> owner = std::nullopt) {
    open_place_ = add(v4::OP_OPEN, &Op::opopen, std::move(args));
    open_owner_ = owner;
    return *open_place_;
  }
  // What its OPEN gives is held, by `opener`, which outlives this; null: nothing is held.
  void hold_open(const std::shared_ptr<const session::Opener>& opener) { opener_ = &opener; }
  const std::shared_ptr<const session::Opener>* opener() const { return opener_; }
  // The operation at `place` is by an open that is held, or by locks of `owner` under it: the
  // session fills in their stateid; at most one, or several READs, of which `place` is the first
  // and which end the COMPOUND. `lock`: what LOCK or LOCKU makes of them.
  struct ByOpen {
    std::size_t place = 0;
    session::Opens::Id open = 0;
    session::Opens::LockOwner owner{};
    session::Opens::Lock lock{};
  };
  void set_by(ByOpen by) { by_open_ = std::move(by); }
  const std::optional<ByOpen>& by_open() const { return by_open_; }
  // It asks once more for what was granted to a call that was given up. Where this one is given up
  // as well, another one asks (taking_back.cc). `incarnation`: that of the server that granted it.
  void ask_again(std::uint32_t incarnation) { granted_by_ = incarnation; }
  std::optional<std::uint32_t> granted_by() const { return granted_by_; }
  void pass_on() { passed_on_ = true; }
  bool passed_on() const { return passed_on_; }
  // Whether it makes, tests or ends an open or a lock of its own accord, but for CLOSE.
  bool opens_or_locks() const {
    if (!by_open_) return open_place_.has_value();
    const v4::nfs_opnum4 what = number(by_open_->place);
    return what == v4::OP_LOCK || what == v4::OP_LOCKT || what == v4::OP_LOCKU;
  }
  // A status that is an answer, and no failure.
  void expect(v4::nfsstat4 status) { expected_ = status; }
  bool expects(v4::nfsstat4 status) const { return status == v4::NFS4_OK || status == expected_; }

  // Whether it may change attributes of a file: a WRITE, or what must not run
  // twice, but for opens and locks of what is there.
  bool changes_files() const {
    if (by_open_) return writes_ || (changes_ && changes_data(number(by_open_->place)));
    if (open_place_) return operation(*open_place_).opopen().openhow.opentype == v4::OPEN4_CREATE;
    return changes_ || writes_ || copies_;
  }
  bool writes() const { return writes_; }
  // Whether a file may have another name behind it, or none.
  bool changes_names() const { return changes_names_; }

  // The one at `place`, which is none of those that are no Op.
  Op& operation(std::size_t place) { return std::get<AnyOperation>(operations_[place - 1]).op; }
  const Op& operation(std::size_t place) const {
    return std::get<AnyOperation>(operations_[place - 1]).op;
  }
  // The stateid of what reads or changes data at `place`; null: another operation is there.
  v4::stateid4* data_stateid(std::size_t place) {
    Operation& there = operations_[place - 1];
    if (Read* const read = std::get_if<Read>(&there)) return &read->args.stateid;
    if (Write* const write = std::get_if<Write>(&there)) return &write->args.stateid;
    AnyOperation* const any = std::get_if<AnyOperation>(&there);
    return any != nullptr && changes_data(any->op.argop) ? &stateid_of_change(any->op) : nullptr;
  }
  v4::nfs_opnum4 number(std::size_t place) const { return number_of(operations_[place - 1]); }
  // The place of the last one.
  std::size_t size() const { return operations_.size(); }
  // Calls `use` with the Handle of every PUTFH.
  template <class Use>
  void for_each_handle(Use use) const {
    for (const Operation& each : operations_)
      if (const Handle* const handle = std::get_if<Handle>(&each)) use(*handle);
  }
  std::optional<std::size_t> open_place() const { return open_place_; }
  std::optional<session::Opens::Id> open_owner() const { return open_owner_; }
  bool runs_once_only() const { return once_only_; }

  std::span<const rpc::ResultBuffer> result_buffers{};
  // Bytes of results that are provided for, where the caller knows better than the binding.
  std::optional<std::uint32_t> results_max{};

  // On the wire (operations.cc). `sequence`: what stands in front; null: nothing. `bound`, which is
  // empty, becomes that of the Reply.
  void encode(xdr::Encoder& to, rpc::ReplyBound& bound, std::uint32_t minor,
              const v4::SEQUENCE4args* sequence) const;
  // Takes the place of the results before.
  bool decode_results(xdr::Decoder& from, bool with_sequence);

  // RFC 8881 16.2.3: whether the results that came are those of the operations, in their order, up
  // to the first error.
  bool answered_in_order() const { return in_order_; }
  v4::nfsstat4 status() const { return status_; }
  // The first place that has no results.
  std::size_t answered() const { return answered_; }
  // Null when there is none.
  const v4::SEQUENCE4res* sequence_result() const { return sequenced_ ? &sequence_ : nullptr; }
  // What came of operation(place); null when the COMPOUND ended before, or the server does not know
  // this operation.
  OpResult* result(std::size_t place);
  // The same of a READ or WRITE; null where it did not succeed, too.
  v4::READ4resok* read(std::size_t place) { return data_results<Read>(place); }
  v4::WRITE4resok* written(std::size_t place) { return data_results<Write>(place); }

 private:
  // Constructors of their own keep g++ from filling unions with zeros first.
  struct AnyOperation {
    explicit AnyOperation(v4::nfs_opnum4 number) { op.argop = number; }
    Op op;
  };
  struct Getattr {
    const AskedAttributes* asked;
    Values* to;
  };
  template <class Args, class Resok>
  struct Data {
    explicit Data(Args&& asked) : args(std::move(asked)) {}
    Args args;
    bool done = false;
    Resok results;  // if so
  };
  using Read = Data<v4::READ4args, v4::READ4resok>;
  using Write = Data<v4::WRITE4args, v4::WRITE4resok>;
  using Operation = std::variant<AnyOperation, Handle, Getattr, Read, Write>;
  struct Result {
    explicit Result(std::size_t at) : place(at) {}
    std::size_t place;
    OpResult value;
  };

  template <class Which>
  decltype(Which::results)* data_results(std::size_t place) {
    Which* const data = std::get_if<Which>(&operations_[place - 1]);
    return data != nullptr && data->done ? &data->results : nullptr;
  }
  // Beside WRITE.
  static bool changes_data(v4::nfs_opnum4 number) {
    return number == v4::OP_SETATTR || number == v4::OP_ALLOCATE || number == v4::OP_DEALLOCATE ||
           number == v4::OP_CLONE || number == v4::OP_COPY;
  }
  static v4::stateid4& stateid_of_change(Op& operation);
  void forget_results();
  static v4::nfs_opnum4 number_of(const Operation& operation);
  bool decode_sequence_result(xdr::Decoder& from);
  bool decode_result(xdr::Decoder& from, std::size_t place);
  bool is_of(std::uint32_t asked, std::uint32_t number);

  InlineVector<Operation, 2> operations_;  // with room for those of a GETATTR, READ or WRITE
  std::optional<std::size_t> open_place_;
  std::optional<session::Opens::Id> open_owner_;
  const std::shared_ptr<const session::Opener>* opener_ = nullptr;
  std::optional<ByOpen> by_open_;
  v4::nfsstat4 expected_ = v4::NFS4_OK;
  bool once_only_ = false;
  bool changes_ = false;
  bool writes_ = false;
  bool copies_ = false;
  bool changes_names_ = false;
  std::size_t done_with_ = 0;  // 0: with all
  std::optional<std::uint32_t> granted_by_{};
  bool passed_on_ = false;

  bool read_ = false;  // results, at least once
  v4::nfsstat4 status_ = v4::NFS4_OK;
  bool in_order_ = false;
  bool sequenced_ = false;
  std::size_t answered_ = 0;
  v4::SEQUENCE4res sequence_;
  InlineVector<Result, 1> results_;  // those of AnyOperation
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

// The results of a COMPOUND that succeeded, ended as expected, or was done. They are in its
// Request.
class Reply {
 public:
  explicit Reply(Request& request) : request_(&request) {}

  // Null when the COMPOUND ended before.
  template <class Result>
  Result* whatever(std::size_t place, Result& (OpResult::*arm)()) {
    OpResult* const result = request_->result(place);
    return result != nullptr ? &(result->*arm)() : nullptr;
  }

  // Null when the operation's own status contradicts that of the COMPOUND.
  template <class Result>
  Result* get(std::size_t place, Result& (OpResult::*arm)()) {
    Result* const result = whatever(place, arm);
    return result != nullptr && status_in(*result) == v4::NFS4_OK ? result : nullptr;
  }
  v4::READ4resok* read(std::size_t place) { return request_->read(place); }
  v4::WRITE4resok* written(std::size_t place) { return request_->written(place); }

 private:
  Request* request_;
};

}  // namespace stag::nfs::client::nfs4
