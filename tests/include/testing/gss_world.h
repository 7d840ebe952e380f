// A server and a client of the store program with RPCSEC_GSS between them, by the fake mechanism,
// without a transport; and messages of a client that keeps no rules.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gss/credential.h"
#include "gss/protect.h"
#include "rpc/client.h"
#include "rpc/gss/authenticator.h"
#include "rpc/gss/rpcsec_gss.h"
#include "rpc/server.h"
#include "testing/direct_channel.h"
#include "testing/fake_mechanism.h"
#include "testing/manual_loop.h"
#include "testing/store_service.h"

namespace stag::testing {

struct WhoCalls : store::REVERSE {
  static constexpr std::uint32_t program = 0x20000079;
};

// The server's side, for any transport.
struct GssServerWorld {
  explicit GssServerWorld(rpc::GssServerOptions options = {}) {
    if (options.acceptor == nullptr) options.acceptor = std::make_shared<FakeAcceptor>(realm);
    auto made = std::make_unique<rpc::GssAuthenticator>(std::move(options));
    authenticator = made.get();
    server.add(std::move(made));
    server.add(store::make_program(state));
    server.add<WhoCalls>([](rpc::CallContext& call, std::string) -> Task<std::string> {
      const rpc::Caller& who = call.caller();
      co_return (who.name == nullptr ? "nobody" : *who.name) + " " +
          std::to_string(static_cast<std::uint32_t>(who.flavor)) + " " + std::to_string(who.uid) +
          " " + std::to_string(who.gids.size());
    });
  }
  std::shared_ptr<rpc::ClientSecurity> security(gss::Service service) {
    return rpc::rpcsec_gss(
        {.initiator = std::make_shared<FakeInitiator>(realm), .service = service});
  }

  std::shared_ptr<FakeRealm> realm = std::make_shared<FakeRealm>();
  store::State state;
  rpc::Server server;
  rpc::GssAuthenticator* authenticator = nullptr;
};

// Both sides on one loop.
struct GssWorld : GssServerWorld {
  explicit GssWorld(gss::Service service = gss::Service::none, rpc::GssServerOptions options = {},
                    bool reduce = false)
      : GssServerWorld(std::move(options)),
        channel(loop, server, reduce),
        security_(security(service)) {}

  template <xdr::Procedure P>
  rpc::CallResult<typename P::Results> call(typename P::Args args, rpc::CallOptions options = {}) {
    return *loop.run(client.call<P>(args, options));
  }
  void end() { loop.run(ended(*this)); }

  ManualLoop loop;
  DirectChannel channel;
  std::shared_ptr<rpc::ClientSecurity> security_;
  rpc::Client client{channel, store::kBinding, rpc::Credentials::secured(security_)};

 private:
  static Task<bool> ended(GssWorld& world) {
    co_await world.security_->end(world.channel);
    co_return true;
  }
};

// Of a Call; views into its bytes.
inline gss::Credential credential_of(const Buffer& message) {
  xdr::Decoder decoder(message);
  return *gss::decode_credential(oncrpc::decode_call(decoder)->credential.body);
}

// A client that says what a test wants it to say.
class RawGssClient {
 public:
  RawGssClient(GssWorld& world, std::string host = "192.0.2.66") : world_(world) {
    auto origin = std::make_shared<rpc::Origin>();
    origin->peer = {std::move(host), 900};
    origin->loop = &world.loop;
    origin_ = std::move(origin);
  }

  struct Answer {
    oncrpc::ReplyHeader header{};
    std::vector<std::byte> verifier{}, results{};
    Reason close = Reason::None;

    oncrpc::AuthStat refusal() const {
      return header.status.reply == oncrpc::ReplyStat::MSG_DENIED ? header.status.auth
                                                                  : oncrpc::AuthStat::AUTH_OK;
    }
    std::optional<gss::InitRes> init() const { return gss::decode_init_res(results); }
  };

  // A message with this credential and verifier; nullopt: no answer.
  std::optional<Answer> send(const gss::Credential& credential, const oncrpc::OpaqueAuth& verifier,
                             Bytes arguments, std::uint32_t procedure = 0) {
    rpc::IncomingCall call = incoming(head(credential, procedure), verifier, arguments);
    return serve(call);
  }
  // The same signed by `context`.
  std::optional<Answer> send_signed(const gss::Credential& credential, gss::Context& context,
                                    Bytes arguments, std::uint32_t procedure = 0) {
    rpc::IncomingCall call = signed_call(credential, context, arguments, procedure);
    return serve(call);
  }
  rpc::IncomingCall signed_call(const gss::Credential& credential, gss::Context& context,
                                Bytes arguments, std::uint32_t procedure) {
    const std::vector<std::byte> start = head(credential, procedure);
    const Bytes message = start;
    gss::Mic mic;
    STAG_CHECK(context.get_mic(gss::Pieces(&message, 1), mic) == gss::Major::COMPLETE);
    return incoming(start, {oncrpc::AuthFlavor::RPCSEC_GSS, mic.bytes()}, arguments);
  }

  std::optional<Answer> init(Bytes token, Bytes handle = {}) {
    gss::Credential credential;
    credential.procedure = handle.empty() ? gss::Procedure::INIT : gss::Procedure::CONTINUE_INIT;
    credential.handle = handle;
    const xdr::Stream arguments = gss::encode_init_arg(token);
    return send(credential, {}, arguments.rope().flatten().bytes());
  }
  // A whole context; the handle is in `handle`.
  std::unique_ptr<gss::Context> establish() {
    FakeInitiator initiator(world_.realm);
    std::unique_ptr<gss::Context> context = *initiator.begin();
    gss::Step step = context->step({});
    handle.clear();
    while (step.major == gss::Major::CONTINUE_NEEDED) {
      const std::optional<Answer> answer = init(step.token.bytes(), handle);
      const auto results = answer->init();
      handle.assign(results->handle.begin(), results->handle.end());
      step = context->step(results->token);
    }
    STAG_CHECK(step.major == gss::Major::COMPLETE);
    return context;
  }
  gss::Credential data(std::uint32_t seq_num, gss::Service service = gss::Service::none) const {
    gss::Credential credential;
    credential.seq_num = seq_num;
    credential.service = service;
    credential.handle = handle;
    return credential;
  }

  std::optional<Answer> serve(rpc::IncomingCall& call) {
    auto reply = *world_.loop.run(world_.server.serve(call));
    Answer answer;
    answer.close = call.close;
    last_close = call.close;
    if (!reply) return std::nullopt;
    const Buffer bytes = reply->stream.rope().flatten();
    xdr::Decoder decoder(bytes);
    answer.header = *oncrpc::decode_reply(decoder);
    const Bytes body = answer.header.verifier.body;
    answer.verifier.assign(body.begin(), body.end());
    const Bytes results = bytes.bytes().last(decoder.remaining());
    answer.results.assign(results.begin(), results.end());
    return answer;
  }

  rpc::IncomingCall incoming(Bytes start, const oncrpc::OpaqueAuth& verifier, Bytes arguments) {
    xdr::Encoder whole;
    whole.fixed_opaque(start);
    oncrpc::encode(whole, verifier);
    whole.fixed_opaque(arguments);
    rpc::IncomingCall call;
    call.origin = origin_;
    call.payload = Buffer::copy_of(std::move(whole).finish().rope().flatten().bytes());
    return call;
  }
  std::vector<std::byte> head(const gss::Credential& credential, std::uint32_t procedure) {
    std::array<std::byte, gss::credential_size(gss::kMaxHandle)> body;
    gss::encode_credential(credential, body);
    return head_of(Bytes(body).first(
                       gss::credential_size(static_cast<std::uint32_t>(credential.handle.size()))),
                   procedure);
  }
  std::vector<std::byte> head_of(Bytes credential, std::uint32_t procedure) {
    oncrpc::CallHeader header;
    header.xid = ++xid_;
    header.program = store::kProgram;
    header.version = store::kVersion;
    header.procedure = procedure;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header, {});
    oncrpc::encode(encoder, {oncrpc::AuthFlavor::RPCSEC_GSS, credential});
    const Buffer bytes = std::move(encoder).finish().rope().flatten();
    return {bytes.bytes().begin(), bytes.bytes().end()};
  }

  std::vector<std::byte> handle;
  Reason last_close = Reason::None;

 private:
  GssWorld& world_;
  std::shared_ptr<const rpc::Origin> origin_;
  std::uint32_t xid_ = 5000;
};

}  // namespace stag::testing
