#include "cli/serve/export_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/serve/ceph_export.h"
#include "cli/serve/exports_words.h"
#include "cli/serve/host_lookup.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/mount_point.h"

namespace stag::cli {
namespace {

using Parsed = Result<Ok, std::string>;

Failure<std::string> wrong(std::string sentence) {
  return Failure{std::move(sentence)};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Parsed take_file_system_id(std::string_view text, ExportLine& line) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value == 0)
    return wrong(fmt::format("fsid '{}' is no number from 1 on", text));
  line.file_system_id = value;
  return Ok{};
}

Parsed take_option(std::string_view word, nfs::ExportOptions& options) {
  if (says_what_is(word)) return Ok{};
  const Result<Ok, nfs::ExportError> applied = nfs::apply_export_option(word, options);
  if (!applied) return wrong(applied.error().message);
  return Ok{};
}

Parsed take_word(std::string_view word, ExportLine& line) {
  constexpr std::string_view kFsid = "fsid=";
  if (word.starts_with(kFsid)) return take_file_system_id(word.substr(kFsid.size()), line);
  if (word == "at_once" || word == "offload") {
    line.at_once = word == "offload" ? vfs::posix::AtOnce::Never : vfs::posix::AtOnce::Always;
    return Ok{};
  }
  if (word == "nfs_only") {
    line.nfs_only = true;
    return Ok{};
  }
  if (auto at = mount_point_in(word)) {
    line.mount_point = *std::move(at);
    return Ok{};
  }
  const Parsed taken = take_option(word, line.options);
  if (taken) return taken;
  return wrong(taken.error() +
               "; the export as a whole also has fsid=N, at_once, offload, nfs_only, mp, mp=PATH "
               "and client=NETWORK, in a table 'clients'");
}

// Others have nowhere for it to be mounted.
Parsed check_mount_point(const ExportLine& line) {
  const bool folder = !line.folder.empty() && !is_ceph(line.folder);
  return folder || !line.mount_point ? Parsed(Ok{}) : wrong("mp is an option of folders");
}

// A client whose options have not been merged with the export's.
struct ClientWords {
  std::string match;
  std::vector<std::string> options{};
};

Parsed take_client(const ClientWords& client, ExportLine& line) {
  nfs::ExportOptions options = line.options;
  for (const std::string& word : client.options)
    if (const Parsed taken = take_option(word, options); !taken) return taken;
  if (is_host_name(client.match)) {
    line.clients.push_back(host_rule(client.match, options));
    line.hosts[client.match];
    return Ok{};
  }
  Result<nfs::ClientRule, nfs::ExportError> rule = nfs::make_client_rule(client.match, options);
  if (!rule) return wrong(rule.error().message);
  line.clients.push_back(*std::move(rule));
  return Ok{};
}

Result<ClientWords, std::string> client_of_text(std::string_view text) {
  ClientWords client;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos)
      return wrong(fmt::format("client '{}': ']' is missing", text));
    client.match = text.substr(1, bracket - 1);
    text.remove_prefix(bracket + 1);
  } else if (text.find("::") != std::string_view::npos) {
    return wrong(fmt::format(
        "client '{}': an IPv6 address stands in brackets: client=[2001:db8::]/32:rw", text));
  }
  const std::vector<std::string_view> parts = split(text, ':');
  if (!parts.empty()) client.match += parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    // sec=krb5:krb5i is one option, although ':' separates options here.
    const bool more_flavors = !client.options.empty() &&
                              client.options.back().starts_with("sec=") &&
                              nfs::flavor_named(parts[i]);
    if (more_flavors)
      (client.options.back() += ':') += parts[i];
    else
      client.options.emplace_back(parts[i]);
  }
  return client;
}

Parsed parse_words(std::string_view text, ExportLine& line) {
  constexpr std::string_view kClient = "client=";
  std::vector<ClientWords> clients;
  for (const std::string_view word : split(text, ',')) {
    if (!word.starts_with(kClient)) {
      if (const Parsed taken = take_word(word, line); !taken) return taken;
      continue;
    }
    auto client = client_of_text(word.substr(kClient.size()));
    if (!client) return wrong(client.error());
    clients.push_back(*std::move(client));
  }
  for (const ClientWords& client : clients)
    if (const Parsed taken = take_client(client, line); !taken) return taken;
  return Ok{};
}

// One table of a configuration file, and its errors.
class Table {
 public:
  Table(const std::string& path, const Value& value) : path_(path), value_(value) {}

  Result<ExportLine, std::string> parse() const {
    ExportLine line;
    line.where = place_in(path_, value_.line);
    std::vector<ClientWords> clients;
    std::vector<unsigned> lines;  // of the clients
    for (const Setting& member : value_.members) {
      const Parsed taken = member.key == "clients" ? take_clients(member, clients, lines)
                                                   : take_member(member, line);
      if (!taken) return wrong(taken.error());
    }
    if (line.path.empty() || !has("folder"))
      return wrong(line.where + "an export wants a 'path' and a 'folder', which may be \"memory\"");
    if (const Parsed checked = check_mount_point(line); !checked)
      return wrong(line.where + checked.error());
    for (std::size_t i = 0; i < clients.size(); ++i)
      if (const Parsed taken = take_client(clients[i], line); !taken)
        return wrong(place_in(path_, lines[i]) + taken.error());
    return line;
  }

 private:
  bool has(std::string_view key) const {
    return std::any_of(value_.members.begin(), value_.members.end(),
                       [&](const Setting& member) { return member.key == key; });
  }

  Parsed take_member(const Setting& member, ExportLine& line) const {
    constexpr std::string_view kKeys[] = {"path", "folder", "options", "fsid"};
    if (std::ranges::find(kKeys, member.key) == std::end(kKeys))
      return wrong(fmt::format(
          "{}there is no '{}' in an export, which has path, folder, options, fsid and clients; a "
          "setting of the server stands above the first [[export]]",
          place_in(path_, member.line), member.key));
    const auto texts = texts_of(member, member.key == "options");
    if (!texts) return wrong(texts.error());
    Parsed taken = Ok{};
    if (member.key == "path")
      line.path = texts->front();
    else if (member.key == "folder")
      line.folder = texts->front() == "memory" ? "" : texts->front();
    else if (member.key == "fsid")
      taken = take_file_system_id(texts->front(), line);
    else
      for (std::size_t i = 0; i < texts->size() && taken; ++i) taken = take_word((*texts)[i], line);
    if (!taken) return wrong(place_in(path_, member.line) + taken.error());
    return Ok{};
  }

  Parsed take_clients(const Setting& member, std::vector<ClientWords>& clients,
                      std::vector<unsigned>& lines) const {
    for (const Value& value : member.values) {
      ClientWords client;
      for (const Setting& part : value.members) {
        const bool options = part.key == "options";
        if (!options && part.key != "match") return no_client(part.line);
        const auto texts = texts_of(part, options);
        if (!texts) return wrong(texts.error());
        if (options)
          client.options = *texts;
        else
          client.match = texts->front();
      }
      if (client.match.empty()) return no_client(value.line);
      clients.push_back(std::move(client));
      lines.push_back(value.line);
    }
    return Ok{};
  }

  Failure<std::string> no_client(unsigned line) const {
    return wrong(place_in(path_, line) +
                 "a client is written {match = \"192.0.2.0/24\", options = [\"rw\"]}");
  }

  // The texts of an array, or a single text.
  Result<std::vector<std::string>, std::string> texts_of(const Setting& member, bool array) const {
    std::vector<std::string> texts;
    for (const Value& value : member.values)
      if (!value.is_table) texts.push_back(value.text);
    if (texts.size() != member.values.size() || member.is_array != array)
      return wrong(fmt::format("{}'{}' must be {}", place_in(path_, member.line), member.key,
                               array ? "an array of texts" : "one value"));
    return texts;
  }

  const std::string& path_;
  const Value& value_;
};

Result<ExportLine, std::string> parse_text(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t comma = std::min(text.find(',', std::min(equals, text.size())), text.size());
  if (equals == std::string_view::npos || equals == 0 || text[0] != '/' || comma == equals + 1)
    return wrong(
        fmt::format("is not understood; write /name=DIR{} /name=memory{}, then options: "
                    "/data=/srv/data,ro,all_squash",
                    serves_ceph() ? "," : " or", serves_ceph() ? " or /name=ceph:PATH" : ""));
  ExportLine line;
  line.path = text.substr(0, equals);
  line.folder = text.substr(equals + 1, comma - equals - 1);
  if (line.folder == "memory") line.folder.clear();
  const Parsed words = parse_words(text.substr(std::min(comma + 1, text.size())), line);
  if (!words) return wrong(words.error());
  if (const Parsed checked = check_mount_point(line); !checked) return wrong(checked.error());
  return line;
}

}  // namespace

Result<ExportLine, std::string> parse_export(std::string_view text) {
  Result<ExportLine, std::string> line = parse_text(text);
  if (!line) return wrong(fmt::format("--export '{}': {}", text, line.error()));
  line->where = fmt::format("--export {}: ", line->path);
  return line;
}

Result<std::vector<ExportLine>, std::string> parse_exports(const std::string& path,
                                                           const Setting& setting) {
  std::vector<ExportLine> lines;
  for (const Value& value : setting.values) {
    const std::string where = place_in(path, value.line);
    Result<ExportLine, std::string> line =
        value.is_table ? Table(path, value).parse() : parse_text(value.text);
    if (!line)
      return wrong(value.is_table
                       ? line.error()
                       : fmt::format("{}export '{}': {}", where, value.text, line.error()));
    line->where = where;
    lines.push_back(*std::move(line));
  }
  return lines;
}

}  // namespace stag::cli
