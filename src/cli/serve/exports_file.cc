#include "cli/serve/exports_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/serve/exports_lines.h"
#include "cli/serve/exports_words.h"
#include "cli/serve/host_lookup.h"
#include "cli/serve/host_names.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/mount_point.h"
#include "cli/support/local_file.h"
#include "cli/support/text_file.h"

namespace stag::cli {
namespace {

using Parsed = Result<Ok, std::string>;

// The order in which exports(5) looks for a client. Kerberos is gss/..., of everybody's calls with
// that flavor.
enum class Class : std::uint8_t { Host, Network, Pattern, Netgroup, Everybody, Kerberos };

struct ClassedRule {
  Class of;
  nfs::ClientRule rule;
  std::string where{};
  std::string as_written{};
  bool flavors_given = false;
};

// Takes the flavors of `more` that are not there, with their options. Yields whether what is looked
// at before the flavor of a call differed: it is the strictest for all.
bool add_flavors(nfs::ExportOptions& options, const nfs::ExportOptions& more) {
  const bool differed = options.secure != more.secure || options.rdma != more.rdma;
  std::vector<oncrpc::AuthFlavor> flavors = options.flavors;
  std::vector<nfs::ExportOptions> by_flavor;
  for (const oncrpc::AuthFlavor flavor : flavors) by_flavor.push_back(options.of(flavor));
  for (const oncrpc::AuthFlavor flavor : more.flavors) {
    if (std::ranges::count(flavors, flavor) != 0) continue;
    flavors.push_back(flavor);
    by_flavor.push_back(more.of(flavor));
  }
  options.read_only |= more.read_only;
  options.root_squash |= more.root_squash;
  options.all_squash |= more.all_squash;
  options.secure |= more.secure;
  options.rdma &= more.rdma;
  options.flavors = flavors;
  options.by_flavor.clear();
  for (nfs::ExportOptions& each : by_flavor) {
    each.flavors = flavors;
    each.by_flavor.clear();
    each.secure = options.secure;
    each.rdma = options.rdma;
  }
  const auto same = [&](const nfs::ExportOptions& each) { return each == options; };
  if (!std::ranges::all_of(by_flavor, same)) options.by_flavor = std::move(by_flavor);
  return differed;
}

bool has_all_flavors(const nfs::ExportOptions& options, const nfs::ExportOptions& of) {
  return std::ranges::all_of(of.flavors, [&](const oncrpc::AuthFlavor flavor) {
    return std::ranges::count(options.flavors, flavor) != 0;
  });
}

struct ExportedFolder {
  ExportLine line;
  std::vector<ClassedRule> rules;
};

std::string normal_folder(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

class Builder {
 public:
  explicit Builder(HostService& hosts) : hosts_(hosts) {}

  Parsed take(const std::string& path, const ExportsLine& line) {
    where_ = place_in(path, line.number);
    if (!line.folder.starts_with('/'))
      return wrong(fmt::format("'{}' is no folder; write its path from '/' on", line.folder));
    std::vector<ExportsClient> clients = line.clients;
    if (clients.empty()) {
      remark(fmt::format("{} names no client and is exported to everybody", line.folder));
      clients.push_back({.match = "*", .options = line.defaults});
    }
    for (ExportsClient& client : clients) {
      if (client.match.empty()) {
        remark(
            "options without a client are for everybody; a blank before '(' separates them "
            "from their client");
        client.match = "*";
      }
      if (const Parsed taken = take_client(line.folder, client); !taken) return taken;
    }
    return Ok{};
  }

  ExportsFile finished() {
    ExportsFile file;
    file.unmounted = folders_.empty() && awaits_mount_;
    for (ExportedFolder& folder : folders_) {
      take_rules(folder);
      folder.line.options = folder.line.clients.front().options;
      file.lines.push_back(std::move(folder.line));
    }
    file.remarks = std::move(remarks_);
    return file;
  }

 private:
  Failure<std::string> wrong(const std::string& sentence) const {
    return Failure{where_ + sentence};
  }
  void remark(const std::string& sentence) { remarks_.push_back(where_ + sentence); }

  // The rules that count, in their order.
  void take_rules(ExportedFolder& folder) {
    std::ranges::stable_sort(folder.rules, {}, &ClassedRule::of);
    std::vector<ClassedRule> taken;
    for (ClassedRule& each : folder.rules) {
      const auto first = std::ranges::find_if(
          taken, [&](const ClassedRule& other) { return other.rule.same_clients(each.rule); });
      if (first == taken.end())
        taken.push_back(std::move(each));
      else
        take_again(folder.line.folder, *first, each);
    }
    for (ClassedRule& each : taken) {
      // Within a class the order of the lines counts, however long the prefixes are.
      each.rule.rank = static_cast<unsigned>(folder.line.clients.size());
      folder.line.clients.push_back(std::move(each.rule));
    }
  }
  // Of a client that has a rule already. gss/... is for calls with another flavor, unless sec= says
  // which flavors there are, which Linux's server heeds first.
  void take_again(const std::string& folder, ClassedRule& first, const ClassedRule& again) {
    where_ = again.where;
    const bool fixed = first.of != Class::Kerberos && first.flavors_given;
    if (again.of == Class::Kerberos && !fixed &&
        !has_all_flavors(first.rule.options, again.rule.options)) {
      if (add_flavors(first.rule.options, again.rule.options))
        remark(
            fmt::format("{}: secure and no_rdma do not differ by flavor: one client of {} and "
                        "{} has it, and so do both",
                        folder, first.as_written, again.as_written));
    } else if (again.rule.options != first.rule.options) {
      remark(fmt::format("{} is not exported to {} by this entry: {} stands before it", folder,
                         again.as_written, first.as_written));
    }
  }

  Parsed take_client(const std::string& folder, const ExportsClient& client) {
    std::vector<std::string> sentences;
    std::string options = client.options;
    std::string match = client.match;
    // The former way to write sec=.
    const bool kerberos = match.starts_with("gss/");
    if (kerberos) {
      options += ",sec=" + match.substr(4);
      match = "*";
    }
    const Result<ExportsWords, std::string> words = parse_exports_words(options, sentences);
    for (const std::string& each : sentences) remark(each);
    if (!words) return wrong(words.error());
    if (words->elsewhere) {
      remark(fmt::format(
          "{} is not exported to {} by this entry: it would be referred to another server "
          "(refer=), and there are no referrals here",
          folder, client.match));
      return Ok{};
    }
    std::string doubt;
    if (words->mount_point && !may_be_mounted(folder, *words->mount_point, doubt)) return Ok{};
    ExportedFolder& place = folder_of(folder);
    if (!doubt.empty()) place.line.doubt = doubt;
    if (const Parsed taken = take_file_system_id(*words, place); !taken) return taken;
    const std::size_t before = place.rules.size();
    const Parsed added = add_rules(match, words->options, place);
    for (std::size_t i = before; i < place.rules.size(); ++i) {
      ClassedRule& rule = place.rules[i];
      if (kerberos) rule.of = Class::Kerberos;
      rule.where = where_;
      rule.as_written = client.match;
      rule.flavors_given = words->flavors_given;
    }
    return added;
  }

  bool may_be_mounted(const std::string& folder, const std::string& given, std::string& doubt) {
    const std::string& at = given.empty() ? folder : given;
    AwaitedMount mount = awaited_mount(folder, at, hosts_.is_mount_point(at));
    if (!mount.remark.empty()) remark(mount.remark);
    doubt = std::move(mount.doubt);
    awaits_mount_ |= !mount.exported;
    return mount.exported;
  }
  ExportedFolder& folder_of(const std::string& given) {
    const std::string path = normal_folder(given);
    for (ExportedFolder& folder : folders_)
      if (folder.line.path == path) return folder;
    ExportedFolder& made = folders_.emplace_back();
    made.line.path = path;
    made.line.folder = path;
    made.line.where = where_;
    return made;
  }
  Parsed take_file_system_id(const ExportsWords& words, ExportedFolder& place) const {
    std::optional<std::uint64_t>& known = place.line.file_system_id;
    if (!words.file_system_id) return Ok{};
    if (known && known != words.file_system_id)
      return wrong(fmt::format("{} has two different fsid", place.line.path));
    known = words.file_system_id;
    return Ok{};
  }

  Parsed add_rules(const std::string& match, const nfs::ExportOptions& options,
                   ExportedFolder& place) {
    if (match == "*") return add(Class::Everybody, match, options, place);
    if (IpNetwork::parse(match)) {
      const bool one = match.find('/') == std::string::npos;
      return add(one ? Class::Host : Class::Network, match, options, place);
    }
    if (match.starts_with('@')) return add_netgroup(match, options, place);
    if (nfs::ClientNames::is_pattern(match)) return add(Class::Pattern, match, options, place);
    return add_host(match, options, place);
  }
  Parsed add_netgroup(const std::string& match, const nfs::ExportOptions& options,
                      ExportedFolder& place) {
    const auto checked = hosts_.check_netgroup(match.substr(1));
    if (!checked) return wrong(fmt::format("client '{}': {}", match, checked.error()));
    if (checked->empty())
      place.line.netgroups.insert(match);
    else
      place.line.unknown.push_back({match, *checked});
    return add(Class::Netgroup, match, options, place);
  }
  Parsed add_host(const std::string& host, const nfs::ExportOptions& options,
                  ExportedFolder& place) {
    if (!is_host_name(host))
      return wrong(fmt::format("client '{}' is neither a host name nor an address", host));
    place.rules.push_back({Class::Host, host_rule(host, options)});
    place.line.hosts[host];
    return Ok{};
  }
  Parsed add(Class of, const std::string& match, const nfs::ExportOptions& options,
             ExportedFolder& place) const {
    auto rule = nfs::make_client_rule(match, options);
    if (!rule) return wrong(rule.error().message);
    place.rules.push_back({of, *std::move(rule)});
    return Ok{};
  }

  HostService& hosts_;
  bool awaits_mount_ = false;
  std::string where_;
  std::vector<ExportedFolder> folders_;
  std::vector<std::string> remarks_;
};

class SystemHosts final : public HostService {
 public:
  explicit SystemHosts(Duration patience) : patience_(patience) {}
  Result<std::string, std::string> check_netgroup(const std::string& netgroup) override {
    return netgroups_.check(netgroup);
  }
  Result<bool, std::string> is_mount_point(const std::string& folder) override {
    return cli::is_mount_point(folder, patience_);
  }

 private:
  const Duration patience_;
  NetgroupCheck netgroups_;
};

}  // namespace

Result<ExportsFile, std::string> parse_exports_files(const std::vector<ExportsText>& texts,
                                                     HostService& hosts) {
  Builder builder(hosts);
  for (const auto& [path, text] : texts) {
    const auto lines = split_exports(text);
    if (!lines) return Failure{place_in(path, lines.error().first) + lines.error().second};
    for (const ExportsLine& line : *lines)
      if (const Parsed taken = builder.take(path, line); !taken) return Failure{taken.error()};
  }
  return builder.finished();
}

Result<std::vector<std::string>, std::string> exports_files(const std::string& path) {
  namespace files = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  for (files::directory_iterator each(path + ".d", error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename();
    std::error_code ignored;
    if (!name.ends_with(".exports") || name.starts_with('.')) continue;
    // A FIFO would be waited for. A link to nothing is a file that cannot be read.
    if (!each->is_directory(ignored) && !each->is_fifo(ignored)) found.push_back(each->path());
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    return Failure{
        fmt::format("'{}.d', beside --exports-file, cannot be read: {}", path, error.message())};
  std::ranges::sort(found, [](const std::string& one, const std::string& other) {
    return ::strverscmp(one.c_str(), other.c_str()) < 0;
  });
  if (found.empty() || files::status(path, error).type() != files::file_type::not_found)
    found.insert(found.begin(), path);
  return found;
}

Result<std::vector<ExportsText>, std::string> read_exports_files(const std::string& path) {
  const auto paths = exports_files(path);
  if (!paths) return Failure{paths.error()};
  std::vector<ExportsText> texts;
  for (const std::string& each : *paths) {
    if (waits_for_a_writer(each))
      return Failure{fmt::format("--exports-file '{}' is a FIFO: name a regular file", each)};
    std::optional<std::string> text = text_of_file(each);
    if (!text) return Failure{fmt::format("--exports-file '{}' cannot be read", each)};
    texts.push_back({each, *std::move(text)});
  }
  return texts;
}

Result<ExportsFile, std::string> parse_exports_here(const std::vector<ExportsText>& texts,
                                                    Duration patience) {
  SystemHosts hosts(patience);
  return parse_exports_files(texts, hosts);
}

}  // namespace stag::cli
