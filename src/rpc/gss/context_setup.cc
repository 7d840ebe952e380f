#include "rpc/gss/context_setup.h"

#include <algorithm>
#include <array>

#include "rpc/secured_call.h"

namespace stag::rpc {
namespace {

using gss::Major;
using oncrpc::AuthFlavor;

constexpr int kMostRounds = 8;  // of tokens; Kerberos needs one
constexpr int kMostAttempts = 4;
constexpr Duration kDestroyTime = std::chrono::seconds(2);
// A token that was under way for longer may have become too old on the way: a second is the least
// that Kerberos can be told clocks may differ by. Clocks that do differ, and a ticket that has
// ended, are refused again at once.
constexpr Duration kFreshToken = std::chrono::seconds(1);

// A Call of procedure NULL, complete up to its arguments.
CallMessage control_message(Channel& channel, const oncrpc::CallHeader& of,
                            const gss::Credential& credential, const xdr::Stream& arguments) {
  std::array<std::byte, gss::credential_size(gss::kMaxHandle)> body;
  gss::encode_credential(credential, body);
  oncrpc::CallHeader header;
  header.xid = channel.next_xid();
  header.program = of.program;
  header.version = of.version;
  header.credential = {AuthFlavor::RPCSEC_GSS,
                       Bytes(body).first(gss::credential_size(
                           static_cast<std::uint32_t>(credential.handle.size())))};
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header);
  encoder.append(arguments);
  CallMessage message;
  message.xid = header.xid;
  message.stream = std::move(encoder).finish();
  message.reply.payload_max =
      oncrpc::kReplyHeaderSize + oncrpc::kMaxAuthBody + gss::kMaxHandle + gss::kMaxToken + 20;
  return message;
}

// The place of an error, for a CallError. Of commands, which have no log, nobody else is told the
// mechanism's own words, and these sentences have several causes.
std::string place_of(const gss::Error& error, std::string where) {
  const bool has_causes = error.reason == Reason::GssFailed || error.reason == Reason::GssNoTicket;
  if (has_causes && !error.detail.empty()) where += ": " + error.detail;
  return where;
}

// The state of a set-up.
class Setup {
 public:
  Setup(Channel& channel, gss::Initiator& initiator, const oncrpc::CallHeader& header,
        const CallMessage& message)
      : channel_(channel), initiator_(initiator), header_(header), message_(message) {}

  Task<Result<std::shared_ptr<ClientContext>, CallError>> run() {
    for (int round = 0; round < kMostRounds; ++round) {
      const gss::Step step = co_await next_step();
      const bool complete = step.major == Major::COMPLETE;
      if (!complete && step.major != Major::CONTINUE_NEEDED) co_return fail(step.error);
      if (server_complete_) co_return complete&& step.token.empty() ? established() : unexpected();
      if (step.token.empty()) co_return unexpected();
      const std::optional<CallError> failure = co_await exchange(step.token);
      if (failure) co_return Failure{*failure};
      if (complete) co_return server_complete_ ? established() : unexpected();
    }
    co_return unexpected();
  }

  // Whether it failed because a request was answered before, or was too late.
  bool repeated() const { return repeated_; }

 private:
  using Made = Result<std::shared_ptr<ClientContext>, CallError>;

  Failure<CallError> fail(const gss::Error& error) const {
    trace(error.reason, channel_.where(), error.detail);
    return Failure{CallError::transport(error.reason, place_of(error, channel_.where()))};
  }
  Made unexpected() const {
    return fail({Reason::GssFailed, "client and server disagree about what is complete"});
  }

  // The credential is looked for, a KDC asked, by a thread that may block.
  Task<gss::Step> next_step() {
    const auto work = [this]() -> gss::Step {
      if (made_->gss == nullptr) {
        auto begun = initiator_.begin();
        if (!begun) return gss::Step{.error = begun.error()};
        made_->gss = *std::move(begun);
      }
      return made_->gss->step(server_token_.bytes());
    };
    co_return co_await offloaded(channel_.loop(), work);
  }

  Task<std::optional<CallError>> exchange(const Buffer& token) {
    gss::Credential credential;
    credential.procedure =
        made_->handle.empty() ? gss::Procedure::INIT : gss::Procedure::CONTINUE_INIT;
    credential.handle = made_->handle.bytes();
    CallMessage message =
        control_message(channel_, header_, credential, gss::encode_init_arg(token.bytes()));
    message.deadline = message_.deadline;
    message.cancel = message_.cancel;
    const TimePoint made = channel_.loop().now();
    const Result<ReplyMessage, CallError> reply = co_await channel_.call(message);
    late_ = channel_.loop().now() - made > kFreshToken;
    if (!reply) co_return reply.error();
    co_return take(reply->payload);
  }

  std::optional<CallError> take(const Buffer& reply) {
    xdr::Decoder decoder(Buffer::borrow(reply.bytes()));
    const Result<oncrpc::ReplyHeader, Reason> header = oncrpc::decode_reply(decoder);
    if (!header) return CallError::malformed(header.error(), channel_.where());
    if (!header->status.success()) return CallError::answered(header->status, channel_.where());
    const auto results = gss::decode_init_res(reply.bytes().last(decoder.remaining()));
    if (!results) return CallError::malformed(Reason::RpcResultsMalformed, channel_.where());
    server_complete_ = results->major == Major::COMPLETE;
    if (!server_complete_ && results->major != Major::CONTINUE_NEEDED)
      return refused(initiator_.explain(results->major, results->minor));
    // RFC 2203 5.2.2: the handle does not change.
    const bool first = made_->handle.empty();
    if (results->handle.empty() ||
        (!first && !std::ranges::equal(results->handle, made_->handle.bytes())))
      return CallError::malformed(Reason::RpcResultsMalformed, channel_.where());
    const bool fits = made_->handle.assign(results->handle);
    const bool is_signed = header->verifier.flavor == AuthFlavor::RPCSEC_GSS;
    STAG_CHECK(fits);
    if (server_complete_ && !(is_signed && mic_.assign(header->verifier.body))) return unverified();
    server_token_ = Buffer::copy_of(results->token);
    made_->window = results->window;
    return std::nullopt;
  }

  CallError refused(const gss::Error& why) {
    const bool by_time =
        why.reason == Reason::GssClockSkew || why.reason == Reason::GssTicketExpired;
    repeated_ = why.repeated || (late_ && by_time);
    return repeated_ ? CallError::transport(why.reason, channel_.where()) : fail(why).error;
  }

  CallError unverified() const {
    trace(Reason::RpcReplyUnverified, channel_.where());
    return CallError::malformed(Reason::RpcReplyUnverified, channel_.where());
  }

  // RFC 2203 5.2.3.1: the verifier is the checksum of the window.
  Made established() {
    std::array<std::byte, 4> word;
    store_be(word.data(), made_->window);
    const Bytes window = word;
    if (made_->gss->verify_mic(gss::Pieces(&window, 1), mic_.bytes()) != Major::COMPLETE)
      return Failure{unverified()};
    made_->window = std::max(made_->window, 1u);
    constexpr std::uint32_t kNoEnd = 0xffffffff;
    if (made_->gss->lifetime() != kNoEnd)
      made_->expires = channel_.loop().now() + std::chrono::seconds(made_->gss->lifetime());
    return made_;
  }

  Channel& channel_;
  gss::Initiator& initiator_;
  const oncrpc::CallHeader& header_;
  const CallMessage& message_;
  const std::shared_ptr<ClientContext> made_ = std::make_shared<ClientContext>();
  Buffer server_token_;
  bool server_complete_ = false;
  bool repeated_ = false;
  bool late_ = false;  // the last token took long
  gss::Mic mic_;
};

// Protects the one Call that ends a context.
class Destroying final : public ClientSecurity, public ContextObserver {
 public:
  Destroying(std::shared_ptr<ClientContext> context, gss::Service service)
      : context_(std::move(context)), service_(service) {}
  std::uint32_t reply_overhead() const override { return gss::kMaxMic; }
  Task<Result<std::unique_ptr<CallSecurity>, CallError>> begin(Channel&, const oncrpc::CallHeader&,
                                                               const CallMessage&) override {
    co_return std::unique_ptr<CallSecurity>(
        std::make_unique<GssCall>(context_, service_, gss::Procedure::DESTROY, *this));
  }

 private:
  void on_call_ended() override {}

  const std::shared_ptr<ClientContext> context_;
  const gss::Service service_;
};

}  // namespace

Task<Result<std::shared_ptr<ClientContext>, CallError>> set_up_context(
    Channel& channel, gss::Initiator& initiator, const oncrpc::CallHeader& header,
    const CallMessage& message) {
  // A request that was sent again because its connection broke may have been answered before: its
  // token is then taken for a replay, or the set-up that it continues is over. So is one that a
  // server of ours had no time for. And a token has the time at which it was made, but waits for as
  // long as there is no connection.
  for (int attempt = 1;; ++attempt) {
    Setup setup(channel, initiator, header, message);
    auto made = co_await setup.run();
    if (!setup.repeated() || attempt == kMostAttempts) co_return made;
  }
}

Task<void> destroy_context(Channel& channel, std::shared_ptr<ClientContext> context,
                           oncrpc::CallHeader header, gss::Service service) {
  Destroying destroying(std::move(context), service);
  header.procedure = 0;
  SecuredCall call(destroying, header);
  CallMessage message;
  message.xid = channel.next_xid();
  message.reply.payload_max = oncrpc::kMaxErrorReplySize;
  message.deadline = channel.loop().now() + kDestroyTime;
  call.take(message);
  const auto answered = co_await call.call(channel, message);
  static_cast<void>(answered);
}

}  // namespace stag::rpc
