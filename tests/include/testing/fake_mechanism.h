// A GSS-API mechanism for tests: its tokens carry a name and a key in as many exchanges as wanted,
// its MICs are keyed hashes, its privacy is a key stream by the same hash. It protects nothing from
// anybody who reads this. Contexts can be counted, made to wait and made to fail.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/loop.h"
#include "base/siphash.h"
#include "gss/mechanism.h"

namespace stag::testing {

// What the two ends of a world share.
struct FakeRealm {
  int rounds = 1;                          // exchanges until a context is established
  std::string name = "alice@EXAMPLE.ORG";  // the user whose tickets the initiator has
  std::uint32_t lifetime = 0xffffffff;     // of the contexts, in seconds
  std::uint32_t skew = 0;  // seconds for which the server takes a ticket that has ended
  std::atomic<gss::Major> mics{gss::Major::COMPLETE};  // of get_mic() at the server
  std::atomic<bool> corrupts_replies{false};  // what the server protects, not its verifiers
  bool refuses_tokens = false;
  bool knows_replays = false;          // first tokens that came before are refused
  std::set<std::string> tokens;        // these
  std::function<TimePoint()> clock{};  // of first tokens that are refused after five minutes
  std::uint64_t ahead = 0;             // seconds by which the server's clock is
  gss::Error no_ticket;                // why the initiator has none; Reason::None: it has
  std::function<void(bool server)> on_verify;  // before a MIC is looked at, at either end
  std::function<void()> on_step;               // inside a step of the acceptor
  std::atomic<std::uint32_t> initiated{0}, accepted{0}, alive{0};
  std::atomic<std::uint64_t> sealed{0};  // bytes
};

class FakeContext : public gss::Context {
 public:
  explicit FakeContext(std::shared_ptr<FakeRealm> realm) : realm_(std::move(realm)) {
    ++realm_->alive;
  }
  ~FakeContext() override { --realm_->alive; }

  std::string peer() const override { return peer_; }
  std::uint32_t lifetime() const override {
    return realm_->lifetime + (is_server_ ? realm_->skew : 0);
  }

  gss::Major get_mic(gss::Pieces message, gss::Mic& to) override {
    const Alone alone(*this);
    if (is_server_ && realm_->mics != gss::Major::COMPLETE) return realm_->mics;
    std::array<std::byte, 12> mic = mic_of(message);
    if (is_server_ && realm_->corrupts_replies && !is_number(message)) mic[0] ^= std::byte{1};
    return to.assign(mic) ? gss::Major::COMPLETE : gss::Major::FAILURE;
  }
  gss::Major verify_mic(gss::Pieces message, Bytes mic) override {
    const Alone alone(*this);
    if (realm_->on_verify) realm_->on_verify(is_server_);
    const bool good = std::ranges::equal(mic, mic_of(message));
    return good ? gss::Major::COMPLETE : gss::Major::BAD_MIC;
  }
  Result<Buffer, gss::Major> wrap(gss::Pieces message) override {
    const Alone alone(*this);
    std::size_t size = 0;
    for (const Bytes piece : message) size += piece.size();
    Block block = Block::allocate(size + 8);
    std::byte* at = block.data() + 8;
    for (const Bytes piece : message) at = std::copy(piece.begin(), piece.end(), at);
    const MutableBytes body = block.bytes().subspan(8, size);
    const Bytes plain = body;
    store_be(block.data(), hash(gss::Pieces(&plain, 1)));
    apply_stream(body);
    if (is_server_ && realm_->corrupts_replies) body.back() ^= std::byte{1};
    realm_->sealed += size;
    return std::move(block).freeze(size + 8);
  }
  Result<Buffer, gss::Major> unwrap(Buffer sealed) override {
    const Alone alone(*this);
    if (realm_->on_verify) realm_->on_verify(is_server_);
    if (sealed.size() < 8) return Failure{gss::Major::DEFECTIVE_TOKEN};
    Block block = Block::allocate(sealed.size());
    const MutableBytes body = block.bytes().first(sealed.size() - 8);
    std::copy(sealed.bytes().begin() + 8, sealed.bytes().end(), body.begin());
    apply_stream(body);
    const Bytes plain = body;
    if (load_be<std::uint64_t>(sealed.data()) != hash(gss::Pieces(&plain, 1)))
      return Failure{gss::Major::BAD_MIC};
    return std::move(block).freeze(body.size());
  }

 protected:
  // Libraries promise nothing for two threads at once; this one ends the process.
  class Alone {
   public:
    explicit Alone(FakeContext& context) : context_(context) {
      STAG_CHECK(!context_.in_use_.exchange(true));
    }
    Alone(const Alone&) = delete;
    ~Alone() { context_.in_use_ = false; }

   private:
    FakeContext& context_;
  };

  // What a Reply's verifier is the checksum of.
  static bool is_number(gss::Pieces message) {
    return message.size() == 1 && message.front().size() == 4;
  }
  std::array<std::byte, 12> mic_of(gss::Pieces message) const {
    std::array<std::byte, 12> mic{};
    store_be(mic.data(), hash(message));
    return mic;
  }
  std::uint64_t hash(gss::Pieces message) const {
    SipHash hash(key_);
    for (const Bytes piece : message) hash.add(piece);
    return hash.finish();
  }
  void apply_stream(MutableBytes bytes) const {
    const std::uint64_t pad = siphash(key_, bytes_of("stream"));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] ^= static_cast<std::byte>(pad >> i % 8 * 8);
  }

  static std::uint64_t seconds_of(TimePoint time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
  }

  const std::shared_ptr<FakeRealm> realm_;
  std::string peer_;
  SipKey key_{};
  bool is_server_ = false;
  int round_ = 0;
  std::atomic<bool> in_use_{false};
};

// The initiator's tokens: number of the exchange, key (with the time), name. The acceptor's: the
// number.
class FakeInitiatorContext final : public FakeContext {
 public:
  FakeInitiatorContext(std::shared_ptr<FakeRealm> realm, std::uint64_t serial)
      : FakeContext(std::move(realm)) {
    store_be(key_.data(), serial);
    if (realm_->clock) store_be(key_.data() + 8, seconds_of(realm_->clock()));
    peer_ = "nfs@server";
  }
  gss::Step step(Bytes token) override {
    const Alone alone(*this);
    gss::Step step;
    const bool expected = round_ == 0
                              ? token.empty()
                              : token.size() == 1 && std::to_integer<int>(token.front()) == round_;
    if (!expected) {
      step.error.reason = Reason::GssFailed;
      return step;
    }
    if (round_ == realm_->rounds) {
      step.major = gss::Major::COMPLETE;
      return step;
    }
    step.major = gss::Major::CONTINUE_NEEDED;
    std::string text(1, static_cast<char>(++round_));
    text += text_of(key_);
    text += realm_->name;
    step.token = Buffer::copy_of(bytes_of(text));
    return step;
  }
};

class FakeAcceptorContext final : public FakeContext {
 public:
  static constexpr std::uint32_t kReplayed = 8, kSkewed = 9;
  explicit FakeAcceptorContext(std::shared_ptr<FakeRealm> realm) : FakeContext(std::move(realm)) {
    is_server_ = true;
  }
  gss::Step step(Bytes token) override {
    const Alone alone(*this);
    if (realm_->on_step) realm_->on_step();
    gss::Step step;
    if (realm_->refuses_tokens || token.size() < 17 ||
        std::to_integer<int>(token.front()) != round_ + 1) {
      step.major = gss::Major::DEFECTIVE_TOKEN;
      step.minor = 7;
      step.error = {Reason::GssTokenRefused, "not a token of this realm"};
      return step;
    }
    if (realm_->knows_replays && round_ == 0 && !realm_->tokens.emplace(text_of(token)).second) {
      step.major = gss::Major::FAILURE;
      step.minor = kReplayed;
      step.error = {Reason::GssTokenRefused, "Request is a replay"};
      return step;
    }
    if (realm_->clock && round_ == 0 &&
        seconds_of(realm_->clock()) + realm_->ahead - load_be<std::uint64_t>(token.data() + 9) >
            300) {
      step.major = gss::Major::FAILURE;
      step.minor = kSkewed;
      step.error = {Reason::GssClockSkew, "Clock skew too great"};
      return step;
    }
    ++round_;
    std::copy_n(token.begin() + 1, key_.size(), key_.begin());
    peer_ = text_of(token.subspan(17));
    const bool complete = round_ == realm_->rounds;
    if (complete) ++realm_->accepted;
    step.major = complete ? gss::Major::COMPLETE : gss::Major::CONTINUE_NEEDED;
    step.token = Buffer::copy_of(token.first(1));
    return step;
  }
};

class FakeAcceptor final : public gss::Acceptor {
 public:
  explicit FakeAcceptor(std::shared_ptr<FakeRealm> realm) : realm_(std::move(realm)) {}
  std::unique_ptr<gss::Context> begin() override {
    return std::make_unique<FakeAcceptorContext>(realm_);
  }
  gss::Sizes sizes() const override { return {12, 8}; }

 private:
  const std::shared_ptr<FakeRealm> realm_;
};

class FakeInitiator final : public gss::Initiator {
 public:
  explicit FakeInitiator(std::shared_ptr<FakeRealm> realm) : realm_(std::move(realm)) {}
  Result<std::unique_ptr<gss::Context>, gss::Error> begin() override {
    if (realm_->no_ticket.reason != Reason::None) return Failure{realm_->no_ticket};
    return std::unique_ptr<gss::Context>(
        std::make_unique<FakeInitiatorContext>(realm_, ++realm_->initiated));
  }
  gss::Error explain(gss::Major major, std::uint32_t minor) const override {
    if (minor == FakeAcceptorContext::kReplayed || major == gss::Major::NO_CONTEXT)
      return {Reason::GssServerRefused, {}, /*repeated=*/true};
    if (minor == FakeAcceptorContext::kSkewed) return {Reason::GssClockSkew, {}};
    return {minor == 7 ? Reason::GssServerKeyWrong : Reason::GssServerRefused, {}};
  }
  gss::Sizes sizes() const override { return {12, 8}; }

 private:
  const std::shared_ptr<FakeRealm> realm_;
};

}  // namespace stag::testing
