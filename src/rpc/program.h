// Program: one version of one RPC program as a table of typed handlers.
//
//   rpc::Program program(NFS_PROGRAM, NFS_V3, kNfs3Binding);
//   program.add<NFSPROC3_GETATTR>([&](rpc::CallContext& call, GETATTR3args args)
//                                     -> Task<GETATTR3res> { ... });
//
// A handler is a coroutine: Task<Results>(CallContext&, Args), or
// Task<Result<Results, CallRefusal>> when it may refuse the Call; one that can mostly answer at
// once yields an Eventual of these. Procedure 0 (NULL) is answered without a handler unless one is
// added.
//
// Thread: a handler runs on the loop of the Call's connection; several run at a time, on several
// loops. Ownership: results leave by reference, so their opaques own their bytes (owned Buffers) or
// borrow bytes that outlive the Server. Errors: an exception of a handler is answered with
// SYSTEM_ERR and traced as RpcHandlerFailed; a duplicate of a Call that must not run twice gets the
// same answer.
//
// A Program also states how repeated Calls are treated (ReplayPolicy). A procedure that must see
// its Call before the arguments are decoded implements Handler itself.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/eventual.h"
#include "base/worker_time.h"
#include "rpc/authenticator.h"
#include "rpc/binding.h"
#include "rpc/message.h"
#include "rpc/replay_cache.h"
#include "xdr/procedure.h"

namespace stag::rpc {

// How a handler refuses a Call: with an RPC status (GARBAGE_ARGS, SYSTEM_ERR, PROC_UNAVAIL,
// AUTH_ERROR; RFC 5531 section 9) or, when `drop` is set, without any Reply.
struct CallRefusal {
  oncrpc::ReplyStatus status = oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::SYSTEM_ERR);
  bool drop = false;
};

// What a handler may know about its Call besides the arguments. Lives until the handler ends; the
// Server makes it. Thread: the Call's loop.
class CallContext {
 public:
  // The arguments outlive the CallContext.
  CallContext(const IncomingCall& call, const oncrpc::CallHeader& header,
              const Authentication& authentication)
      : call_(call), header_(header), authentication_(authentication) {}
  CallContext(const CallContext&) = delete;
  CallContext& operator=(const CallContext&) = delete;
  ~CallContext() {
    if (end_kept_ != nullptr) end_kept_(kept_);
  }

  // Peer, transport and connection of the Call.
  const Origin& origin() const { return *call_.origin; }
  Loop& loop() const { return *call_.origin->loop; }
  // The authenticated caller.
  const Caller& caller() const { return authentication_.caller; }
  const oncrpc::CallHeader& header() const { return header_; }
  // The connection that the Call came on, which may be down by now; null where the transport has no
  // connections (UDP).
  const std::shared_ptr<Connection>& connection() const { return call_.origin->connection; }
  // The Channel for calls to the client on this connection (RFC 8167); null when the connection is
  // down or has no reverse direction. The pointer keeps the Channel object alive, not the
  // connection.
  std::shared_ptr<Channel> reverse_channel() const { return call_.origin->reverse.lock(); }
  // Bytes of the longest results that the Reply can carry, without the data that Write chunks take.
  // The transport answers a Call whose results are longer with an error of its own.
  std::uint64_t results_max() const;
  // So many eligible items of the results may travel without the Reply, in Write chunks.
  std::uint32_t write_chunks() const;
  // Bytes of an accepted Reply beside its results: the RPC header with the verifier, and what the
  // protection of the Call adds.
  std::uint32_t reply_header_size() const;
  // Bytes of the whole Call, as a record of TCP would have it: RPC header, credential, verifier and
  // protection count, and arguments count that came in Read chunks.
  std::uint64_t call_size() const;
  // Whether Handler::place() could give memory for the arguments before they came.
  bool placement_asked() const { return call_.placement_asked; }
  // The key of this Call in a ReplayCache: the same for every transmission of the Call, different
  // for every other Call.
  ReplayKey replay_key() const;
  // What its jobs waited and took; null: nobody follows the Call. It lives as long as this object.
  WorkerTime* worker_time() const { return worker_time_; }

  // Makes a T that lives as long as this object, for what a handler that is no coroutine refers to
  // while it waits. One a Call.
  template <class T, class... Arguments>
  T& keep(Arguments&&... arguments) {
    static_assert(sizeof(T) <= kRoomToKeep && alignof(T) <= alignof(std::max_align_t));
    STAG_CHECK(end_kept_ == nullptr);
    T* const made = new (kept_) T(std::forward<Arguments>(arguments)...);
    end_kept_ = [](void* kept) { static_cast<T*>(kept)->~T(); };
    return *made;
  }

 private:
  friend class Server;
  static constexpr std::size_t kRoomToKeep = 640;

  const IncomingCall& call_;
  const oncrpc::CallHeader& header_;
  const Authentication& authentication_;
  const Buffer* unwrapped_ = nullptr;  // the plain arguments, if a Protection has unwrapped them
  WorkerTime* worker_time_ = nullptr;
  void (*end_kept_)(void*) = nullptr;  // null: nothing is kept
  alignas(std::max_align_t) std::byte kept_[kRoomToKeep];
};

// What a Handler has done with its Call.
struct HandlerOutcome {
  oncrpc::ReplyStatus status{};  // of the Reply
  bool drop = false;             // there is no Reply
  bool encoded = false;          // the results stand in the encoder; else there are none
};

// One procedure, type-erased. Thread: any loop, several Calls at a time.
class Handler {
 public:
  virtual ~Handler() = default;
  // Decodes the arguments, runs the procedure, and encodes the results. `items` has the arguments
  // that came in chunks. Unless the outcome says `encoded`, the Server discards what was encoded.
  virtual Eventual<HandlerOutcome> run(CallContext& context, xdr::Decoder& arguments,
                                       const ReducedItems& items, xdr::Encoder& results) = 0;
  // Bytes of the largest results to these arguments; nullopt when that is not known.
  virtual std::optional<std::uint64_t> results_max(xdr::Decoder&, const ProcedureBinding*) const {
    return std::nullopt;
  }
  // Whether place() ever gives any memory.
  virtual bool places() const { return false; }
  // Memory for an argument that is to be fetched by RDMA Read (Service::place). `arguments` is the
  // stream without it, from the first argument on. Called once for a Call at most, before run(),
  // which need not follow, on the loop of the Call's connection; the caller is not authenticated
  // yet. An exception is like no memory.
  virtual Buffer place(xdr::Decoder& /*arguments*/, std::uint32_t /*position*/,
                       std::uint32_t /*length*/) {
    return {};
  }
};

// A Program has a table of its procedures: their numbers are below this.
inline constexpr std::uint32_t kProcedureNumbers = 4096;

// A procedure that a Server may have. Clients may call any.
template <class P>
concept ServableProcedure = xdr::Procedure<P> && P::number < kProcedureNumbers;

namespace detail {
bool arguments_complete(xdr::Decoder& arguments, const ReducedItems& items);

template <xdr::Procedure P, class F>
class TypedHandler final : public Handler {
 public:
  explicit TypedHandler(F function) : function_(std::move(function)) {}

  Eventual<HandlerOutcome> run(CallContext& context, xdr::Decoder& arguments,
                               const ReducedItems& items, xdr::Encoder& results) override {
    typename P::Args args{};
    if (!P::decode_args(arguments, args) || !arguments_complete(arguments, items))
      return HandlerOutcome{oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS)};
    return encoded(function_(context, std::move(args)), results);
  }

  std::optional<std::uint64_t> results_max(xdr::Decoder& arguments,
                                           const ProcedureBinding* binding) const override {
    if (binding == nullptr || binding->reply_bound == nullptr) return P::max_results_size;
    typename P::Args args{};
    return P::decode_args(arguments, args) ? binding->reply_bound(&args).total_max() : 0;
  }

 private:
  template <class Value>
  static Eventual<HandlerOutcome> encoded(Task<Value> value, xdr::Encoder& results) {
    using Encode = HandlerOutcome (*)(const Value&, xdr::Encoder&);
    return Eventual<HandlerOutcome>::converted<Encode(encode)>(std::move(value), results);
  }
  template <class Value>
  static Eventual<HandlerOutcome> encoded(Eventual<Value> value, xdr::Encoder& results) {
    if (value.ready()) return encode(value.value(), results);
    return encode_later(std::move(value), results);
  }
  static HandlerOutcome encode(const typename P::Results& value, xdr::Encoder& results) {
    P::encode_results(results, value);
    return {.status = {}, .drop = false, .encoded = true};
  }
  static HandlerOutcome encode(const Result<typename P::Results, CallRefusal>& value,
                               xdr::Encoder& results) {
    if (!value.ok()) return {value.error().status, value.error().drop};
    return encode(*value, results);
  }
  template <class Value>
  static Task<HandlerOutcome> encode_later(Eventual<Value> value, xdr::Encoder& results) {
    co_return encode(co_await std::move(value), results);
  }

  F function_;
};
}  // namespace detail

// What keeps a retransmitted Call from running a second time (RFC 1813 section 4.5).
enum class ReplayPolicy : std::uint8_t {
  // The Server's replay cache, for procedures whose binding says so (ProcedureBinding::once_only).
  PerProcedure,
  // Nothing: every Call runs.
  None,
  // The program: by arguments of its Calls (as NFSv4.1 sessions do), or by a ReplayCache of its own
  // and CallContext::replay_key(). Results that it kept are sent as new results are.
  OwnedByProgram,
};

// Filled before the Server that takes it over begins to serve; read-only afterwards.
class Program {
 public:
  // `binding` refers to a table that outlives the Program.
  Program(std::uint32_t program, std::uint32_t version, Binding binding = {});

  // Adds the handler of procedure P. `function` lives as long as the Program and may be called from
  // several loops at once. One handler a procedure.
  template <ServableProcedure P, class F>
  Program& add(F function) {
    STAG_CHECK(P::program == program_ && P::version == version_);
    return add(P::number, std::make_unique<detail::TypedHandler<P, F>>(std::move(function)));
  }
  // The same for a Handler that decodes and encodes itself; `procedure` is below kProcedureNumbers.
  Program& add(std::uint32_t procedure, std::unique_ptr<Handler> handler);

  // Calls that come by `transport` are answered as if the program did not exist (RFC 8267 section
  // 5.1: MOUNT is not offered on RDMA). May be called for several transports.
  Program& absent_from(TransportKind transport) {
    absent_from_ |= bit(transport);
    return *this;
  }
  bool present_on(TransportKind transport) const { return (absent_from_ & bit(transport)) == 0; }

  // PerProcedure unless set.
  Program& replays(ReplayPolicy policy) {
    replay_policy_ = policy;
    return *this;
  }
  ReplayPolicy replay_policy() const { return replay_policy_; }
  // Whether any of the handlers does (Handler::places).
  bool places() const { return places_; }

  std::uint32_t program() const { return program_; }
  std::uint32_t version() const { return version_; }

  struct Entry {
    std::unique_ptr<Handler> handler;
    const ProcedureBinding* binding = nullptr;  // null: the default binding (rpc/binding.h)
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
  bool places_ = false;
  std::vector<Entry> entries_;
};

}  // namespace stag::rpc
