// A security mechanism for tests, shaped like RPCSEC_GSS: a set-up exchange (procedure 0 with a
// credential of its own kind) makes a context; every Call after that is counted and signed, and so
// is its Reply. Sealed, arguments and results travel as their sequence number and bytes that are
// xored with it. The server refuses a sequence number that it has seen: it drops the Call and its
// connection ends. It protects nothing.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "base/completion.h"
#include "base/siphash.h"
#include "rpc/authenticator.h"
#include "rpc/channel.h"
#include "rpc/client_security.h"

namespace stag::testing {

inline constexpr auto kToyFlavor = static_cast<oncrpc::AuthFlavor>(0x20000099);

namespace toy {

enum class Kind : std::uint32_t { SetUp, Data };

struct Credential {
  Kind kind = Kind::SetUp;
  std::uint32_t context = 0;
  std::uint32_t sequence = 0;
};

using Body = std::array<std::byte, 12>;

inline Body body_of(const Credential& credential) {
  Body body;
  store_be(body.data(), static_cast<std::uint32_t>(credential.kind));
  store_be(body.data() + 4, credential.context);
  store_be(body.data() + 8, credential.sequence);
  return body;
}
inline std::optional<Credential> credential_of(Bytes body) {
  if (body.size() != 12) return std::nullopt;
  return Credential{static_cast<Kind>(load_be<std::uint32_t>(body.data())),
                    load_be<std::uint32_t>(body.data() + 4),
                    load_be<std::uint32_t>(body.data() + 8)};
}

using Signature = std::array<std::byte, 8>;

inline Signature sign(const SipKey& key, Bytes message) {
  Signature signature;
  store_be(signature.data(), siphash(key, message));
  return signature;
}
inline Signature sign(const SipKey& key, std::uint32_t sequence) {
  return sign(key, std::as_bytes(std::span(&sequence, 1)));
}
inline oncrpc::OpaqueAuth auth(Bytes body) {
  return {kToyFlavor, body};
}
inline bool same(Bytes a, Bytes b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

inline xdr::Stream seal(std::uint32_t sequence, const xdr::Stream& plain) {
  xdr::Encoder encoder;
  encoder.u32(sequence);
  const Buffer bytes = plain.rope().flatten();
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4)
    encoder.u32(load_be<std::uint32_t>(bytes.data() + i) ^ sequence ^ 0x5ea1ed);
  return std::move(encoder).finish();
}
inline std::optional<Buffer> unseal(std::uint32_t sequence, const Buffer& sealed) {
  if (sealed.size() < 4 || load_be<std::uint32_t>(sealed.data()) != sequence) return std::nullopt;
  Block plain = Block::allocate(sealed.size());
  for (std::size_t i = 4; i + 4 <= sealed.size(); i += 4)
    store_be(plain.data() + i - 4, load_be<std::uint32_t>(sealed.data() + i) ^ sequence ^ 0x5ea1ed);
  return std::move(plain).freeze(sealed.size() - 4);
}

}  // namespace toy

// The server's half.
class ToyAuthenticator final : public rpc::Authenticator {
 public:
  explicit ToyAuthenticator(bool seals = false) : seals_(seals) {}

  oncrpc::AuthFlavor flavor() const override { return kToyFlavor; }
  Task<rpc::Authentication> authenticate(const oncrpc::CallHeader& header,
                                         const rpc::IncomingCall& call) override {
    co_await resume_on(*call.origin->loop);
    const auto credential = toy::credential_of(header.credential.body);
    rpc::Authentication made;
    if (!credential) {
      made.refuse(oncrpc::AuthStat::AUTH_BADCRED);
      co_return made;
    }
    if (is_slow && is_slow(*credential)) {
      Completion<Ok> wait;
      held.push_back(&wait);
      if (on_held) on_held();
      co_await wait;
    }
    if (credential->kind == toy::Kind::SetUp)
      set_up(call, header, made);
    else
      judge(call, header, *credential, made);
    co_return made;
  }

  void let_go() {
    is_slow = nullptr;
    while (!held.empty()) {
      Completion<Ok>* const next = held.front();
      held.pop_front();
      next->complete(Ok{});
    }
  }
  void forget_contexts() { contexts_.clear(); }

  // Whether a Call waits until let_go().
  std::function<bool(const toy::Credential&)> is_slow;
  std::deque<Completion<Ok>*> held;
  bool throws = false;
  bool signs_badly = false;
  bool opens_nothing = false;  // has no memory for the arguments of a Call that is accepted
  bool signs_nothing = false;  // nor for its verifier
  std::function<void()> on_held;
  std::function<void()> on_repeated;
  std::uint32_t set_ups = 0, accepted = 0, repeated = 0;

 private:
  struct Context {
    SipKey key{};
    std::string name;
    std::set<std::uint32_t> seen;
  };
  class Toy final : public rpc::Protection {
   public:
    Toy(const SipKey& key, std::uint32_t sequence, const ToyAuthenticator& from)
        : verifier_(toy::sign(key, sequence)),
          sequence_(sequence),
          seals_(from.seals_),
          opens_nothing_(from.opens_nothing),
          signs_nothing_(from.signs_nothing) {}
    bool transforms() const override { return seals_; }
    Task<Result<Buffer, oncrpc::ReplyStatus>> unwrap(Buffer arguments) override {
      if (opens_nothing_) throw std::bad_alloc();
      std::optional<Buffer> plain = toy::unseal(sequence_, arguments);
      if (!plain)
        co_return Failure{oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS)};
      co_return *std::move(plain);
    }
    Task<std::optional<xdr::Stream>> wrap(xdr::Stream results) override {
      co_return toy::seal(sequence_, results);
    }
    oncrpc::OpaqueAuth reply_verifier() override {
      if (signs_nothing_) throw std::bad_alloc();
      return toy::auth(verifier_);
    }
    std::uint32_t reply_overhead() const override { return 8 + 4; }

   private:
    toy::Signature verifier_;
    std::uint32_t sequence_;
    bool seals_;
    const bool opens_nothing_, signs_nothing_;
  };

  // The arguments are the key and the name that is claimed; the results the number of the context.
  void set_up(const rpc::IncomingCall& call, const oncrpc::CallHeader& header,
              rpc::Authentication& made) {
    xdr::Decoder decoder(call.payload.slice(oncrpc::header_size(header),
                                            call.payload.size() - oncrpc::header_size(header)));
    Context context;
    if (header.procedure != 0 || !decoder.fixed_opaque(context.key) ||
        !decoder.string(0, context.name))
      return made.refuse(oncrpc::AuthStat::AUTH_BADCRED);
    ++set_ups;
    const std::uint32_t number = ++last_;
    contexts_[number] = std::move(context);
    made.verdict = rpc::Authentication::Verdict::Answered;
    xdr::Encoder results;
    results.u32(number);
    made.results = std::move(results).finish();
  }

  void judge(const rpc::IncomingCall& call, const oncrpc::CallHeader& header,
             const toy::Credential& credential, rpc::Authentication& made) {
    if (throws) throw std::bad_alloc();
    const auto found = contexts_.find(credential.context);
    if (found == contexts_.end()) return made.refuse(oncrpc::AuthStat::RPCSEC_GSS_CREDPROBLEM);
    Context& context = found->second;
    const Bytes signed_part = call.payload.bytes().first(oncrpc::credential_end(header));
    if (!toy::same(header.verifier.body, toy::sign(context.key, signed_part)))
      return made.refuse(oncrpc::AuthStat::AUTH_REJECTEDVERF);
    if (!context.seen.insert(credential.sequence).second) {
      ++repeated;
      made.verdict = rpc::Authentication::Verdict::Dropped;
      made.reason = Reason::RpcSequenceRefused;
      if (on_repeated) on_repeated();
      return;
    }
    ++accepted;
    made.caller.flavor = kToyFlavor;
    made.caller.name = std::make_shared<const std::string>(context.name);
    SipKey key = context.key;
    if (signs_badly) key[0] ^= std::byte{1};
    made.protection = std::make_unique<Toy>(key, credential.sequence, *this);
  }

  const bool seals_;
  std::map<std::uint32_t, Context> contexts_;
  std::uint32_t last_ = 0;
};

// The client's half: one context, made when it is first needed.
class ToySecurity final : public rpc::ClientSecurity {
 public:
  explicit ToySecurity(std::string name, bool seals = false)
      : name_(std::move(name)), seals_(seals) {
    fill(key_);
  }

  bool transforms() const override { return seals_; }
  std::uint32_t reply_overhead() const override { return 8 + 4; }
  Task<Result<std::unique_ptr<rpc::CallSecurity>, rpc::CallError>> begin(
      rpc::Channel& channel, const oncrpc::CallHeader& header,
      const rpc::CallMessage& message) override {
    if (context_ == 0) {
      rpc::CallMessage request = set_up(channel, header, message);
      const Result<rpc::ReplyMessage, rpc::CallError> reply = co_await channel.call(request);
      if (!reply) co_return Failure{reply.error()};
      xdr::Decoder decoder(reply->payload);
      const auto answered = oncrpc::decode_reply(decoder);
      if (!answered) co_return Failure{rpc::CallError::malformed(answered.error())};
      if (!answered->status.success())
        co_return Failure{rpc::CallError::answered(answered->status)};
      if (!decoder.u32(context_))
        co_return Failure{rpc::CallError::malformed(Reason::RpcProtectionFailed)};
    }
    co_return std::unique_ptr<rpc::CallSecurity>(std::make_unique<Signed>(*this));
  }
  const SipKey& key() const { return key_; }

  std::uint32_t transmissions = 0;
  std::uint32_t renewals = 0;
  bool cannot_sign = false;
  bool forges = false;
  // As a mechanism would that does not count retransmissions.
  bool repeats_itself = false;

 private:
  class Signed final : public rpc::CallSecurity {
   public:
    explicit Signed(ToySecurity& from) : from_(from), context_(from.context_) {}
    Result<oncrpc::OpaqueAuth, Reason> credential() override {
      if (from_.cannot_sign) return Failure{Reason::RpcProtectionFailed};
      ++from_.transmissions;
      if (sequences_.empty() || !from_.repeats_itself) sequences_.push_back(++from_.sequence_);
      body_ = toy::body_of({toy::Kind::Data, context_, sequences_.back()});
      return toy::auth(body_);
    }
    Result<oncrpc::OpaqueAuth, Reason> verifier(Bytes header) override {
      signature_ = toy::sign(from_.key_, header);
      if (from_.forges) signature_[0] ^= std::byte{1};
      return toy::auth(signature_);
    }
    Result<xdr::Stream, Reason> wrap(const xdr::Stream& arguments) override {
      return toy::seal(sequences_.back(), arguments);
    }
    bool accepts(const oncrpc::OpaqueAuth& verifier) override {
      for (const std::uint32_t sequence : sequences_)
        if (toy::same(verifier.body, toy::sign(from_.key_, sequence))) {
          answered_ = sequence;
          return true;
        }
      return false;
    }
    Task<Result<Buffer, Reason>> unwrap(Buffer results) override {
      std::optional<Buffer> plain = toy::unseal(answered_, results);
      if (!plain) co_return Failure{Reason::RpcProtectionFailed};
      co_return *std::move(plain);
    }
    bool renew(oncrpc::AuthStat refusal) override {
      ++from_.renewals;
      from_.context_ = 0;
      return refusal == oncrpc::AuthStat::RPCSEC_GSS_CREDPROBLEM;
    }

   private:
    ToySecurity& from_;
    std::uint32_t context_;
    std::vector<std::uint32_t> sequences_;
    std::uint32_t answered_ = 0;
    toy::Body body_{};
    toy::Signature signature_{};
  };

  static void fill(SipKey& key) {
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(7 * i + 1);
  }
  rpc::CallMessage set_up(rpc::Channel& channel, const oncrpc::CallHeader& call,
                          const rpc::CallMessage& message) const {
    oncrpc::CallHeader header;
    header.xid = channel.next_xid();
    header.program = call.program;
    header.version = call.version;
    const toy::Body body = toy::body_of({});
    header.credential = toy::auth(body);
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    encoder.fixed_opaque(key_);
    encoder.string(0, name_);
    rpc::CallMessage request;
    request.xid = header.xid;
    request.stream = std::move(encoder).finish();
    request.reply.payload_max = 64;
    request.deadline = message.deadline;
    request.cancel = message.cancel;
    return request;
  }

  const std::string name_;
  const bool seals_;
  SipKey key_;
  std::uint32_t context_ = 0;
  std::uint32_t sequence_ = 0;
};

}  // namespace stag::testing
