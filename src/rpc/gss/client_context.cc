#include "rpc/gss/client_context.h"

#include <algorithm>
#include <utility>

#include "gss/protect.h"

namespace stag::rpc {

using gss::Major;
using oncrpc::AuthFlavor;

bool ClientContext::outrun() const {
  const std::uint32_t next = seq_num + unsent + 1;
  if (next < next_attempt) return false;
  if (unanswered && next - *unanswered >= window) return true;
  return oldest != nullptr && next - oldest->last_seq_num() >= window;
}

GssCall::GssCall(std::shared_ptr<ClientContext> context, gss::Service service,
                 gss::Procedure procedure, ContextObserver& observer)
    : context_(std::move(context)), service_(service), procedure_(procedure), observer_(observer) {
  ++context_->calls;
  ++context_->unsent;
}

GssCall::~GssCall() {
  unlink();
  note_unanswered();
  --context_->calls;
  observer_.on_call_ended();
}

void GssCall::unlink() {
  if (transmissions_ == 0) {
    --context_->unsent;
    return;
  }
  (older_ != nullptr ? older_->newer_ : context_->oldest) = newer_;
  (newer_ != nullptr ? newer_->older_ : context_->newest) = older_;
}

// Cancelled, or too late: its message may be where the server has not looked at it yet.
void GssCall::note_unanswered() {
  if (transmissions_ == 0 || has_reply_) return;
  context_->unanswered = std::min(context_->unanswered.value_or(gss::kMaxSeq), last_seq_num());
}

// That of an earlier transmission no longer counts: its connection is lost.
void GssCall::take_number() {
  unlink();
  seq_nums_[transmissions_++ % seq_nums_.size()] = ++context_->seq_num;
  older_ = std::exchange(context_->newest, this);
  newer_ = nullptr;
  (older_ != nullptr ? older_->newer_ : context_->oldest) = this;
}

Result<oncrpc::OpaqueAuth, Reason> GssCall::credential() {
  if (context_->seq_num >= gss::kMaxSeq - 1) return Failure{Reason::RpcProtectionFailed};
  take_number();
  gss::Credential credential;
  credential.procedure = procedure_;
  credential.seq_num = context_->seq_num;
  credential.service = service_;
  credential.handle = context_->handle.bytes();
  gss::encode_credential(credential, credential_);
  const Bytes body = Bytes(credential_).first(gss::credential_size(context_->handle.size()));
  return oncrpc::OpaqueAuth{AuthFlavor::RPCSEC_GSS, body};
}

Result<oncrpc::OpaqueAuth, Reason> GssCall::verifier(Bytes header) {
  if (context_->gss->get_mic(gss::Pieces(&header, 1), mic_) != Major::COMPLETE)
    return Failure{Reason::RpcProtectionFailed};
  return oncrpc::OpaqueAuth{AuthFlavor::RPCSEC_GSS, mic_.bytes()};
}

Result<xdr::Stream, Reason> GssCall::wrap(const xdr::Stream& arguments) {
  Result<xdr::Stream, Major> made =
      gss::protect(*context_->gss, service_, last_seq_num(), arguments);
  if (!made) return Failure{Reason::RpcProtectionFailed};
  return *std::move(made);
}

// RFC 2203 5.3.3.1: a Reply may answer an earlier transmission than the last one.
bool GssCall::accepts(const oncrpc::OpaqueAuth& verifier) {
  if (verifier.flavor != AuthFlavor::RPCSEC_GSS) return false;
  const std::size_t kept = std::min(transmissions_, seq_nums_.size());
  for (std::size_t back = 1; back <= kept; ++back) {
    answered_ = seq_nums_[(transmissions_ - back) % seq_nums_.size()];
    std::array<std::byte, 4> word;
    store_be(word.data(), answered_);
    const Bytes message = word;
    has_reply_ =
        context_->gss->verify_mic(gss::Pieces(&message, 1), verifier.body) == Major::COMPLETE;
    if (has_reply_) return true;
  }
  return false;
}

Task<Result<Buffer, Reason>> GssCall::unwrap(Buffer results) {
  Result<Buffer, Major> plain =
      gss::unprotect(*context_->gss, service_, answered_, std::move(results));
  if (!plain) co_return Failure{Reason::RpcProtectionFailed};
  co_return *std::move(plain);
}

// RFC 2203 5.3.3.3. A context that is being ended has nothing to be renewed for (5.4).
bool GssCall::renew(oncrpc::AuthStat refusal) {
  has_reply_ = true;
  if (procedure_ == gss::Procedure::DESTROY) return false;
  if (refusal != oncrpc::AuthStat::RPCSEC_GSS_CREDPROBLEM &&
      refusal != oncrpc::AuthStat::RPCSEC_GSS_CTXPROBLEM)
    return false;
  context_->refused = true;
  return true;
}

}  // namespace stag::rpc
