#include "cli/serve/observing.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/observe/metrics.h"
#include "rpc/gss/authenticator.h"

namespace stag::cli {
namespace {

TimePoint steady_now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

const rpc::ContextTable* contexts_of(const rpc::Authenticator* authenticator) {
  const auto* const gss = dynamic_cast<const rpc::GssAuthenticator*>(authenticator);
  return gss == nullptr ? nullptr : &gss->contexts();
}

Observing::Observing(const ObserveOptions& options, const GaugeSources& sources)
    : observation_(options.events(), steady_now,
                   [&nfs = sources.nfs](std::uint32_t id) {
                     const auto exports = nfs.exports();
                     const std::string* const path = exports->path_of(id);
                     return path == nullptr ? std::string() : *path;
                   }),
      sources_(sources),
      metrics_wanted_(options.metrics()) {
  look_at_exports();
}

void Observing::look_at_exports() {
  std::vector<Statistics::KnownExport> known;
  const auto exports = sources_.nfs.exports();
  for (const nfs::Export& each : exports->all()) known.push_back({each.id, each.path()});
  observation_.statistics().know(known);
}

Result<Ok, std::string> Observing::start_metrics() {
  if (metrics_wanted_.empty()) return Ok{};
  auto made = MetricsServer::open(metrics_wanted_, [this] {
    Gauges gauges = take_gauges(sources_, steady_now());
    gauges.reload_succeeded = reload_succeeded_;
    return to_metrics(observation_, gauges);
  });
  if (!made) return Failure{made.error()};
  metrics_ = *std::move(made);
  fmt::print("metrics: {}\n", metrics_->url());
  return Ok{};
}

}  // namespace stag::cli
