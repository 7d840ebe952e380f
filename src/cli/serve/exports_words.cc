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

// Clients would look for the files elsewhere.
constexpr std::string_view kRefused[] = {"refer=", "replicas="};

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
  const ExportsWords& words() const { return words_; }

  Parsed take(std::string_view word) {
    constexpr std::string_view kFsid = "fsid=", kTransport = "xprtsec=";
    if (word.starts_with(kFsid)) return take_fsid(word.substr(kFsid.size()), words_, remarks_);
    if (word.starts_with(kTransport))
      return take_transport_security(word.substr(kTransport.size()));
    if (auto at = mount_point_in(word)) return words_.mount_point = *std::move(at), Ok{};
    for (const std::string_view name : kRefused)
      if (word.starts_with(name))
        return Failure{fmt::format("'{}' cannot be done: there are no referrals here", word)};
    const auto* known = std::ranges::find(kKnown, word, &Known::word);
    if (known == std::end(kKnown)) return take_common(word);
    if (!known->remark.empty()) remarks_.push_back(fmt::format("{} {}", word, known->remark));
    return Ok{};
  }

 private:
  // The options that --export has, too.
  Parsed take_common(std::string_view word) {
    const bool flavors = word.starts_with("sec=");
    // exports(5): "sec=sys,rw,sec=krb5,ro" gives each flavor its own options.
    if (flavors && flavors_given_ && told_since_)
      return Failure{
          std::string("options that differ by flavor cannot be done; write all flavors as one: "
                      "sec=sys:krb5")};
    std::vector<AuthFlavor> before = words_.options.flavors;
    const auto applied = nfs::apply_export_option(unsigned_id(word), words_.options);
    if (!applied) return Failure{applied.error().message};
    if (flavors && flavors_given_) {
      for (const AuthFlavor each : words_.options.flavors)
        if (std::ranges::find(before, each) == before.end()) before.push_back(each);
      words_.options.flavors = std::move(before);
    }
    told_since_ = !flavors && (flavors_given_ || told_since_);
    flavors_given_ = flavors_given_ || flavors;
    return Ok{};
  }

  std::vector<std::string>& remarks_;
  ExportsWords words_;
  bool flavors_given_ = false, told_since_ = false;
};

}  // namespace

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
  return reader.words();
}

}  // namespace stag::cli
