// fattr4 (RFC 8881 section 5): which attributes are asked for, and what their values say.
#pragma once

#include <initializer_list>
#include <optional>

#include "nfs/client/protocol/types.h"
#include "nfs/proto/nfs4.h"
#include "xdr/decoder.h"

namespace stag::nfs::client::nfs4 {

v4::bitmap4 bitmap_of(std::initializer_list<std::uint32_t> numbers);
bool has(const v4::bitmap4& bitmap, std::uint32_t number);

// What a GETATTR asks for. `results_max`: bytes that its results take at most.
struct AskedAttributes {
  explicit AskedAttributes(v4::bitmap4 numbers);

  const v4::bitmap4 bitmap;
  const std::uint32_t results_max;
};
// Those of client::Attributes; of an entry of a directory, also its handle; of a file system; and
// single ones.
const AskedAttributes& node_attributes();
const AskedAttributes& entry_attributes();
const AskedAttributes& usage_attributes();
const AskedAttributes& info_attributes();
const AskedAttributes& name_attributes();
const AskedAttributes& acl_attributes();
const AskedAttributes& change_attribute();
const AskedAttributes& lease_attribute();

// The values that a server gave; where it left an attribute out, the default.
struct Values {
  Values() {}  // like InlineVector's

  // Absent: it gave none. Unreadable: they cannot be read, or one of them was not asked for by any
  // of the sets above.
  enum class State : std::uint8_t { Absent, Unreadable, Whole };
  State state = State::Absent;
  bool whole() const { return state == State::Whole; }
  void forget() {
    if (state != State::Absent) reset();
  }
  // Whole, and those of an object.
  bool describe_node() const { return whole() && has_type; }

  bool has_type = false;
  Attributes attributes;  // with {}, g++ fills it with zeros first
  std::uint64_t mounted_on_file_id = 0;
  std::optional<Handle> handle{};
  v4::nfsstat4 error = v4::NFS4_OK;  // rdattr_error
  FileSystemUsage usage{};
  FileSystemInfo info{};
  NameLimits names{};
  std::uint32_t lease_seconds = 0;
  bool has_acl = false;
  Nfs4Acl acl{};

 private:
  void reset();
};
// Decodes those of a GETATTR that succeeded, behind its status. False: they are no GETATTR4resok.
[[nodiscard]] bool decode_values(xdr::Decoder& from, Values& to);
// nullopt: unreadable.
std::optional<Values> values_of(const v4::fattr4& from);

// The attributes that `changes` sets.
v4::fattr4 to_fattr4(const SetAttributes& changes);
v4::fattr4 to_fattr4(const Nfs4Acl& acl);
// For VERIFY and NVERIFY.
v4::fattr4 type_is(FileType type);
v4::fattr4 changed_at(const Time& time);

}  // namespace stag::nfs::client::nfs4
