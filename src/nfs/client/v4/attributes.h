// fattr4 (RFC 8881 section 5): which attributes are asked for, and what their values say.
#pragma once

#include <initializer_list>
#include <optional>

#include "nfs/client/protocol/types.h"
#include "nfs/proto/nfs4.h"

namespace stag::nfs::client::nfs4 {

v4::bitmap4 bitmap_of(std::initializer_list<std::uint32_t> numbers);
bool has(const v4::bitmap4& bitmap, std::uint32_t number);

// Those of client::Attributes; of an entry of a directory, also its handle; of a file system.
const v4::bitmap4& node_attributes();
const v4::bitmap4& entry_attributes();
const v4::bitmap4& usage_attributes();
const v4::bitmap4& info_attributes();
const v4::bitmap4& name_attributes();
const v4::bitmap4& acl_attribute();

// The values that a server gave; where it left an attribute out, the default.
struct Values {
  Values() {}  // like InlineVector's

  bool has_type = false;
  Attributes attributes{};
  std::uint64_t mounted_on_file_id = 0;
  std::optional<Handle> handle{};
  v4::nfsstat4 error = v4::NFS4_OK;  // rdattr_error
  FileSystemUsage usage{};
  FileSystemInfo info{};
  NameLimits names{};
  std::uint32_t lease_seconds = 0;
  Nfs4Acl acl{};
};
// False, or nullopt: they cannot be read, or one of them was not asked for by any of the sets
// above.
[[nodiscard]] bool read_values(const v4::fattr4& from, Values& to);
std::optional<Values> values_of(const v4::fattr4& from);

// The attributes that `changes` sets.
v4::fattr4 to_fattr4(const SetAttributes& changes);
v4::fattr4 to_fattr4(const Nfs4Acl& acl);
// For VERIFY and NVERIFY.
v4::fattr4 type_is(FileType type);
v4::fattr4 changed_at(const Time& time);

}  // namespace stag::nfs::client::nfs4
