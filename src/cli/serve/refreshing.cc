#include "cli/serve/refreshing.h"

#include <exception>
#include <utility>

#include "base/reason.h"
#include "cli/serve/host_lookup.h"
#include "cli/serve/observing.h"

namespace stag::cli {

Refreshing::Refreshing(net::EpollLoop& loop, const ServeOptions& options, Server server)
    : loop_(loop),
      server_(std::move(server)),
      again_(
          options,
          {server_.services.exports(), server_.services.observing().observation(), server_.take_on},
          ending_.get_token()),
      reloads_(loop, {.reload = [this] { reload(); }, .done = [this] { server_.done(last_); }}),
      late_(loop, reloads_,
            {.late = [this] { return late_hosts(); },
             .lookup = system_addresses_of,
             .known = [this](const HostAnswers& answers) { take(answers); }}) {}

void Refreshing::end() {
  ending_.request_stop();
  reloads_.end([this] {
    ended_ = true;
    loop_.stop();
  });
}

void Refreshing::wait() {
  while (!ended_) loop_.run();
}

void Refreshing::reload() {
  // Stays where the system has no memory or no thread left, and nothing more can be said.
  last_ = Failure{std::string("it broke off")};
  try {
    server_.begin();
    server_.services.forget_groups();
    last_ = again_();
  } catch (const std::exception& exception) {
    trace(Reason::ExportsReloadFailed, kReloadSource, exception.what());
  }
  server_.services.observing().reloaded(last_);
  server_.copy_hosts.ask_again(ending_.get_token());
}

std::set<std::string> Refreshing::late_hosts() const {
  std::set<std::string> hosts = server_.services.exports().late_hosts();
  hosts.merge(server_.copy_hosts.late());
  return hosts;
}

void Refreshing::take(const HostAnswers& answers) {
  server_.copy_hosts.take(answers);
  server_.services.exports().take(answers);
  server_.services.observing().look_at_exports();
}

}  // namespace stag::cli
