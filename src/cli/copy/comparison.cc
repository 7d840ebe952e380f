#include "cli/copy/comparison.h"

#include <algorithm>

namespace stag::cli {
namespace {

constexpr std::uint64_t kComparedAtOnce = std::uint64_t{1} << 20;

// As a server of version 2 shows it, if it is Stag.
std::uint32_t folded(std::uint64_t file_id) {
  return static_cast<std::uint32_t>(file_id ^ file_id >> 32);
}

}  // namespace

Task<Outcome<bool>> same_content(CopyEndpoint& from, CopyObject source, CopyEndpoint& to,
                                 CopyObject existing, std::uint64_t length) {
  const std::size_t piece = std::min(kComparedAtOnce, length);
  std::vector<std::byte> ours(piece), theirs(piece);
  for (std::uint64_t at = 0; at < length;) {
    const std::size_t wanted = std::min<std::uint64_t>(piece, length - at);
    const auto part = [wanted](std::vector<std::byte>& bytes) {
      return MutableBytes(bytes).first(wanted);
    };
    const Outcome<std::uint64_t> here = co_await from.read_at(source, at, part(ours));
    if (!here) co_return Failure{here.error()};
    const Outcome<std::uint64_t> there = co_await to.read_at(existing, at, part(theirs));
    if (!there) co_return Failure{there.error()};
    if (*here != wanted || *there != wanted || ours != theirs) co_return false;
    at += wanted;
  }
  co_return true;
}

bool same_time(const nfs::client::Time& a, const nfs::client::Time& b) {
  return a.seconds == b.seconds && a.nanoseconds / 1000 == b.nanoseconds / 1000;
}

bool same_kept_time(const nfs::client::Time& existing, const nfs::client::Time& wanted,
                    std::uint32_t window) {
  const auto [first, last] = std::minmax(existing.seconds, wanted.seconds);
  const std::uint64_t apart = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  const bool whole = apart == 0 && existing.nanoseconds == 0;
  return whole || same_time(existing, wanted) || (window > 0 && apart <= window);
}

bool same_file_id(const CopyObject& a, const CopyObject& b) {
  return folded(a.file_id) == folded(b.file_id);
}

bool seem_to_be_one(const CopyObject& a, const CopyObject& b) {
  return same_file_id(a, b) && a.size == b.size && same_time(a.modified, b.modified) &&
         same_time(a.changed, b.changed);
}

}  // namespace stag::cli
