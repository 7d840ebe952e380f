#include "rpc/gss/protection.h"

#include <optional>

#include "gss/protect.h"

namespace stag::rpc {

GssProtection::GssProtection(const gss::Mic& mic, std::shared_ptr<ServerContext> context,
                             const gss::Credential& credential, const GssServerOptions& options,
                             Loop& loop)
    : GssVerifier(mic),
      context_(std::move(context)),
      options_(options),
      loop_(loop),
      service_(credential.service),
      seq_num_(credential.seq_num) {}

std::uint32_t GssProtection::reply_overhead() const {
  return GssVerifier::reply_overhead() + gss::overhead_of(service_, options_.acceptor->sizes());
}

// The lock keeps the other messages of this context waiting, so that a context has one job at a
// time at the Executor, however many Calls its client makes.
Task<Result<Buffer, oncrpc::ReplyStatus>> GssProtection::unwrap(Buffer arguments) {
  co_await context_->lock.lock(loop_);
  const AwaitedLock::Held use(context_->lock);
  gss::Context& context = *context_->gss;
  std::optional<Result<Buffer, gss::Major>> plain;
  if (arguments.size() > options_.large) {
    const auto work = [&]() -> std::optional<Result<Buffer, gss::Major>> {
      return gss::unprotect(context, service_, seq_num_, arguments);
    };
    plain = co_await offloaded_to(options_.executor, context_->client, loop_, work, std::nullopt,
                                  arguments.size());
  }
  if (!plain) plain = gss::unprotect(context, service_, seq_num_, std::move(arguments));
  // RFC 2203 5.3.3.4.2, 5.3.3.4.3
  if (!*plain) co_return Failure{oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::GARBAGE_ARGS)};
  co_return **std::move(plain);
}

Task<std::optional<xdr::Stream>> GssProtection::wrap(xdr::Stream results) {
  co_await context_->lock.lock(loop_);
  const AwaitedLock::Held use(context_->lock);
  gss::Context& context = *context_->gss;
  std::optional<Result<xdr::Stream, gss::Major>> made;
  if (results.size() > options_.large) {
    const auto work = [&]() -> std::optional<Result<xdr::Stream, gss::Major>> {
      return gss::protect(context, service_, seq_num_, results);
    };
    made = co_await offloaded_to(options_.executor, context_->client, loop_, work, std::nullopt,
                                 results.size());
  }
  if (!made) made = gss::protect(context, service_, seq_num_, results);
  if (!*made) co_return std::nullopt;
  co_return **std::move(made);
}

}  // namespace stag::rpc
