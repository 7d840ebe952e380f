#include "nfs/export/client_names.h"

#include <fnmatch.h>
#include <strings.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "nfs/export/answers.h"

namespace stag::nfs {

namespace {

constexpr std::size_t kLongestName = 255;  // RFC 1035 2.3.4
constexpr std::size_t kMostNames = 16;     // of one client

// What RFC 952 and RFC 1123 2.1 let hosts be called, and '_', which is in some names. An address is
// no name: a lookup of one yields itself.
bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}
bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, is_of_name) &&
         !IpAddress::parse(text);
}

// What is known of a client.
struct Known {
  std::vector<std::string> names;
  std::vector<std::string> netgroups;

  bool has(const std::string& match) const {
    if (match.starts_with('@')) return std::ranges::count(netgroups, match) != 0;
    return std::ranges::any_of(names, [&](const std::string& name) {
      return ::fnmatch(match.c_str(), name.c_str(), FNM_CASEFOLD | FNM_NOESCAPE) == 0;
    });
  }
};

using Key = std::pair<std::uint64_t, std::uint64_t>;
Key key_of(const IpAddress& address) {
  return {address.high, address.low};
}
// The Executor's client. Addresses next to each other share a reverse zone, hence one that hangs,
// and often an owner: a /24 of IPv4, a /64 of IPv6.
const void* neighbourhood(const IpAddress& address) {
  const std::uint64_t number = address.is_v4() ? address.low >> 8 : address.high;
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(number));
}
// How often settle() looks whether there is an answer.
constexpr Duration kLook = std::chrono::milliseconds(10);
// A name that no host has: it belongs only to netgroups that any host belongs to.
constexpr const char* kNoHost = "!";

}  // namespace

struct ClientNames::State {
  State(std::shared_ptr<HostNameService> asked, const ClientNamesOptions& of)
      : options(of), service(std::move(asked)), answers(of.entries) {}

  // A lookup that had no answer is one without a value.
  struct Answer {
    std::shared_ptr<const Known> known;
    TimePoint given;
  };
  struct Found {
    std::shared_ptr<const Known> known;  // null: nothing that still holds
    bool fresh = false;                  // nobody need be asked
  };

  Found find(const Key& key, TimePoint now) const {
    const auto* const answer = answers.find(key);
    if (answer == nullptr) return {};
    const bool holds = answer->value->given + options.keep_at_most > now;
    return {holds ? answer->value->known : nullptr, answer->until > now};
  }

  // Blocks.
  void ask(const IpAddress& address, const std::string& host, TimePoint now) {
    const Key key = key_of(address);
    std::vector<std::string> groups;
    std::uint64_t began = 0;
    {
      const std::lock_guard lock(mutex);
      groups.assign(netgroups.begin(), netgroups.end());
      began = forgotten;
    }
    const std::shared_ptr<const Known> known = look_up(address, host, groups);
    const std::lock_guard lock(mutex);
    if (began == forgotten) keep(key, known, now);
  }

  // Null: nobody has answered.
  std::shared_ptr<const Known> look_up(const IpAddress& address, const std::string& host,
                                       const std::vector<std::string>& groups) const {
    auto found = std::make_shared<Known>();
    const auto names = service->names_of(host);
    if (!names) return nullptr;
    for (std::string name : *names) {
      if (name.ends_with('.')) name.pop_back();
      if (!is_host_name(name) || found->names.size() == kMostNames) continue;
      const auto addresses = service->addresses_of(name);
      if (!addresses) return nullptr;
      const bool leads_back = std::ranges::any_of(
          *addresses, [&](const std::string& each) { return IpAddress::parse(each) == address; });
      if (leads_back) found->names.push_back(std::move(name));
    }
    if (groups.empty()) return found;
    const auto domain = service->domain();
    if (!domain) return nullptr;
    const auto called = names_in_netgroups(host, found->names, *domain);
    for (const std::string& group : groups) {
      const auto member = is_in(group.substr(1), called);
      if (!member) return nullptr;
      if (*member) found->netgroups.push_back(group);
    }
    return found;
  }
  // A netgroup has hosts by address, by their whole names, or those of the server's own domain by
  // what stands before it. Of another domain a name is no shorter: anybody has a host "desk".
  static std::vector<std::string> names_in_netgroups(const std::string& host,
                                                     const std::vector<std::string>& names,
                                                     const std::string& domain) {
    std::vector<std::string> all{host};
    const std::string own = "." + domain;
    for (const std::string& name : names) {
      all.push_back(name);
      if (domain.empty() || name.size() <= own.size()) continue;
      const std::size_t end = name.size() - own.size();
      if (::strcasecmp(name.c_str() + end, own.c_str()) == 0) all.push_back(name.substr(0, end));
    }
    return all;
  }
  // A netgroup that has come to have an entry for every host admits nobody.
  Result<bool, HostNameService::NoAnswer> is_in(const std::string& group,
                                                const std::vector<std::string>& called) const {
    for (const std::string& name : called) {
      const auto member = service->is_member(group, name);
      if (!member) return member;
      if (!*member) continue;
      const auto everybody = service->is_member(group, kNoHost);
      if (!everybody) return everybody;
      return !*everybody;
    }
    return false;
  }

  void forget() {
    ++forgotten;
    answers.clear();
  }
  void keep(const Key& key, const std::shared_ptr<const Known>& known, TimePoint now) {
    const auto* const before = answers.find(key);
    if (known == nullptr) {
      // What was known before holds on.
      Answer answer = before == nullptr ? Answer{nullptr, now} : *before->value;
      return answers.keep(key, {std::move(answer), now + options.retry});
    }
    const bool nameless = known->names.empty() && known->netgroups.empty();
    answers.keep(key,
                 {Answer{known, now}, now + (nameless ? options.keep_nameless : options.keep)});
  }

  const ClientNamesOptions options;
  const std::shared_ptr<HostNameService> service;
  mutable std::mutex mutex;
  Answers<Key, Answer> answers;
  std::set<Key> asked;  // by a Question, each once
  std::set<std::string> netgroups;
  std::uint64_t forgotten = 0;  // how often
};

// What a job asks, none for the same address meanwhile. Belongs to the job: it ends with that,
// also where the job never ran.
struct ClientNames::Question {
  // Under the State's mutex, unlike the end.
  Question(std::shared_ptr<State> of, const IpAddress& about)
      : state(std::move(of)), address(about) {
    state->asked.insert(key_of(address));
  }
  ~Question() {
    const std::lock_guard lock(state->mutex);
    state->asked.erase(key_of(address));
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  const std::shared_ptr<State> state;
  const IpAddress address;
};

ClientNames::ClientNames(std::shared_ptr<HostNameService> service, std::shared_ptr<Executor> worker,
                         const ClientNamesOptions& options)
    : options_(options),
      state_(std::make_shared<State>(std::move(service), options)),
      worker_(std::move(worker)) {}

ClientNames::~ClientNames() = default;

bool ClientNames::is_pattern(std::string_view match) {
  if (match.starts_with('@')) return match.size() > 1;
  const auto fits = [](char c) {
    return is_of_name(c) || std::string_view("*?[]!^").find(c) != std::string_view::npos;
  };
  return match != "*" && match.find_first_of("*?[") != match.npos &&
         std::ranges::all_of(match, fits);
}

void ClientNames::mention(std::string_view match) {
  if (!match.starts_with('@')) return;
  const std::lock_guard lock(state_->mutex);
  // No answer that is there speaks of a new one, which is not to say that it has no such host.
  if (state_->netgroups.emplace(match).second) state_->forget();
}

void ClientNames::forget() {
  const std::lock_guard lock(state_->mutex);
  state_->forget();
}

ClientNames::Match ClientNames::matches(const std::string& match, const IpAddress& address,
                                        const Asker& asker) {
  const TimePoint now = asker.loop.now();
  State::Found found;
  std::unique_ptr<Question> question;
  {
    const std::lock_guard lock(state_->mutex);
    found = state_->find(key_of(address), now);
    if (!found.fresh && !state_->asked.contains(key_of(address)))
      question = std::make_unique<Question>(state_, address);
  }
  if (question != nullptr) {
    auto work = [question = std::move(question), host = std::string(asker.host), now] {
      question->state->ask(question->address, host, now);
    };
    asker.loop.offload_to(*worker_, neighbourhood(address), 0, std::move(work), [] {});
  }
  if (found.known == nullptr) return Match::Undecided;
  return found.known->has(match) ? Match::Yes : Match::No;
}

Task<void> ClientNames::settle(IpAddress address, Loop& loop) {
  const TimePoint end = loop.now() + options_.patience;
  const auto is_asked = [&] {
    const std::lock_guard lock(state_->mutex);
    return state_->asked.contains(key_of(address));
  };
  // Whoever asks may be on another loop.
  while (is_asked() && loop.now() < end) co_await sleep_for(loop, kLook);
}

}  // namespace stag::nfs
