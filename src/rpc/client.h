// Client: calls the procedures of a program over any Channel. One call is one coroutine:
//
//   rpc::Client client(channel, nfs::ulb::kNfs3Binding, rpc::Credentials::sys("me", 0, 0));
//   rpc::Result<READ3res> result = co_await client.call<NFSPROC3_READ>(args);
//
// Thread: the Channel's loop. Ownership: a Client is a small value that refers to its Channel,
// which outlives it; copies are cheap. `args` and all that its opaques borrow live until the call
// has returned, as a temporary in the co_await expression does.
#pragma once

#include <optional>
#include <span>

#include "rpc/binding.h"
#include "rpc/call_error.h"
#include "rpc/channel.h"
#include "rpc/credentials.h"
#include "rpc/secured_call.h"
#include "xdr/procedure.h"

namespace stag::rpc {

template <class T>
using CallResult = Result<T, CallError>;

struct CallOptions {
  std::optional<Duration> timeout;  // nullopt: that of the Client; zero: waits for ever
  CancelToken cancel;
  std::span<const ResultBuffer> sinks;  // memory for results (rpc/message.h); outlives the call
  const Credentials* credentials = nullptr;  // null: those of the Client; else outlives the call
  // Bytes of the largest results that the Reply must be able to carry, where the caller knows
  // better than the Binding.
  std::optional<std::uint32_t> results_max{};
};

struct ClientOptions {
  Duration timeout = std::chrono::seconds(60);  // of one call; zero: waits for ever
  // Bytes of the results of procedures that have a bound neither in the Binding nor in the .x file.
  std::uint32_t unbounded_results_max = 64 << 10;
};

// After a call with a ResultBuffer for `to`: makes `to` begin with `data`; copies only when the
// transport did not place the data there. data.size() <= to.size().
void copy_into(const Rope& data, MutableBytes to);

class Client {
 public:
  explicit Client(Channel& channel, Binding binding = {}, Credentials credentials = {},
                  ClientOptions options = {})
      : channel_(&channel),
        binding_(binding),
        credentials_(std::move(credentials)),
        options_(options) {}

  // Calls procedure P and yields its results. A Reply with another RPC status than SUCCESS, a Reply
  // that cannot be decoded and a call without a Reply are CallErrors.
  template <xdr::Procedure P>
  Task<CallResult<typename P::Results>> call(const typename P::Args& args,
                                             CallOptions options = {}) {
    const ProcedureBinding* binding = binding_.find(P::program, P::version, P::number);
    Outgoing out(P::program, P::version, P::number, binding, *this, options);
    P::encode_args(out.encoder, args);
    out.bound = results_bound<P>(binding, args);
    if (options.results_max) limit(out.bound, *options.results_max);
    if (!prepare(out)) co_return Failure{unencodable()};
    Result<ReplyMessage, CallError> reply = co_await send(out);
    if (!reply) co_return Failure{reply.error()};
    Incoming in(*this, out, *reply);
    typename P::Results results{};
    if (!in.open() || !P::decode_results(in.decoder, results) || !in.close())
      co_return Failure{in.error()};
    co_return results;
  }

  // Calls procedure 0, NULL, which every program has (RFC 5531 section 12).
  Task<CallResult<Ok>> ping(std::uint32_t program, std::uint32_t version, CallOptions options = {});

  Channel& channel() const { return *channel_; }
  const ClientOptions& options() const { return options_; }

 private:
  // A Call under construction: header written, unless that is left to a mechanism; arguments to
  // follow.
  struct Outgoing {
    Outgoing(std::uint32_t program, std::uint32_t version, std::uint32_t procedure,
             const ProcedureBinding* binding, Client& client, const CallOptions& options);
    bool transforms() const { return security != nullptr && security->transforms(); }

    const ProcedureBinding* binding;
    const CallOptions& options;
    ClientSecurity* security;  // null: the encoder begins with the header
    CallMessage message;
    xdr::Encoder encoder;
    ReplyBound bound;
    std::optional<SecuredCall> secured;
  };
  // A Reply under inspection.
  struct Incoming {
    Incoming(Client& client, const Outgoing& out, ReplyMessage& reply);
    bool open();
    bool close();
    CallError error() const;

    Client& client;
    ReplyMessage& reply;
    bool plain;  // the header was read before: here are only results
    xdr::Decoder decoder;
    std::optional<CallError> fault;
  };

  template <xdr::Procedure P>
  ReplyBound results_bound(const ProcedureBinding* binding, const typename P::Args& args) const {
    if (binding != nullptr && binding->reply_bound != nullptr) return binding->reply_bound(&args);
    const std::optional<std::uint32_t> max = P::max_results_size;
    ReplyBound bound;
    bound.payload_max = max ? *max : options_.unbounded_results_max;
    return bound;
  }
  static void limit(ReplyBound& bound, std::uint32_t results_max);
  // Completes the message. False when the arguments break a bound of their type.
  bool prepare(Outgoing& out) const;
  Task<Result<ReplyMessage, CallError>> send(Outgoing& out) {
    return out.secured ? out.secured->call(*channel_, out.message) : channel_->call(out.message);
  }
  CallError unencodable() const;

  Channel* channel_;
  Binding binding_;
  Credentials credentials_;
  ClientOptions options_;
};

}  // namespace stag::rpc
