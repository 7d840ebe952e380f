// The attributes of NFSv4 (RFC 8881 section 5) to and from those of vfs.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/result.h"
#include "nfs/acl/acl_map.h"
#include "nfs/export/file_handle.h"
#include "nfs/v4/attributes/attribute_set.h"
#include "nfs/v4/attributes/id_map.h"
#include "vfs/vfs.h"

namespace stag::nfs::nfs4 {

// The most that a READ or WRITE moves, bytes.
inline constexpr std::uint32_t kMaxTransfer = 1 << 20;
// The most entries of an access control list that are taken from a client.
inline constexpr std::uint32_t kMaxAces = 256;

// All that can be read (5.5 to 5.8), in any minor version or in one of 0 to 2; that can be set; and
// that OPEN can set together with EXCLUSIVE4_1, whose verifier takes the place of the times.
AttributeSet readable_attributes();
AttributeSet readable_attributes(std::uint32_t minor);
AttributeSet settable_attributes();
AttributeSet exclusive_create_attributes();

// What is known of one object when its attributes are encoded.
struct AttributeSource {
  // Not defaulted, so that making one in place does not fill it with zeros first.
  AttributeSource() {}
  vfs::Attributes attributes;
  v4::fsid4 fsid;
  std::uint64_t mounted_on_fileid = 0;
  vfs::Limits limits;
  std::uint32_t lease_seconds = 0;
  std::uint32_t minor = 2;       // the version that it is encoded for
  const IdMap* names = nullptr;  // null: owners are numbers
  // Each is needed only where wants_...() says so. Without `acls` no list is encoded.
  std::optional<vfs::Usage> usage;
  std::optional<vfs::Acls> acls;
  FileHandles::Sealed handle;
};

// Whether encoding `asked` takes more than an object's own attributes.
bool wants_usage(AttributeSet asked);
bool wants_handle(AttributeSet asked);
bool wants_acls(AttributeSet asked);
// The users and groups whose names a client is told with these attributes of the source.
std::vector<IdName> owners_in(AttributeSet asked, const AttributeSource& source);

// Those of `asked` that there are in the source's minor version and of its object.
AttributeSet given_attributes(AttributeSet asked, const AttributeSource& source);
// A fattr4 with these.
void encode_attributes(xdr::Encoder& encoder, AttributeSet asked, const AttributeSource& source);
// Whether these are exactly the attributes that stat() tells, which every object has in every minor
// version; and the same fattr4 of them, without a source, where owners are numbers.
bool is_stat(AttributeSet asked);
void encode_stat(xdr::Encoder& encoder, const vfs::Attributes& attributes);
// A fattr4 that tells a READDIR why there is nothing else (5.8.1.12), if that is asked for.
void encode_attribute_error(xdr::Encoder& encoder, AttributeSet asked, v4::nfsstat4 status);

// What an object is to be given.
struct WantedAttributes {
  AttributeSet set;
  vfs::SetAttributes values;
  std::optional<Aces> acl;
  // Of an owner that is no number: whose number is still to be found, as of the names in the list.
  std::string owner{}, owner_group{};
};
// ATTRNOTSUPP for what cannot be set or is not known, INVAL for what can only be read, BADXDR for
// values that are not those of the mask, BADOWNER for an owner that is no text.
Result<WantedAttributes, v4::nfsstat4> decode_attributes(const v4::fattr4& attributes);

}  // namespace stag::nfs::nfs4
