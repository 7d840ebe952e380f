#include "cli/serve/records_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "cli/serve/ceph_settings.h"
#include "nfs/export/state/durable_file.h"

namespace stag::cli {
namespace {

constexpr std::string_view kRecordsScheme = "ceph:";

// SQLite's VFS takes no others in its paths.
bool is_pool_name(std::string_view text) {
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
         std::string_view::npos;
}

constexpr const char* kNote = "nfs4-clients.place";
constexpr std::size_t kLongestNote = 1024;

}  // namespace

bool is_records_place(std::string_view text) {
  return text.starts_with(kRecordsScheme);
}

Result<nfs::recovery::RadosPlace, std::string> parse_records_place(std::string_view text) {
  nfs::recovery::RadosPlace place;
  const std::string_view all = text;
  if (!is_records_place(text))
    return Failure{fmt::format(
        "'{}' is no place for records; write ceph:POOL/NAMESPACE, or leave it out for the state "
        "directory",
        all)};
  text.remove_prefix(kRecordsScheme.size());
  const std::size_t question = std::min(text.find('?'), text.size());
  const std::string_view where = text.substr(0, question);
  const std::size_t slash = std::min(where.find('/'), where.size());
  place.pool = where.substr(0, slash);
  place.name_space = where.substr(std::min(slash + 1, where.size()));
  const bool named = !place.pool.empty() && (slash == where.size()) == place.name_space.empty();
  if (!named || !is_pool_name(place.pool) || !is_pool_name(place.name_space))
    return Failure{
        fmt::format("'{}' names no pool of Ceph; write ceph:POOL/NAMESPACE, both of letters, "
                    "digits, '.', '_' and '-'",
                    all)};
  const auto read =
      read_ceph_settings(text.substr(std::min(question + 1, text.size())),
                         {{"conf", &place.configuration}, {"id", &place.id}},
                         "after a place for records; there are conf=FILE and id=NAME");
  if (!read) return Failure{read.error()};
  return place;
}

bool same_records(const nfs::recovery::RadosPlace& one, const nfs::recovery::RadosPlace& other) {
  return one.pool == other.pool && one.name_space == other.name_space;
}

Result<Ok, std::string> note_records_place(const std::string& directory,
                                           const nfs::recovery::RadosPlace* place) {
  const auto noted = place != nullptr ? nfs::replace_file(directory, kNote, name_of(*place) + "\n")
                                      : nfs::remove_file(directory, kNote);
  if (!noted) return Failure{noted.error().message};
  return Ok{};
}

// What is there does not reach the sentence: anybody may have written it.
Result<std::optional<nfs::recovery::RadosPlace>, std::string> noted_records_place(
    const std::string& directory) {
  const std::string path = directory + "/" + kNote;
  std::error_code unseen;
  if (!std::filesystem::exists(path, unseen) && !unseen)
    return std::optional<nfs::recovery::RadosPlace>();
  std::array<char, kLongestNote> content;
  std::ifstream file(path, std::ios::binary);
  file.read(content.data(), content.size());
  if (!file.is_open() || file.bad())
    return Failure{fmt::format("cannot read '{}'; see that the server's user may", path)};
  const std::string_view text(content.data(), static_cast<std::size_t>(file.gcount()));
  auto place = parse_records_place(text.substr(0, text.find('\n')));
  // The beginning of a name is another name.
  const bool whole = text.size() < kLongestNote;
  if (!whole || !place || !place->configuration.empty() || !place->id.empty())
    return Failure{fmt::format(
        "'{}' does not say where the records of version 4 clients are; write ceph:POOL/NAMESPACE "
        "there as --records of the lost gateway has it, or remove it where they are lost",
        path)};
  return std::optional(*std::move(place));
}

}  // namespace stag::cli
