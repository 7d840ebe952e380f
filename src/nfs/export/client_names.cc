#include "nfs/export/client_names.h"

#include <fnmatch.h>
#include <strings.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

using Netgroups = std::set<std::string>;

struct Membership {
  bool member;
  TimePoint given;
};

// What is known of a client.
struct Known {
  std::vector<std::string> names;
  // Those that it was asked of, and that a service has answered for.
  std::map<std::string, Membership> netgroups;
  bool complete = true;  // a service has answered for all

  // Of what was said after `oldest`.
  ClientNames::Match match(const std::string& pattern, TimePoint oldest) const {
    using Match = ClientNames::Match;
    if (pattern.starts_with('@')) {
      const auto at = netgroups.find(pattern);
      if (at == netgroups.end() || at->second.given <= oldest) return Match::Undecided;
      return at->second.member ? Match::Yes : Match::No;
    }
    const bool has = std::ranges::any_of(names, [&](const std::string& name) {
      return ::fnmatch(pattern.c_str(), name.c_str(), FNM_CASEFOLD | FNM_NOESCAPE) == 0;
    });
    return has ? Match::Yes : Match::No;
  }
  bool nameless() const {
    return names.empty() &&
           std::ranges::none_of(netgroups, [](const auto& each) { return each.second.member; });
  }
};

// Which services do not answer for a netgroup: those that have this one, or those that have any.
enum class Silent : std::uint8_t { One, All };

using Key = std::pair<std::uint64_t, std::uint64_t>;
Key key_of(const IpAddress& address) {
  return {address.high, address.low};
}
// Addresses next to each other share a reverse zone, hence one that hangs, and often an owner: a
// /24 of IPv4, a /64 of IPv6.
std::uint64_t neighbourhood(const Key& key) {
  const IpAddress address{key.first, key.second};
  return address.is_v4() ? address.low >> 8 : address.high;
}
// The Executor's.
const void* client_of(const IpAddress& address) {
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(neighbourhood(key_of(address))));
}
// How soon settle() looks whether there is an answer, and how often it does at least. Most answers
// come at once, and many calls may wait for one that does not.
constexpr Duration kFirstLook = std::chrono::milliseconds(2);
constexpr Duration kLook = std::chrono::milliseconds(200);
// A name that no host has: it belongs only to netgroups that any host belongs to.
constexpr const char* kNoHost = "!";

}  // namespace

struct ClientNames::State {
  // After that a client is looked up again; until there is an answer the old one holds, no longer
  // than kKeepAtMost after it was given.
  static constexpr Duration kKeep = std::chrono::minutes(5);
  static constexpr Duration kKeepNameless = std::chrono::minutes(1);
  static constexpr Duration kKeepAtMost = std::chrono::minutes(30);
  // How soon a lookup that had no answer is tried again.
  static constexpr Duration kRetry = std::chrono::seconds(5);
  // How long what was forgotten does not hold while nobody answers.
  static constexpr Duration kPatienceForgotten = std::chrono::seconds(5);
  // How long a caller that can wait waits for an answer.
  static constexpr Duration kPatience = std::chrono::seconds(10);

  State(std::shared_ptr<HostNameService> asked, const ClientNamesOptions& options)
      : service(std::move(asked)), answers(options.entries, options.entries_each, neighbourhood) {}

  // A lookup that had no answer is one without a value.
  struct Answer {
    std::shared_ptr<const Known> known;
    TimePoint given;
    std::uint64_t epoch;           // in which it was asked for
    std::uint64_t unanswered = 0;  // the last one in which nobody answered in time, of later ones
  };
  // A client that is being looked up: the epoch of the calls that wait for it, and since when they
  // do.
  struct Waited {
    std::uint64_t epoch;
    TimePoint since;
  };
  struct Found {
    std::shared_ptr<const Known> known;  // null: nothing that still holds
    bool fresh = false;                  // no service need be asked
  };

  Found find(const Key& key, TimePoint now) {
    const auto* const answer = answers.find(key);
    if (answer == nullptr) return {};
    const Answer& last = *answer->value;
    if (is_forgotten(last) && is_late(key, now)) note_unanswered(key);
    const bool holds = !is_forgotten(last) && last.given + kKeepAtMost > now;
    return {holds ? last.known : nullptr, answer->until > now && last.epoch == epoch};
  }
  bool is_forgotten(const Answer& answer) const {
    return std::max(answer.epoch, answer.unanswered) < forgotten;
  }
  // A question may have been put, and hang, since before all was forgotten: the time counts from
  // the first call behind that.
  bool is_late(const Key& key, TimePoint now) {
    const auto at = asked.find(key);
    if (at == asked.end()) return false;
    if (at->second.epoch < forgotten) at->second = {epoch, now};
    return at->second.since + kPatienceForgotten <= now;
  }
  // What was forgotten holds again. Allocates nothing.
  void note_unanswered(const Key& key) {
    const auto* const last = answers.find(key);
    if (last == nullptr) return;
    auto same = *last;
    same.value->unanswered = epoch;
    answers.keep(key, std::move(same));
  }

  // Blocks.
  void ask(const IpAddress& address, const std::string& host, TimePoint now) {
    const Key key = key_of(address);
    std::shared_ptr<const Netgroups> groups;
    std::uint64_t began = 0;
    {
      const std::lock_guard lock(mutex);
      groups = netgroups;
      began = epoch;
    }
    const std::shared_ptr<Known> known = look_up(address, host);
    if (known != nullptr) look_for_netgroups(*known, host, *groups, now);
    const std::lock_guard lock(mutex);
    keep(key, known, now, began);
  }

  // The names. Null: nobody has answered.
  std::shared_ptr<Known> look_up(const IpAddress& address, const std::string& host) const {
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
    return found;
  }
  // A netgroup that nobody answers for is in nobody's way who has nothing to do with it.
  void look_for_netgroups(Known& of, const std::string& host, const Netgroups& groups,
                          TimePoint now) {
    if (groups.empty()) return;
    const auto domain = service->domain();
    of.complete = domain.ok();
    if (!domain) return;
    const auto called = names_in_netgroups(host, of.names, *domain);
    for (const std::string& group : groups) {
      const auto member = is_in(group, called);
      of.complete = of.complete && member.ok();
      if (member) of.netgroups.emplace(group, Membership{*member, now});
      if (!member && member.error() == Silent::All) return;
    }
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
  Result<bool, Silent> is_in(const std::string& group, const std::vector<std::string>& called) {
    const std::string bare = group.substr(1);
    for (const std::string& name : called) {
      const auto member = service->is_member(bare, name);
      if (!member) return Failure{Silent::All};
      if (!*member) continue;
      static_cast<void>(was_ever_there(group, true));
      const auto everybody = service->is_member(bare, kNoHost);
      if (!everybody) return Failure{Silent::All};
      return !*everybody;
    }
    // A netgroup that never existed has no members. One that existed before is not gone: the
    // service that has it does not answer now.
    const auto there = service->has_netgroup(bare);
    if (!there) return Failure{Silent::All};
    if (was_ever_there(group, *there) && !*there) return Failure{Silent::One};
    return false;
  }
  bool was_ever_there(const std::string& group, bool is_now) {
    const std::lock_guard lock(mutex);
    if (is_now) there_once.insert(group);
    return there_once.contains(group);
  }

  void add(const std::string& netgroup) {
    auto more = std::make_shared<Netgroups>(*netgroups);
    more->insert(netgroup);
    netgroups = std::move(more);
    ++epoch;
  }
  // `began`: the epoch in which it was asked.
  void keep(const Key& key, const std::shared_ptr<Known>& known, TimePoint now,
            std::uint64_t began) {
    const auto* const before = answers.find(key);
    // What was known before holds on.
    if (known == nullptr) {
      Answer answer = before == nullptr ? Answer{nullptr, now, began} : *before->value;
      answer.epoch = began;
      return answers.keep(key, {std::move(answer), now + kRetry});
    }
    if (!known->complete && before != nullptr && before->value->known != nullptr)
      known->netgroups.insert(before->value->known->netgroups.begin(),
                              before->value->known->netgroups.end());
    const Duration last = known->nameless() ? kKeepNameless : kKeep;
    answers.keep(key, {Answer{known, now, began}, now + (known->complete ? last : kRetry)});
  }

  const std::shared_ptr<HostNameService> service;
  mutable std::mutex mutex;
  Answers<Key, Answer> answers;
  std::map<Key, Waited> asked;  // by a Question, each once
  std::shared_ptr<const Netgroups> netgroups = std::make_shared<Netgroups>();
  Netgroups there_once;         // of these, those that a service has ever had
  std::uint64_t epoch = 0;      // clients asked about in an earlier one are asked about again
  std::uint64_t forgotten = 0;  // the epoch before which no answer holds
};

// What a job asks, none for the same address meanwhile. Belongs to the job: it ends with that,
// also where the job never ran.
struct ClientNames::Question {
  // Under the State's mutex, unlike the rest.
  Question(std::shared_ptr<State> of, const IpAddress& about, TimePoint now)
      : state(std::move(of)), address(about) {
    state->asked.emplace(key_of(address), State::Waited{state->epoch, now});
  }
  ~Question() {
    const std::lock_guard lock(state->mutex);
    state->asked.erase(key_of(address));
    if (!over) state->note_unanswered(key_of(address));
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  void put(const std::string& host, TimePoint now) {
    state->ask(address, host, now);
    over = true;
  }

  const std::shared_ptr<State> state;
  const IpAddress address;
  bool over = false;  // else no worker has taken it, or there was no memory for the answer
};

ClientNames::ClientNames(std::shared_ptr<HostNameService> service, std::shared_ptr<Executor> worker,
                         const ClientNamesOptions& options)
    : state_(std::make_shared<State>(std::move(service), options)), worker_(std::move(worker)) {}

ClientNames::~ClientNames() = default;

bool ClientNames::is_pattern(std::string_view match) {
  if (match.starts_with('@')) return match.size() > 1;
  const auto fits = [](char c) {
    return is_of_name(c) || std::string_view("*?[]!^").find(c) != std::string_view::npos;
  };
  return match != "*" && match.find_first_of("*?[") != match.npos &&
         std::ranges::all_of(match, fits);
}

void ClientNames::mention(std::string_view match, bool there) {
  if (!match.starts_with('@')) return;
  const std::string netgroup(match);
  const std::lock_guard lock(state_->mutex);
  if (!state_->netgroups->contains(netgroup)) state_->add(netgroup);
  if (there) state_->there_once.insert(netgroup);
}

void ClientNames::keep_only(const std::set<std::string>& matches) {
  const std::lock_guard lock(state_->mutex);
  auto kept = std::make_shared<Netgroups>();
  std::ranges::set_intersection(*state_->netgroups, matches, std::inserter(*kept, kept->end()));
  state_->netgroups = std::move(kept);
  std::erase_if(state_->there_once, [&](const auto& each) { return !matches.contains(each); });
}

void ClientNames::forget() {
  const std::lock_guard lock(state_->mutex);
  state_->forgotten = ++state_->epoch;
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
      question = std::make_unique<Question>(state_, address, now);
  }
  if (question != nullptr) {
    auto work = [question = std::move(question), host = std::string(asker.host), now] {
      question->put(host, now);
    };
    if (!asker.loop.offload_to(*worker_, client_of(address), 0, std::move(work), [] {})) {
      const std::lock_guard lock(state_->mutex);
      found = state_->find(key_of(address), now);
    }
  }
  return found.known == nullptr ? Match::Undecided
                                : found.known->match(match, now - State::kKeepAtMost);
}

Task<void> ClientNames::settle(IpAddress address, Loop& loop, Duration at_most) {
  const TimePoint end = loop.now() + std::min(State::kPatience, at_most);
  const auto holds = [&] { return state_->find(key_of(address), loop.now()).known != nullptr; };
  std::optional<bool> held;
  const auto is_asked = [&] {
    const std::lock_guard lock(state_->mutex);
    if (!held) held = holds();
    return state_->asked.contains(key_of(address)) && holds() == *held;
  };
  // The lookup may run for a caller on another loop, so this polls.
  for (Duration look = kFirstLook; is_asked() && loop.now() < end; look = std::min(2 * look, kLook))
    co_await sleep_for(loop, std::min(look, end - loop.now()));
}

}  // namespace stag::nfs
