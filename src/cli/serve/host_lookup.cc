#include "cli/serve/host_lookup.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
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

// No exception may leave the thread that asks.
HostAnswer answer_of(const HostLookup& lookup, const std::string& host) {
  try {
    return lookup(host);
  } catch (const std::bad_alloc&) {
    // So short that it takes no memory.
    return Failure{std::string("no memory")};
  }
}

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
  Asked(const std::set<std::string>& hosts, HostLookup asking) : lookup(std::move(asking)) {
    for (const std::string& host : hosts)
      answers.emplace(host, Failure{std::string("the name service does not answer")});
  }
  bool all() const { return answered == answers.size(); }

  const HostLookup lookup;
  std::mutex mutex;
  std::condition_variable_any changed;
  HostAnswers answers{};                       // has all hosts from the beginning on
  HostAnswers::iterator next = answers.end();  // the first host not asked for yet
  std::size_t answered = 0;
  std::size_t known = 0;  // of them
};

HostInquiry::HostInquiry(const std::set<std::string>& hosts, HostLookup lookup)
    : asked_(std::make_shared<Asked>(hosts, std::move(lookup))) {
  asked_->next = asked_->answers.begin();
  const net::BlockedSignals blocked;
  std::size_t threads = 0;
  try {
    for (; threads < std::min(hosts.size(), kMostAsking); ++threads)
      std::thread([asked = asked_] { ask(*asked); }).detach();
  } catch (const std::system_error&) {
    // Those that there are ask for all hosts.
    if (threads > 0) return;
    for (auto& [host, answer] : asked_->answers)
      answer = Failure{std::string("no thread can be had to ask for it")};
    asked_->answered = asked_->answers.size();
  }
}

void HostInquiry::ask(Asked& asked) {
  std::unique_lock lock(asked.mutex);
  while (asked.next != asked.answers.end()) {
    const auto host = asked.next++;
    lock.unlock();
    HostAnswer answer = answer_of(asked.lookup, host->first);
    lock.lock();
    if (answer) ++asked.known;
    host->second = std::move(answer);
    ++asked.answered;
    asked.changed.notify_all();
  }
}

bool HostInquiry::ended() const {
  const std::lock_guard lock(asked_->mutex);
  return asked_->all();
}

void HostInquiry::wait(Duration patience, const std::stop_token& stop) const {
  std::unique_lock lock(asked_->mutex);
  // That nobody answers a resolver says of each host anew, after a while.
  std::size_t before = 0;
  const auto more = [&] { return asked_->known != before || asked_->all(); };
  do {
    before = asked_->known;
    if (asked_->all() || stop.stop_requested()) return;
  } while (asked_->changed.wait_for(lock, stop, patience, more));
}

HostAnswers HostInquiry::answers() const {
  const std::lock_guard lock(asked_->mutex);
  return asked_->answers;
}

}  // namespace stag::cli
