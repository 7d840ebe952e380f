#include "cli/serve/exports_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/serve/mount_point.h"

namespace stag::cli {
namespace {

using Parsed = Result<Ok, std::string>;
using oncrpc::AuthFlavor;

struct Known {
  std::string_view word;
  std::string_view remark;  // empty: it is as here, or a hint that changes nothing
};
constexpr Known kKnown[] = {
    {"sync", ""},
    {"async", "is not done: data is as durable as clients ask for"},
    {"wdelay", ""},
    {"no_wdelay", ""},
    {"no_subtree_check", ""},
    {"subtree_check",
     "is not done: a file that was moved out of the folder is reached by the handle that a client "
     "has of it"},
    {"hide", ""},
    {"nohide", "is not done: what is mounted below needs a line of its own"},
    {"crossmnt", "is not done: what is mounted below needs a line of its own"},
    {"acl", ""},
    {"no_acl", "is not done: clients see access control lists"},
    {"secure_locks", ""},
    {"auth_nlm", ""},
    {"insecure_locks", "is not done: locks need the rights that the file needs"},
    {"no_auth_nlm", "is not done: locks need the rights that the file needs"},
    {"no_pnfs", ""},
    {"pnfs", "is not done: there are no layouts"},
    {"security_label", "is not done: there are no labels"},
    {"nordirplus", "is not done: READDIRPLUS is served"},
};

bool is_uuid(std::string_view text) {
  return text.size() >= 16 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
                  c == '-' || c == ':';
         });
}

// The first 64 bits of a UUID.
std::uint64_t number_of_uuid(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '-' && c != ':' && digits.size() < 16) digits += c;
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

Parsed take_fsid(std::string_view value, ExportsWords& words, std::vector<std::string>& remarks) {
  if (value == "root" || value == "0") {
    remarks.push_back(
        "fsid=0 is not done: version 4 has all exports below its root, each under its path");
    return Ok{};
  }
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == value.data() + value.size();
  if (!whole && !is_uuid(value))
    return Failure{fmt::format("fsid '{}' is no number and no UUID", value)};
  words.file_system_id = whole ? number : number_of_uuid(value);
  return Ok{};
}

Parsed take_transport_security(std::string_view value) {
  while (!value.empty()) {
    const std::string_view each = value.substr(0, value.find(':'));
    if (each == "none") return Ok{};
    value.remove_prefix(std::min(each.size() + 1, value.size()));
  }
  return Failure{std::string(
      "xprtsec: RPC-with-TLS is not in this build; without it nobody may mount the export")};
}

// -2 is how exports(5) writes the number before the largest.
std::string unsigned_id(std::string_view word) {
  const std::size_t equals = word.find('=');
  std::int64_t value = 0;
  const std::string_view digits = word.substr(equals + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec != std::errc() || value >= 0 || value < INT32_MIN) return std::string(word);
  return fmt::format("{}={}", word.substr(0, equals), static_cast<std::uint32_t>(value));
}

class Reader {
 public:
  explicit Reader(std::vector<std::string>& remarks) : remarks_(remarks) {
    words_.options.read_only = true;
    words_.options.secure = true;
    words_.options.flavors = {AuthFlavor::AUTH_SYS};
  }

  ExportsWords finished() && {
    nfs::ExportOptions& options = words_.options;
    words_.flavors_given = !flavors_.empty();
    if (!words_.flavors_given) return std::move(words_);
    options.flavors.clear();
    for (const FlavorFlags& each : flavors_) options.flavors.push_back(each.flavor);
    options.read_only = any(&FlavorFlags::read_only);
    options.root_squash = any(&FlavorFlags::root_squash);
    options.all_squash = any(&FlavorFlags::all_squash);
    take_strictest(options);
    std::vector<nfs::ExportOptions> by_flavor(flavors_.size(), options);
    for (std::size_t i = 0; i < flavors_.size(); ++i) {
      flavors_[i].apply_to(by_flavor[i]);
      by_flavor[i].secure = options.secure;
      by_flavor[i].rdma = options.rdma;
    }
    const auto same = [&](const nfs::ExportOptions& each) { return each == options; };
    if (!std::ranges::all_of(by_flavor, same)) options.by_flavor = std::move(by_flavor);
    return std::move(words_);
  }

  Parsed take(std::string_view word) {
    constexpr std::string_view kFsid = "fsid=", kTransport = "xprtsec=";
    if (word.starts_with(kFsid)) return take_fsid(word.substr(kFsid.size()), words_, remarks_);
    if (word.starts_with(kTransport))
      return take_transport_security(word.substr(kTransport.size()));
    if (auto at = mount_point_in(word)) return words_.mount_point = *std::move(at), Ok{};
    if (word.starts_with("refer=")) return words_.elsewhere = true, Ok{};
    if (word.starts_with("replicas=")) {
      remarks_.push_back(fmt::format("{} is not done: clients are told of no other place", word));
      return Ok{};
    }
    const auto* known = std::ranges::find(kKnown, word, &Known::word);
    if (known == std::end(kKnown)) return take_common(word);
    if (!known->remark.empty()) remarks_.push_back(fmt::format("{} {}", word, known->remark));
    return Ok{};
  }

 private:
  // exports(5): what stands behind sec=, up to the next one, is for its flavors.
  struct FlavorFlags {
    AuthFlavor flavor;
    bool read_only, root_squash, all_squash, secure, no_rdma;

    FlavorFlags(AuthFlavor of, const nfs::ExportOptions& options) : flavor(of) {
      take_from(options);
    }
    void apply_to(nfs::ExportOptions& options) const {
      options.read_only = read_only;
      options.root_squash = root_squash;
      options.all_squash = all_squash;
      options.secure = secure;
      options.rdma = !no_rdma;
    }
    void take_from(const nfs::ExportOptions& options) {
      read_only = options.read_only;
      root_squash = options.root_squash;
      all_squash = options.all_squash;
      secure = options.secure;
      no_rdma = !options.rdma;
    }
  };

  bool any(bool FlavorFlags::*flag) const {
    return std::ranges::any_of(flavors_, [flag](const FlavorFlags& each) { return each.*flag; });
  }
  // A client's port and transport are looked at before the flavor of its calls. What the file
  // forbids with one flavor is forbidden with all, lest it be admitted because of another one.
  void take_strictest(nfs::ExportOptions& options) {
    options.secure = any(&FlavorFlags::secure);
    options.rdma = !any(&FlavorFlags::no_rdma);
    const auto not_all = [this](bool FlavorFlags::*flag) {
      return !std::ranges::all_of(flavors_, [&](const FlavorFlags& each) { return each.*flag; });
    };
    for (const auto& [flag, name] :
         {std::pair(&FlavorFlags::secure, "secure"), std::pair(&FlavorFlags::no_rdma, "no_rdma")})
      if (any(flag) && not_all(flag))
        remarks_.push_back(
            fmt::format("{} does not differ by flavor: one has it, and so do all", name));
  }
  // As exportfs has it, a flavor begins with what was said of all before it, and of others.
  void take_flavors() {
    const nfs::ExportOptions& so_far = words_.options;
    told_ = so_far.flavors;
    for (const AuthFlavor flavor : told_)
      if (std::ranges::find(flavors_, flavor, &FlavorFlags::flavor) == flavors_.end())
        flavors_.emplace_back(flavor, so_far);
  }
  // The options that --export has, too.
  Parsed take_common(std::string_view word) {
    const std::string option = unsigned_id(word);
    const auto applied = nfs::apply_export_option(option, words_.options);
    if (!applied) return Failure{applied.error().message};
    if (word.starts_with("sec=")) return take_flavors(), Ok{};
    for (FlavorFlags& each : flavors_) {
      if (std::ranges::count(told_, each.flavor) == 0) continue;
      nfs::ExportOptions of_flavor;
      each.apply_to(of_flavor);
      static_cast<void>(nfs::apply_export_option(option, of_flavor));
      each.take_from(of_flavor);
    }
    return Ok{};
  }

  std::vector<std::string>& remarks_;
  ExportsWords words_;
  std::vector<FlavorFlags> flavors_;  // in the order in which they were named
  std::vector<AuthFlavor> told_;      // of the latest sec=
};

}  // namespace

bool says_what_is(std::string_view word) {
  const auto* const known = std::ranges::find(kKnown, word, &Known::word);
  return known != std::end(kKnown) && known->remark.empty();
}

Result<ExportsWords, std::string> parse_exports_words(std::string_view text,
                                                      std::vector<std::string>& remarks) {
  Reader reader(remarks);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const Parsed taken = reader.take(word);
    if (!taken) return Failure{taken.error()};
  }
  return std::move(reader).finished();
}

}  // namespace stag::cli
