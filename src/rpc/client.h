// Client: calls the procedures of a program over any Channel. One call is one coroutine:
//
//   rpc::Client client(channel, kMyBinding, rpc::Credentials::sys("me", 0, 0));
//   rpc::CallResult<Greeting> result = co_await client.call<MYPROC_GREET>(args);
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
  std::span<const ResultBuffer>
      result_buffers;  // memory for results (rpc/message.h); outlives the call
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

  class AnyExchange;
  class NullExchange;
  template <xdr::Procedure P>
  class Exchange;

  // Calls procedure P and yields its results. A Reply with another RPC status than SUCCESS, a Reply
  // that cannot be decoded and a call without a Reply are CallErrors.
  template <xdr::Procedure P>
  Task<CallResult<typename P::Results>> call(const typename P::Args& args,
                                             CallOptions options = {}) {
    Exchange<P> exchange(*this, args, options);
    Result<ReplyMessage, CallError> reply = co_await exchange.send();
    co_return exchange.results(reply);
  }

  // Calls procedure 0, NULL, which every program has (RFC 5531 section 12).
  Task<CallResult<Ok>> ping(std::uint32_t program, std::uint32_t version, CallOptions options = {});

  Channel& channel() const { return *channel_; }
  const ClientOptions& options() const { return options_; }

 private:
  template <xdr::Procedure P>
  ReplyBound results_bound(const ProcedureBinding* binding, const typename P::Args& args) const {
    if (binding != nullptr && binding->reply_bound != nullptr) return binding->reply_bound(&args);
    const std::optional<std::uint32_t> max = P::max_results_size;
    ReplyBound bound;
    bound.payload_max = max ? *max : options_.unbounded_results_max;
    return bound;
  }

  Channel* channel_;
  Binding binding_;
  Credentials credentials_;
  ClientOptions options_;
};

// One call and its Reply, step by step. Refers to the Client and to the options.
class Client::AnyExchange {
 public:
  // Sends the Call and yields its Reply; called once.
  Task<Result<ReplyMessage, CallError>> send();

 protected:
  // Writes the header, unless that is left to a mechanism; arguments are to follow.
  AnyExchange(const Client& client, std::uint32_t program, std::uint32_t version,
              std::uint32_t procedure, const CallOptions& options);

  // Has `decode` read the results of a Reply; else yields the error.
  template <class Decode>
  std::optional<CallError> read(Result<ReplyMessage, CallError>& reply, Decode decode) const {
    if (!reply) return reply.error();
    xdr::Decoder decoder = decoder_of(*reply);
    if (std::optional<CallError> fault = header_fault(decoder)) return fault;
    if (decode(decoder) && decoder.finish().ok() && reply->items.all_taken()) return std::nullopt;
    return malformed(decoder);
  }
  void limit_results();

  const Client& client_;
  const CallOptions& options_;
  const ProcedureBinding* const binding_;
  xdr::Encoder encoder_;
  CallMessage message_;

 private:
  bool complete();
  static Task<Result<ReplyMessage, CallError>> unencodable(std::string where);
  xdr::Decoder decoder_of(ReplyMessage& reply) const;
  std::optional<CallError> header_fault(xdr::Decoder& decoder) const;
  CallError malformed(const xdr::Decoder& decoder) const;

  const Credentials& credentials_;
  std::optional<SecuredCall> secured_;  // where a mechanism writes the header
};

class Client::NullExchange : public AnyExchange {
 public:
  NullExchange(const Client& client, std::uint32_t program, std::uint32_t version,
               const CallOptions& options)
      : AnyExchange(client, program, version, 0, options) {}
  CallResult<Ok> results(Result<ReplyMessage, CallError>& reply) const {
    const auto fault = read(reply, [](xdr::Decoder&) { return true; });
    if (fault) return Failure{*fault};
    return Ok{};
  }
};

// The same of procedure P, for coroutines that go on with its results:
//
//   Client::Exchange<P> exchange(client, args, options);
//   Result<ReplyMessage, CallError> reply = co_await exchange.send();
//   CallResult<P::Results> results = exchange.results(reply);
template <xdr::Procedure P>
class Client::Exchange : public AnyExchange {
 public:
  // `args` and `options` live until send() has ended.
  Exchange(const Client& client, const typename P::Args& args, const CallOptions& options)
      : AnyExchange(client, P::program, P::version, P::number, options) {
    P::encode_args(encoder_, args);
    message_.reply = client.results_bound<P>(binding_, args);
    if (options.results_max) limit_results();
  }
  // Decodes the Reply that send() has yielded. Called before the caller suspends again, because the
  // Reply's bytes may be the transport's (ReplyMessage).
  CallResult<typename P::Results> results(Result<ReplyMessage, CallError>& reply) const {
    CallResult<typename P::Results> results(std::in_place);
    const auto fault =
        read(reply, [&results](xdr::Decoder& from) { return P::decode_results(from, *results); });
    if (fault) results = Failure{*fault};
    return results;
  }
};

}  // namespace stag::rpc
