#include "nfs/export/exports.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "base/siphash.h"
#include "nfs/export/client_names.h"
#include "nfs/state/types.h"

namespace stag::nfs {

namespace {

constexpr std::size_t kMaxPath = 1024;  // MNTPATHLEN, RFC 1813 5.1.2

// The number behind `name` in `word`; nullopt when the word is another one or no number follows.
std::optional<std::uint32_t> number_of(std::string_view word, std::string_view name) {
  if (!word.starts_with(name)) return std::nullopt;
  word.remove_prefix(name.size());
  std::uint32_t value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) return std::nullopt;
  if (value == vfs::kNoId) return std::nullopt;
  return value;
}

struct Flag {
  std::string_view word;
  bool ExportOptions::*option;
  bool value;
};
constexpr Flag kFlags[] = {
    {"ro", &ExportOptions::read_only, true},
    {"rw", &ExportOptions::read_only, false},
    {"root_squash", &ExportOptions::root_squash, true},
    {"no_root_squash", &ExportOptions::root_squash, false},
    {"all_squash", &ExportOptions::all_squash, true},
    {"no_all_squash", &ExportOptions::all_squash, false},
    {"secure", &ExportOptions::secure, true},
    {"insecure", &ExportOptions::secure, false},
    {"rdma", &ExportOptions::rdma, true},
    {"no_rdma", &ExportOptions::rdma, false},
};

struct FlavorName {
  std::string_view name;
  oncrpc::AuthFlavor flavor;
};
constexpr FlavorName kFlavorNames[] = {{"sys", oncrpc::AuthFlavor::AUTH_SYS},
                                       {"krb5", oncrpc::AuthFlavor::KRB5},
                                       {"krb5i", oncrpc::AuthFlavor::KRB5I},
                                       {"krb5p", oncrpc::AuthFlavor::KRB5P},
                                       {"none", oncrpc::AuthFlavor::AUTH_NONE}};

// The flavors of "sys:none"; empty when one of them is not known.
std::vector<oncrpc::AuthFlavor> flavors_of(std::string_view names) {
  std::vector<oncrpc::AuthFlavor> flavors;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(':'));
    const std::optional<oncrpc::AuthFlavor> flavor = flavor_named(name);
    if (!flavor) return {};
    if (!std::ranges::count(flavors, *flavor)) flavors.push_back(*flavor);
    names.remove_prefix(std::min(name.size() + 1, names.size()));
  }
  return flavors;
}

bool apply(std::string_view word, ExportOptions& options) {
  for (const Flag& flag : kFlags) {
    if (flag.word != word) continue;
    options.*flag.option = flag.value;
    return true;
  }
  if (word.starts_with("sec=")) {
    std::vector<oncrpc::AuthFlavor> flavors = flavors_of(word.substr(4));
    if (flavors.empty()) return false;
    options.flavors = std::move(flavors);
    return true;
  }
  if (const auto uid = number_of(word, "anonuid=")) return options.anonymous_uid = *uid, true;
  if (const auto gid = number_of(word, "anongid=")) return options.anonymous_gid = *gid, true;
  return false;
}

}  // namespace

bool is_kerberos(oncrpc::AuthFlavor flavor) {
  return flavor == oncrpc::AuthFlavor::KRB5 || flavor == oncrpc::AuthFlavor::KRB5I ||
         flavor == oncrpc::AuthFlavor::KRB5P;
}

std::string_view flavor_name(oncrpc::AuthFlavor flavor) {
  const auto* known = std::ranges::find(kFlavorNames, flavor, &FlavorName::flavor);
  return known == std::end(kFlavorNames) ? std::string_view() : known->name;
}

std::optional<oncrpc::AuthFlavor> flavor_named(std::string_view name) {
  const auto* known = std::ranges::find(kFlavorNames, name, &FlavorName::name);
  if (known == std::end(kFlavorNames)) return std::nullopt;
  return known->flavor;
}

const ExportOptions& ExportOptions::of(oncrpc::AuthFlavor flavor) const {
  if (by_flavor.empty()) return *this;
  const auto at = static_cast<std::size_t>(std::ranges::find(flavors, flavor) - flavors.begin());
  return at < by_flavor.size() ? by_flavor[at] : *this;
}

Result<Ok, ExportError> apply_export_option(std::string_view word, ExportOptions& options) {
  if (apply(word, options)) return Ok{};
  return Failure{
      ExportError{"export option '" + std::string(word) +
                  "' is not known; there are ro, rw, root_squash, no_root_squash, all_squash, "
                  "no_all_squash, secure, insecure, rdma, no_rdma, anonuid=N, anongid=N and "
                  "sec=sys:krb5:krb5i:krb5p:none"}};
}

Result<ExportOptions, ExportError> parse_export_options(std::string_view text) {
  ExportOptions options;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const Result<Ok, ExportError> applied = apply_export_option(text.substr(0, end), options);
    if (!applied) return Failure{applied.error()};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return options;
}

Result<ClientRule, ExportError> make_client_rule(std::string_view match,
                                                 const ExportOptions& options) {
  const std::optional<IpNetwork> network = IpNetwork::parse(match);
  const bool by_name = ClientNames::is_pattern(match);
  if (!network && !by_name && match != "*")
    return Failure{ExportError{
        "client '" + std::string(match) +
        "' is not understood; write an address, a network like 192.0.2.0/24 or 2001:db8::/32, "
        "names like *.example.com, a netgroup like @trusted, or * for everybody"}};
  return ClientRule{std::string(match), network, options, 0, by_name};
}

namespace {

using Match = ClientNames::Match;

bool goes_before(const ClientRule& one, const ClientRule& other) {
  const auto specific = [](const ClientRule& rule) {
    if (rule.by_name) return rule.match.starts_with('@') ? 1 : 2;
    return rule.network ? 3 + static_cast<int>(rule.network->prefix()) : 0;
  };
  return one.rank != other.rank ? one.rank < other.rank : specific(one) > specific(other);
}

ClientNames::Asker asker_of(const rpc::Origin& origin) {
  const std::string_view host = origin.peer.host;
  return {*origin.loop, host.substr(0, host.find('%'))};
}

Match matches(const ClientRule& rule, const std::optional<IpAddress>& peer,
              const rpc::Origin& origin) {
  if (rule.by_name && peer)
    return rule.names == nullptr ? Match::Undecided
                                 : rule.names->matches(rule.match, *peer, asker_of(origin));
  if (rule.by_name) return Match::No;
  return !rule.network || (peer && rule.network->contains(*peer)) ? Match::Yes : Match::No;
}

Export::RuleFound rule_among(const std::vector<ClientRule>& rules, const rpc::Origin& origin) {
  bool undecided = false;
  const std::optional<IpAddress> peer = IpAddress::parse(origin.peer.host);
  const ClientRule* best = nullptr;
  for (const ClientRule& rule : rules) {
    if (best != nullptr && !goes_before(rule, *best)) continue;
    const Match match = matches(rule, peer, origin);
    if (match == Match::No) continue;
    best = &rule;
    // A rule that may hold is in the way of those behind it.
    undecided = match == Match::Undecided;
  }
  return {undecided ? nullptr : best, undecided};
}

// The rules are not empty.
Export::Terms terms_of(const std::vector<ClientRule>& rules, const rpc::Origin& origin) {
  const Export::RuleFound found = rule_among(rules, origin);
  return {found.rule == nullptr ? nullptr : &found.rule->options, found.undecided};
}

// Whether the options take a caller with such a transport and port.
bool admits(const ExportOptions& options, const rpc::Origin& origin) {
  // Kernels that mount over RDMA take no reserved port: as with Linux's server, none is wanted.
  if (origin.transport == rpc::TransportKind::Rdma) return options.rdma;
  return !options.secure || (origin.peer.port > 0 && origin.peer.port < 1024);
}

}  // namespace

Export::RuleFound Export::rule_for(const rpc::Origin& origin) const {
  return rule_among(spec.clients, origin);
}

Export::Terms Export::terms_for(const rpc::Origin& origin) const {
  Terms terms = spec.clients.empty() ? Terms{&spec.options} : terms_of(spec.clients, origin);
  if (terms.options != nullptr && !admits(*terms.options, origin)) terms.options = nullptr;
  return terms;
}

Task<void> Export::settle(rpc::Origin origin, Duration at_most) const {
  const std::optional<IpAddress> peer = IpAddress::parse(origin.peer.host);
  const auto by_name = std::ranges::find_if(
      spec.clients, [](const ClientRule& rule) { return rule.names != nullptr; });
  if (peer && by_name != spec.clients.end() && terms_for(origin).undecided)
    co_await by_name->names->settle(*peer, *origin.loop, at_most);
}

namespace {

bool is_squashed(const ExportOptions& options, std::uint32_t id) {
  return id == vfs::kNoId || (options.root_squash && id == 0);
}

void squash_groups(const ExportOptions& options, std::span<const std::uint32_t> gids,
                   vfs::Groups& to) {
  const auto squashed = [&options](std::uint32_t gid) {
    return is_squashed(options, gid) ? options.anonymous_gid : gid;
  };
  if (gids.size() <= vfs::Groups::kInside) {
    for (const std::uint32_t gid : gids) to.push_back(squashed(gid));
    return;
  }
  auto list = std::make_shared<vfs::Groups::List>(gids.begin(), gids.end());
  std::ranges::transform(*list, list->begin(), squashed);
  to = vfs::Groups(std::move(list));
}

// Those of a name service may be many; only what is squashed makes a list of its own necessary.
void take_groups(const ExportOptions& options,
                 const std::shared_ptr<const vfs::Groups::List>& known, vfs::Groups& to) {
  if (std::ranges::any_of(*known, [&](std::uint32_t gid) { return is_squashed(options, gid); }))
    return squash_groups(options, *known, to);
  to = vfs::Groups(known);
}

}  // namespace

vfs::Credentials acting_as(const ExportOptions& options, const rpc::Caller& caller) {
  vfs::Credentials credentials;
  credentials.uid = options.anonymous_uid;
  credentials.gid = options.anonymous_gid;
  if (options.all_squash || caller.flavor == oncrpc::AuthFlavor::AUTH_NONE) return credentials;
  credentials.uid = is_squashed(options, caller.uid) ? options.anonymous_uid : caller.uid;
  credentials.gid = is_squashed(options, caller.gid) ? options.anonymous_gid : caller.gid;
  if (caller.groups == nullptr)
    squash_groups(options, {caller.gids.data(), caller.gids.size()}, credentials.groups);
  else
    take_groups(options, caller.groups, credentials.groups);
  return credentials;
}

std::optional<std::string> normal_path(std::string_view path) {
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) return std::nullopt;
  std::string normal;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view component = path.substr(0, end);
    if (component == "." || component == "..") return std::nullopt;
    if (!component.empty()) (normal += '/') += component;
    path.remove_prefix(end);
  }
  return normal.empty() ? "/" : normal;
}

namespace {

// Both in normal form.
bool is_below(std::string_view path, std::string_view folder) {
  if (folder == "/") return path != folder;
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

namespace {

std::uint64_t store_of(const vfs::FileSystem* file_system) {
  const std::string space = file_system == nullptr ? "" : file_system->handle_space();
  if (!space.empty()) return siphash(process_sip_key(), bytes_of(space));
  return siphash(process_sip_key(), std::as_bytes(std::span(&file_system, 1)));
}

}  // namespace

Result<Ok, ExportError> Exports::add(std::uint32_t id, ExportSpec spec) {
  std::optional<std::string> normal = normal_path(spec.path);
  if (!normal || normal->size() > kMaxPath)
    return Failure{ExportError{"export '" + spec.path +
                               "': the name must begin with '/' and hold no '.' or '..'"}};
  spec.path = *std::move(normal);
  for (const Export& other : exports_) {
    if (other.path() == spec.path)
      return Failure{ExportError{"export '" + spec.path + "' is given twice"}};
    if (other.id == id)
      return Failure{ExportError{"exports '" + spec.path + "' and '" + other.path() +
                                 "' share an id by chance; rename one of them"}};
  }
  for (auto rule = spec.clients.begin(); rule != spec.clients.end(); ++rule)
    if (std::any_of(spec.clients.begin(), rule,
                    [&](const ClientRule& earlier) { return earlier.same_clients(*rule); }))
      return Failure{
          ExportError{"export '" + spec.path + "': client '" + rule->match + "' is given twice"}};
  for (const ClientRule& rule : spec.clients)
    if (rule.by_name && rule.names == nullptr)
      return Failure{ExportError{"export '" + spec.path + "': client '" + rule.match +
                                 "' is admitted by name, and nobody is given who knows names"}};
  for (const Export& other : exports_)
    nested_ = nested_ || is_below(spec.path, other.path()) || is_below(other.path(), spec.path);
  const std::uint64_t store = store_of(spec.file_system.get());
  exports_.push_back({id, std::move(spec), store});
  return Ok{};
}

const Export* Exports::find(std::uint32_t id) const {
  for (const Export& candidate : exports_)
    if (candidate.id == id) return &candidate;
  return nullptr;
}

const Export* Exports::find_removed(std::uint32_t id) const {
  const auto found = std::ranges::find(removed_, id, &Export::id);
  return found == removed_.end() ? nullptr : &*found;
}

const std::string* Exports::path_of(std::uint32_t id) const {
  const Export* found = find(id);
  if (found == nullptr) found = find_removed(id);
  return found == nullptr ? nullptr : &found->path();
}

bool Exports::serves(const state::FileKey& file) const {
  const Export* const found = find(file.via);
  return found != nullptr && found->store == file.store;
}

void Exports::remember(const Exports& before) {
  generation_ = before.generation_ + 1;
  for (const auto* earlier : {&before.removed_, &before.exports_})
    for (const Export& each : *earlier)
      if (find(each.id) == nullptr && find_removed(each.id) == nullptr)
        removed_.push_back({each.id, {each.path(), nullptr, {}}, each.store});
  if (removed_.size() > kMostRemoved)
    removed_.erase(removed_.begin(), removed_.end() - kMostRemoved);
}

std::optional<Exports::Match> Exports::match(std::string_view path) const {
  std::optional<Match> best;
  std::size_t best_length = 0;
  for (const Export& candidate : exports_) {
    // "/" as a prefix ends where every path begins.
    const std::size_t length = candidate.path() == "/" ? 0 : candidate.path().size();
    if (!path.starts_with(std::string_view(candidate.path()).substr(0, length))) continue;
    std::string_view rest = path.substr(length);
    if (!rest.empty() && rest.front() != '/') continue;
    if (best && length <= best_length) continue;
    if (!rest.empty()) rest.remove_prefix(1);
    best = Match{&candidate, rest};
    best_length = length;
  }
  return best;
}

}  // namespace stag::nfs
