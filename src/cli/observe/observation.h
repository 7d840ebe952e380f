// Observation: what `stag serve` sees of itself, for metrics, listings and the log.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cli/observe/events.h"
#include "cli/observe/statistics.h"

namespace stag::cli {

// Outlives the rpc::Server that it observes.
class Observation final : public rpc::Observer, public nfs::nfs4::OperationObserver {
 public:
  Observation(EventOptions options, Statistics::Clock clock, ExportPaths path_of = {})
      : statistics_(clock),
        events_(std::move(options)),
        path_of_(std::move(path_of)),
        began_(clock()),
        clock_(clock) {
    trace_calls(events_.traces());
  }

  Statistics& statistics() { return statistics_; }
  const Statistics& statistics() const { return statistics_; }
  const Events& events() const { return events_; }
  // Thread: any.
  void change(EventOptions options) {
    events_.change(std::move(options));
    trace_calls(events_.traces());
  }
  // The settings of the configuration file that are not those of the server, until it is started
  // again. Thread: any.
  void await_restart(std::vector<std::string> settings);
  std::vector<std::string> awaiting_restart() const;
  // Why the last reload failed; empty: it succeeded, or there was none. Thread: any.
  void set_reload_error(std::string sentence);
  std::string reload_error() const;
  Duration uptime() const { return clock_() - began_; }

  void on_connected(const rpc::Origin& origin) noexcept override;
  void on_disconnected(const rpc::Origin& origin, Reason reason) noexcept override;
  void on_call_arrived(const rpc::Origin& origin, const rpc::ArrivedCall& call) noexcept override;
  void on_call_begun(const rpc::BegunCall& call) noexcept override;
  void on_call_ended(const rpc::EndedCall& call) noexcept override;
  void on_reply_sent(const rpc::Origin& origin, const rpc::SentReply& reply) noexcept override;
  void on_whole_call(const rpc::Origin& origin, const rpc::WholeCall& call) noexcept override;
  void on_whole_reply(const rpc::Origin& origin, const rpc::WholeReply& reply) noexcept override;
  TimePoint on_operation(const nfs::nfs4::EndedOperation& operation) noexcept override;

 private:
  Statistics statistics_;
  Events events_;
  const ExportPaths path_of_;
  const TimePoint began_;
  const Statistics::Clock clock_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::string> awaiting_restart_;
  std::string reload_error_;
};

}  // namespace stag::cli
