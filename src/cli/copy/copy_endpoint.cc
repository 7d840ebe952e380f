#include "cli/copy/copy_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

namespace stag::cli {
namespace {

constexpr std::size_t kBlock = 4096;

bool all_zeros(Bytes data) {
  return std::all_of(data.begin(), data.end(), [](std::byte byte) { return byte == std::byte{}; });
}

}  // namespace

Task<bool> make_writable(CopyEndpoint& endpoint, CopyObject directory) {
  const std::uint32_t mode = directory.mode | kOwnersRights;
  if (endpoint.is_superuser() || mode == directory.mode) co_return false;
  // A caller that is not its owner is told by what fails in it.
  const Outcome<Ok> made = co_await endpoint.finish(std::move(directory), {.mode = mode});
  co_return made.ok();
}

bool can_own(const Owner& owner) {
  return owner.uid != kNoOwner && owner.gid != kNoOwner;
}

bool Extras::same_as(const Extras& other) const {
  const auto same_lists = [](const nfs::client::Acls& a, const nfs::client::Acls& b) {
    return a.access == b.access && a.defaults == b.defaults;
  };
  const bool same_acls = acls && other.acls ? same_lists(*acls, *other.acls) : !acls && !other.acls;
  return xattrs == other.xattrs && same_acls && nfs4_acl == other.nfs4_acl;
}

Task<Outcome<Ok>> CopyEndpoint::check_readable(CopyObject file) {
  std::byte first{};
  const Outcome<std::uint64_t> got = co_await read_at(std::move(file), 0, MutableBytes(&first, 1));
  if (!got) co_return Failure{got.error()};
  co_return Ok{};
}

Task<Outcome<Ok>> punch_holes(NextHole next_hole, TempFile& temp_file, std::uint64_t kept) {
  std::uint64_t at = 0;
  while (at < kept) {
    const Outcome<std::optional<nfs::client::FileRange>> hole = co_await next_hole(at);
    if (!hole) co_return Failure{hole.error()};
    if (!*hole || (*hole)->offset >= kept) break;
    const std::uint64_t length = std::min((*hole)->length, kept - (*hole)->offset);
    const Outcome<bool> punched = co_await temp_file.punch({(*hole)->offset, length});
    if (!punched) co_return Failure{punched.error()};
    if (!*punched) break;
    at = (*hole)->offset + length;
  }
  co_return Ok{};
}

std::string temporary_name() {
  std::random_device random;
  return fmt::format(".stag-{:08x}{:08x}", random(), random());
}

Stretch next_stretch(Bytes data, std::uint64_t offset) {
  Stretch stretch;
  while (stretch.length < data.size()) {
    const std::size_t to_border = kBlock - (offset + stretch.length) % kBlock;
    const Bytes block =
        data.subspan(stretch.length, std::min(to_border, data.size() - stretch.length));
    const bool zeros = all_zeros(block);
    if (stretch.length > 0 && zeros != stretch.zeros) break;
    stretch.zeros = zeros;
    stretch.length += block.size();
  }
  return stretch;
}

}  // namespace stag::cli
