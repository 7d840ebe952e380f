#include "cli/serve/host_lookup.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/reason.h"
#include "net/blocked_signals.h"
#include "net/socket_address.h"

namespace stag::cli {
namespace {

// Names whose servers are silent leave room for others.
constexpr std::size_t kMostAsking = 8;

}  // namespace

bool is_host_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto other = [](char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  };
  return std::any_of(text.begin(), text.end(), letter) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || other(c); });
}

HostAnswer system_addresses_of(const std::string& host) {
  const auto found = net::resolve_blocking({host, 0});
  if (!found) return Failure{std::string(info(found.error()).text)};
  std::vector<std::string> addresses;
  for (const net::SocketAddress& each : *found) {
    std::string address = each.address().host;
    address.resize(std::min(address.find('%'), address.size()));
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(std::move(address));
  }
  return addresses;
}

struct HostInquiry::Asked {
  const std::set<std::string> hosts;
  const HostLookup lookup;
  mutable std::mutex mutex;
  mutable std::condition_variable_any answered;
  std::set<std::string>::const_iterator next = hosts.begin();  // who has not been asked for
  HostAnswers answers{};
  std::size_t known = 0;  // of them
};

HostInquiry::HostInquiry(const std::set<std::string>& hosts, HostLookup lookup)
    : asked_(new Asked{.hosts = hosts, .lookup = std::move(lookup), .mutex{}, .answered{}}) {
  const net::BlockedSignals blocked;
  std::size_t threads = 0;
  try {
    for (; threads < std::min(hosts.size(), kMostAsking); ++threads)
      std::thread([asked = asked_] { ask(*asked); }).detach();
  } catch (const std::system_error&) {
    // Those that there are ask for all hosts.
    if (threads > 0) return;
    for (const std::string& host : hosts)
      asked_->answers.emplace(host, Failure{std::string("no thread can be had to ask for it")});
  }
}

void HostInquiry::ask(Asked& asked) {
  std::unique_lock lock(asked.mutex);
  while (asked.next != asked.hosts.end()) {
    const std::string& host = *asked.next++;
    lock.unlock();
    HostAnswer answer = asked.lookup(host);
    lock.lock();
    if (answer) ++asked.known;
    asked.answers.emplace(host, std::move(answer));
    asked.answered.notify_all();
  }
}

bool HostInquiry::ended() const {
  const std::lock_guard lock(asked_->mutex);
  return asked_->answers.size() == asked_->hosts.size();
}

void HostInquiry::wait(Duration patience, const std::stop_token& stop) const {
  std::unique_lock lock(asked_->mutex);
  // That nobody answers a resolver says of each host anew, after a while.
  std::size_t before = 0;
  const auto all = [&] { return asked_->answers.size() == asked_->hosts.size(); };
  const auto more = [&] { return asked_->known != before || all(); };
  do {
    before = asked_->known;
    if (all() || stop.stop_requested()) return;
  } while (asked_->answered.wait_for(lock, stop, patience, more));
}

HostAnswers HostInquiry::answers() const {
  const std::lock_guard lock(asked_->mutex);
  HostAnswers answers = asked_->answers;
  for (const std::string& host : asked_->hosts)
    answers.try_emplace(host, Failure{std::string("the name service does not answer")});
  return answers;
}

}  // namespace stag::cli
