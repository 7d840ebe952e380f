#include "cli/observe/observation.h"

#include <algorithm>
#include <utility>

namespace stag::cli {
namespace {

// A line of the log that there is no memory for is lost, and nothing else.
template <class Say>
void said(Say say) noexcept {
  try {
    say();
  } catch (...) {
  }
}

}  // namespace

void Observation::await_restart(std::vector<std::string> settings) {
  const std::lock_guard lock(mutex_);
  awaiting_restart_ = std::move(settings);
}

std::vector<std::string> Observation::awaiting_restart() const {
  const std::lock_guard lock(mutex_);
  return awaiting_restart_;
}

void Observation::set_reload_error(std::string sentence) {
  const std::lock_guard lock(mutex_);
  reload_error_ = std::move(sentence);
}

std::string Observation::reload_error() const {
  const std::lock_guard lock(mutex_);
  return reload_error_;
}

void Observation::on_connected(const rpc::Origin& origin) noexcept {
  statistics_.on_connected(origin);
  said([&] { events_.on_connected(origin); });
}

void Observation::on_disconnected(const rpc::Origin& origin, Reason reason) noexcept {
  statistics_.on_disconnected(origin);
  said([&] { events_.on_disconnected(origin, reason); });
}

void Observation::on_call_arrived(const rpc::Origin& origin,
                                  const rpc::ArrivedCall& call) noexcept {
  statistics_.on_call_arrived(origin, call);
  if (events_.traces()) said([&] { events_.on_call_arrived(origin, call); });
}

void Observation::on_call_begun(const rpc::BegunCall& call) noexcept {
  if (events_.traces()) said([&] { events_.on_call_begun(call); });
}

void Observation::on_call_ended(const rpc::EndedCall& call) noexcept {
  const Statistics::Ended ended = statistics_.on_call_ended(call);
  if (events_.wants(call, ended)) said([&] { events_.on_call_ended(call, ended, path_of_); });
}

void Observation::on_reply_sent(const rpc::Origin& origin, const rpc::SentReply& reply) noexcept {
  statistics_.on_reply_sent(origin, reply);
  if (events_.traces()) said([&] { events_.on_reply_sent(origin, reply); });
}

void Observation::on_whole_call(const rpc::Origin& origin, const rpc::WholeCall& call) noexcept {
  said([&] { events_.on_whole_call(origin, call); });
}

void Observation::on_whole_reply(const rpc::Origin& origin, const rpc::WholeReply& reply) noexcept {
  said([&] { events_.on_whole_reply(origin, reply); });
}

TimePoint Observation::on_operation(const nfs::nfs4::EndedOperation& operation) noexcept {
  const TimePoint ended = statistics_.on_operation(operation);
  const Duration took = operation.on_filehandle ? ended - operation.began : Duration::zero();
  if (events_.wants(operation, took)) said([&] { events_.on_operation(operation, took); });
  return ended;
}

}  // namespace stag::cli
