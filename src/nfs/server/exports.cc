#include "nfs/server/exports.h"

#include <charconv>

namespace stag::nfs {

namespace {

constexpr std::size_t kMaxPath = 1024;  // MNTPATHLEN, RFC 1813 5.1.2

// (uid_t)-1 is nobody's number: system calls take it for "leave as it is".
constexpr std::uint32_t kNoId = 0xffffffff;

// The number behind `name` in `word`; nullopt when the word is another one or no number follows.
std::optional<std::uint32_t> number_of(std::string_view word, std::string_view name) {
  if (!word.starts_with(name)) return std::nullopt;
  word.remove_prefix(name.size());
  std::uint32_t value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) return std::nullopt;
  if (value == kNoId) return std::nullopt;
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
};

bool apply(std::string_view word, ExportOptions& options) {
  for (const Flag& flag : kFlags) {
    if (flag.word != word) continue;
    options.*flag.option = flag.value;
    return true;
  }
  if (const auto uid = number_of(word, "anonuid=")) return options.anonymous_uid = *uid, true;
  if (const auto gid = number_of(word, "anongid=")) return options.anonymous_gid = *gid, true;
  return false;
}

}  // namespace

Result<ExportOptions, ExportError> parse_export_options(std::string_view text) {
  ExportOptions options;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    if (!apply(word, options))
      return Failure{
          ExportError{"export option '" + std::string(word) +
                      "' is not known; there are ro, rw, root_squash, no_root_squash, all_squash, "
                      "no_all_squash, secure, insecure, anonuid=N and anongid=N"}};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return options;
}

vfs::Credentials Export::credentials(const rpc::Caller& caller) const {
  vfs::Credentials anonymous;
  anonymous.uid = options.anonymous_uid;
  anonymous.gid = options.anonymous_gid;
  if (options.all_squash || caller.flavor == oncrpc::AuthFlavor::AUTH_NONE) return anonymous;
  const auto squashed = [this](std::uint32_t id, std::uint32_t anonymous_id) {
    return id == kNoId || (options.root_squash && id == 0) ? anonymous_id : id;
  };
  vfs::Credentials credentials;
  credentials.uid = squashed(caller.uid, anonymous.uid);
  credentials.gid = squashed(caller.gid, anonymous.gid);
  for (const std::uint32_t gid : caller.gids)
    credentials.groups.push_back(squashed(gid, anonymous.gid));
  return credentials;
}

bool Export::admits(const rpc::Origin& origin) const {
  // The port of an RDMA client says nothing: its connection is not made by a reserved port.
  return !options.secure || origin.transport == rpc::TransportKind::Rdma ||
         (origin.peer.port > 0 && origin.peer.port < 1024);
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

Result<Ok, ExportError> Exports::add(std::uint32_t id, std::string_view path,
                                     std::shared_ptr<vfs::FileSystem> file_system,
                                     const ExportOptions& options) {
  const auto normal = normal_path(path);
  if (!normal || normal->size() > kMaxPath)
    return Failure{ExportError{"export '" + std::string(path) +
                               "': the name must begin with '/' and hold no '.' or '..'"}};
  for (const auto& other : exports_) {
    if (other->path == *normal)
      return Failure{ExportError{"export '" + *normal + "' is given twice"}};
    if (other->id == id)
      return Failure{ExportError{"exports '" + *normal + "' and '" + other->path +
                                 "' share an id by chance; rename one of them"}};
  }
  exports_.push_back(
      std::make_unique<Export>(Export{id, *normal, std::move(file_system), options}));
  return Ok{};
}

const Export* Exports::find(std::uint32_t id) const {
  for (const auto& candidate : exports_)
    if (candidate->id == id) return candidate.get();
  return nullptr;
}

std::optional<Exports::Match> Exports::match(std::string_view path) const {
  std::optional<Match> best;
  std::size_t best_length = 0;
  for (const auto& candidate : exports_) {
    // "/" as a prefix ends where every path begins.
    const std::size_t length = candidate->path == "/" ? 0 : candidate->path.size();
    if (!path.starts_with(std::string_view(candidate->path).substr(0, length))) continue;
    std::string_view rest = path.substr(length);
    if (!rest.empty() && rest.front() != '/') continue;
    if (best && length <= best_length) continue;
    if (!rest.empty()) rest.remove_prefix(1);
    best = Match{candidate.get(), rest};
    best_length = length;
  }
  return best;
}

}  // namespace stag::nfs
