// Program: one version of one RPC program as a table of typed handlers.
//
//   rpc::Program program(NFS_PROGRAM, NFS_V3, nfs::ulb::kNfs3Binding);
//   program.add<NFSPROC3_GETATTR>([&](rpc::CallContext& call, GETATTR3args args)
//                                     -> Task<GETATTR3res> { ... });
//
// A handler is a coroutine on the connection's loop: Task<Results>(CallContext&, Args), or
// Task<Result<Results, CallRefusal>> when it may refuse. Several run at a time, on several loops.
// A handler that throws, whatever it throws and whenever, is answered with SYSTEM_ERR and traced
// (RpcHandlerFailed); a duplicate of a Call that must not run twice gets the same answer.
// Results go out by reference: their opaques own their bytes (owned Buffers) or borrow what
// outlives the Server. Procedure 0 answers itself unless a handler is added.
//
// A Program also says how repeated Calls are met (ReplayPolicy), and a procedure that has to see
// its Call before it is decoded is a Handler of its own.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/task.h"
#include "rpc/authenticator.h"
#include "rpc/binding.h"
#include "rpc/message.h"
#include "rpc/replay_cache.h"
#include "xdr/procedure.h"

namespace stag::rpc {

// How a handler declines: with an RPC status (GARBAGE_ARGS, SYSTEM_ERR, PROC_UNAVAIL, AUTH_ERROR)
// or, `drop` set, with silence.
struct CallRefusal {
  oncrpc::ReplyStatus status = oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::SYSTEM_ERR);
  bool drop = false;
};

// What a handler may know about its Call besides the arguments; lives until the handler ends.
class CallContext {
 public:
  // All of them outlive it.
  CallContext(const IncomingCall& call, const oncrpc::CallHeader& header,
              const Authentication& authentication)
      : call_(call), header_(header), authentication_(authentication) {}

  const Origin& origin() const { return *call_.origin; }
  Loop& loop() const { return *call_.origin->loop; }
  const Caller& caller() const { return authentication_.caller; }
  const oncrpc::CallHeader& header() const { return header_; }
  // The connection that the Call came on, which may be gone; null where the transport has none.
  const std::shared_ptr<Connection>& connection() const { return call_.origin->connection; }
  // Calls to the client on this connection; null when it is gone or has no reverse direction. Held,
  // it keeps the Channel object, not the connection.
  std::shared_ptr<Channel> reverse_channel() const { return call_.origin->reverse.lock(); }
  // Bytes of the longest results that can be brought back, without the data that Write chunks take.
  // Results beyond that reach nobody: the transport answers with an error of its own.
  std::uint64_t results_max() const;
  // Names this Call among all that a ReplayCache may meet, and repetitions of it alike.
  ReplayKey replay_key() const;

 private:
  friend class Server;

  const IncomingCall& call_;
  const oncrpc::CallHeader& header_;
  const Authentication& authentication_;
  const Buffer* unwrapped_ = nullptr;  // the arguments, where they travelled in another form
};

// What a procedure did with its Call.
struct Outcome {
  oncrpc::ReplyStatus status{};
  bool drop = false;
  bool encoded = false;  // the results are in the encoder
};

// One procedure, type-erased.
class Handler {
 public:
  virtual ~Handler() = default;
  // Decodes the arguments, runs, and encodes the results; on any other outcome, what was encoded is
  // thrown away.
  virtual Task<Outcome> run(CallContext& context, xdr::Decoder& arguments,
                            const ReducedItems& items, xdr::Encoder& results) = 0;
  // The same without a coroutine, of a procedure that needs neither arguments nor waiting; false,
  // and nothing done, where it is none. Never asked of one that must not run twice.
  virtual bool run_at_once(CallContext&, const ReducedItems&, xdr::Encoder&, Outcome&) {
    return false;
  }
  // Bytes of the largest results to these arguments, where that is known; else 0.
  virtual std::uint64_t results_max(xdr::Decoder&, const ProcedureBinding*) const { return 0; }
};

namespace detail {
template <class T>
struct HandlerValue;
template <class T>
struct HandlerValue<Task<T>> {
  using Type = T;
};
bool arguments_complete(xdr::Decoder& arguments, const ReducedItems& items);

template <xdr::Procedure P, class F>
class TypedHandler final : public Handler {
 public:
  explicit TypedHandler(F function) : function_(std::move(function)) {}

  Task<Outcome> run(CallContext& context, xdr::Decoder& arguments, const ReducedItems& items,
                    xdr::Encoder& results) override {
    typename P::Args args{};
    if (!P::decode_args(arguments, args) || !arguments_complete(arguments, items))
      co_return Outcome{oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS)};
    using Value =
        typename HandlerValue<std::invoke_result_t<F&, CallContext&, typename P::Args>>::Type;
    Value value = co_await function_(context, std::move(args));
    if constexpr (std::is_same_v<Value, typename P::Results>) {
      P::encode_results(results, value);
    } else {
      if (!value.ok()) co_return Outcome{value.error().status, value.error().drop};
      P::encode_results(results, *value);
    }
    co_return Outcome{.status = {}, .drop = false, .encoded = true};
  }

  std::uint64_t results_max(xdr::Decoder& arguments,
                            const ProcedureBinding* binding) const override {
    if (binding == nullptr || binding->reply_bound == nullptr)
      return P::max_results_size.value_or(0);
    typename P::Args args{};
    return P::decode_args(arguments, args) ? binding->reply_bound(&args).total_max() : 0;
  }

 private:
  F function_;
};
}  // namespace detail

// Who sees to it that a repeated Call of a procedure which must not run twice does not.
enum class ReplayPolicy : std::uint8_t {
  // The Server's replay cache, for procedures whose binding says so (ProcedureBinding::once_only).
  PerProcedure,
  // Nobody: every Call runs.
  None,
  // The program, by what its Calls say (as NFSv4's sessions do) or by a ReplayCache of its own and
  // CallContext::replay_key(). The results it kept go out like new ones.
  OwnedByProgram,
};

class Program {
 public:
  Program(std::uint32_t program, std::uint32_t version, Binding binding = {});

  // The handler lives as long as the Program and may be called from several loops at once.
  template <xdr::Procedure P, class F>
  Program& add(F function) {
    STAG_CHECK(P::program == program_ && P::version == version_);
    return add(P::number, std::make_unique<detail::TypedHandler<P, F>>(std::move(function)));
  }
  // The same for a Handler that decodes and encodes itself.
  Program& add(std::uint32_t procedure, std::unique_ptr<Handler> handler);

  // The program is not there for Calls that come this way (RFC 8267 5.1: MOUNT is not on RDMA); may
  // be said of several transports.
  Program& absent_from(TransportKind transport) {
    absent_from_ |= bit(transport);
    return *this;
  }
  bool present_on(TransportKind transport) const { return (absent_from_ & bit(transport)) == 0; }

  Program& replays(ReplayPolicy policy) {
    replay_policy_ = policy;
    return *this;
  }
  ReplayPolicy replay_policy() const { return replay_policy_; }

  std::uint32_t program() const { return program_; }
  std::uint32_t version() const { return version_; }

  struct Entry {
    std::unique_ptr<Handler> handler;
    const ProcedureBinding* binding = nullptr;  // null: the default one
  };
  // Null when there is no such procedure.
  const Entry* find(std::uint32_t procedure) const;

 private:
  static std::uint32_t bit(TransportKind transport) {
    return 1u << static_cast<std::uint32_t>(transport);
  }

  std::uint32_t program_;
  std::uint32_t version_;
  Binding binding_;
  std::uint32_t absent_from_ = 0;  // bits
  ReplayPolicy replay_policy_ = ReplayPolicy::PerProcedure;
  std::vector<Entry> entries_;
};

}  // namespace stag::rpc
