// What `stag serve` lets its operator see: the Observation of its services, and metrics.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "cli/observe/gauges.h"
#include "cli/observe/metrics_server.h"
#include "cli/observe/observation.h"
#include "cli/serve/observe_options.h"

namespace stag::rpc {
class Authenticator;
}  // namespace stag::rpc

namespace stag::cli {

// Those of an authenticator of RPCSEC_GSS; null: it has none, or is null.
const rpc::ContextTable* contexts_of(const rpc::Authenticator* authenticator);

class Observing {
 public:
  Observing(const ObserveOptions& options, const GaugeSources& sources);

  // The exports that are counted by themselves; after each change of them. Any thread.
  void look_at_exports();

  // After a reload; its error is a sentence. Any thread.
  void reloaded(const Result<Ok, std::string>& outcome) {
    reload_succeeded_ = outcome.ok();
    observation_.set_reload_error(outcome.ok() ? std::string() : outcome.error());
    look_at_exports();
  }

  // Does nothing where no metrics are wanted. The error is a sentence.
  Result<Ok, std::string> start_metrics();
  // Where they are; port 0: nowhere.
  Address metrics_at() const { return metrics_ == nullptr ? Address{} : metrics_->at(); }
  // Blocking.
  void stop_metrics() { metrics_.reset(); }

  Observation& observation() { return observation_; }
  const Observation& observation() const { return observation_; }
  const GaugeSources& sources() const { return sources_; }

 private:
  Observation observation_;
  const GaugeSources sources_;
  const std::string metrics_wanted_;
  std::atomic<bool> reload_succeeded_ = true;  // the last one, or there was none
  std::unique_ptr<MetricsServer> metrics_;
};

}  // namespace stag::cli
