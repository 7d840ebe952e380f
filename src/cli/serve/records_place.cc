#include "cli/serve/records_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/serve/ceph_settings.h"

namespace stag::cli {
namespace {

constexpr std::string_view kRecordsScheme = "ceph:";

// SQLite's VFS takes no others in its paths.
bool is_pool_name(std::string_view text) {
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
         std::string_view::npos;
}

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
                         "behind a place for records; there are conf=FILE and id=NAME");
  if (!read) return Failure{read.error()};
  return place;
}

bool same_records(const nfs::recovery::RadosPlace& one, const nfs::recovery::RadosPlace& other) {
  return one.pool == other.pool && one.name_space == other.name_space;
}

}  // namespace stag::cli
