// A security context of the client, shared by the Calls that use it. Thread: one loop's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/loop.h"
#include "base/pooled.h"
#include "gss/credential.h"
#include "gss/mechanism.h"
#include "rpc/client_security.h"

namespace stag::rpc {

class GssCall;

struct ClientContext {
  // Sequence numbers that stay unused, for retransmissions of the last Calls.
  static constexpr std::uint32_t kLastSeq = gss::kMaxSeq - (1u << 20);

  std::unique_ptr<gss::Context> gss;
  xdr::BoundedOpaque<gss::kMaxHandle> handle;
  std::uint32_t window = 1;   // Calls that may be in progress
  std::uint32_t seq_num = 0;  // the last one used
  std::uint32_t calls = 0;    // in progress
  std::uint32_t unsent = 0;   // of them, that have no number yet
  GssCall* oldest = nullptr;  // of those that have one, in the order of their last numbers
  GssCall* newest = nullptr;
  // The lowest of Calls that have ended without a Reply: the server may yet fetch and judge them.
  std::optional<std::uint32_t> unanswered;
  // Where another context was asked for in vain: the number of the Call that may ask again. There
  // may be no ticket for as long as this one lasts.
  std::uint32_t next_attempt = 0;
  TimePoint expires = TimePoint::max();
  bool refused = false;  // the server knows it no longer

  bool usable(TimePoint now) const { return !refused && now < expires && seq_num < kLastSeq; }
  bool full() const { return calls >= window; }
  // Whether another Call would move the window past one that has no Reply, and should have another
  // context: the server may judge that one late, because it fetches its arguments first, and would
  // take it for a replay.
  bool outrun() const;
};

// Called when a Call of a context has ended.
class ContextObserver {
 public:
  virtual void on_call_ended() = 0;

 protected:
  ~ContextObserver() = default;
};

// Makes credentials and verifiers of the transmissions of one Call (RFC 2203 section 5.3.1).
class GssCall final : public CallSecurity, public Pooled {
 public:
  // `observer` outlives the Call.
  GssCall(std::shared_ptr<ClientContext> context, gss::Service service, gss::Procedure procedure,
          ContextObserver& observer);
  ~GssCall() override;

  Result<oncrpc::OpaqueAuth, Reason> credential() override;
  Result<oncrpc::OpaqueAuth, Reason> verifier(Bytes header) override;
  Result<xdr::Stream, Reason> wrap(const xdr::Stream& arguments) override;
  bool accepts(const oncrpc::OpaqueAuth& verifier) override;
  Task<Result<Buffer, Reason>> unwrap(Buffer results) override;
  bool renew(oncrpc::AuthStat refusal) override;

  std::uint32_t last_seq_num() const { return seq_nums_[(transmissions_ - 1) % seq_nums_.size()]; }

 private:
  void take_number();
  void unlink();
  void note_unanswered();

  const std::shared_ptr<ClientContext> context_;
  const gss::Service service_;
  const gss::Procedure procedure_;
  ContextObserver& observer_;
  std::array<std::uint32_t, 8> seq_nums_{};  // of the last transmissions
  std::size_t transmissions_ = 0;
  GssCall* older_ = nullptr;
  GssCall* newer_ = nullptr;
  std::uint32_t answered_ = 0;  // of the transmission that the Reply is for
  bool has_reply_ = false;
  std::array<std::byte, gss::credential_size(gss::kMaxHandle)> credential_;
  gss::Mic mic_;
};

}  // namespace stag::rpc
