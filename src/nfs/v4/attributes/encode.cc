#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "nfs/acl/owner_name.h"
#include "nfs/v4/attributes/attributes.h"

namespace stag::nfs::nfs4 {

namespace {

using xdr::Encoder;
using Source = AttributeSource;
using EncodeOne = void (*)(Encoder&, const Source&);

v4::nfs_ftype4 to_nfs_ftype4(vfs::FileType type) {
  switch (type) {
    case vfs::FileType::Regular:
      return v4::NF4REG;
    case vfs::FileType::Directory:
      return v4::NF4DIR;
    case vfs::FileType::Symlink:
      return v4::NF4LNK;
    case vfs::FileType::Fifo:
      return v4::NF4FIFO;
    case vfs::FileType::Socket:
      return v4::NF4SOCK;
    case vfs::FileType::BlockDevice:
      return v4::NF4BLK;
    case vfs::FileType::CharacterDevice:
      return v4::NF4CHR;
  }
  return v4::NF4REG;
}

void put_time(Encoder& to, vfs::Time time) {
  to.integers(time.seconds, time.nanoseconds);
}

std::string text_of(const Source& of, IdKind kind, std::uint32_t id) {
  return of.names != nullptr ? of.names->text_of(kind, id) : owner_name(id);
}
// RFC 8881 5.9: an owner without a name is its number in digits, ten at most, with zeros behind
// them.
class OwnerNumber {
 public:
  explicit OwnerNumber(std::uint32_t id)
      : length_(static_cast<std::uint32_t>(std::to_chars(digits_.begin(), digits_.end(), id).ptr -
                                           digits_.begin())) {}
  std::uint32_t size() const { return 4 + (length_ + 3) / 4 * 4; }
  void put(Encoder& to) const {
    if (length_ <= 4) return to.u32s(length_, word(0));
    to.u32(length_);
    for (std::uint32_t at = 0; at < length_; at += 4) to.u32(word(at));
  }

 private:
  std::uint32_t word(std::uint32_t at) const {
    return load_be<std::uint32_t>(bytes_of({digits_.data() + at, 4}).data());
  }

  std::array<char, 12> digits_{};
  std::uint32_t length_;
};
void put_id(Encoder& to, const Source& of, IdKind kind, std::uint32_t id) {
  if (of.names == nullptr) return OwnerNumber(id).put(to);
  to.string(xdr::kNoItem, of.names->text_of(kind, id));
}
void put_owner(Encoder& to, const Source& of) {
  put_id(to, of, IdKind::User, of.attributes.uid);
}
void put_owner_group(Encoder& to, const Source& of) {
  put_id(to, of, IdKind::Group, of.attributes.gid);
}

void put_acl(Encoder& to, const Source& of) {
  Aces aces = to_aces(*of.acls, of.attributes.type == vfs::FileType::Directory);
  for (v4::nfsace4& ace : aces) {
    const auto id = owner_id(ace.who);
    if (id) ace.who = text_of(of, kind_of(ace), *id);
  }
  to.u32(static_cast<std::uint32_t>(aces.size()));
  for (const v4::nfsace4& ace : aces) encode(to, ace);
}

struct Readable {
  std::uint32_t number;
  EncodeOne encode;
};

// Those that there are in the source's minor version, and that its store knows of the object.
AttributeSet supported_attributes(const Source& source) {
  const AttributeSet readable = readable_attributes(source.minor);
  return source.attributes.created ? readable : readable - AttributeSet{v4::FATTR4_TIME_CREATE};
}

// 5.6, the attributes that every server has.
constexpr Readable kRequired[] = {
    {v4::FATTR4_SUPPORTED_ATTRS,
     [](Encoder& to, const Source& of) {
       const AttributeSet write_only = settable_attributes() - readable_attributes();
       (supported_attributes(of) | write_only).encode(to);
     }},
    {v4::FATTR4_TYPE,
     [](Encoder& to, const Source& of) { to.u32(to_nfs_ftype4(of.attributes.type)); }},
    {v4::FATTR4_FH_EXPIRE_TYPE, [](Encoder& to, const Source&) { to.u32(v4::FH4_PERSISTENT); }},
    {v4::FATTR4_CHANGE, [](Encoder& to, const Source& of) { to.u64(of.attributes.change); }},
    {v4::FATTR4_SIZE, [](Encoder& to, const Source& of) { to.u64(of.attributes.size); }},
    {v4::FATTR4_LINK_SUPPORT,
     [](Encoder& to, const Source& of) { to.boolean(of.limits.hard_links); }},
    {v4::FATTR4_SYMLINK_SUPPORT,
     [](Encoder& to, const Source& of) { to.boolean(of.limits.symlinks); }},
    {v4::FATTR4_NAMED_ATTR, [](Encoder& to, const Source&) { to.boolean(false); }},
    {v4::FATTR4_FSID,
     [](Encoder& to, const Source& of) { to.integers(of.fsid.major, of.fsid.minor); }},
    {v4::FATTR4_UNIQUE_HANDLES, [](Encoder& to, const Source&) { to.boolean(true); }},
    {v4::FATTR4_LEASE_TIME, [](Encoder& to, const Source& of) { to.u32(of.lease_seconds); }},
    {v4::FATTR4_RDATTR_ERROR, [](Encoder& to, const Source&) { to.u32(v4::NFS4_OK); }},
    {v4::FATTR4_FILEHANDLE,
     [](Encoder& to, const Source& of) { to.opaque(xdr::kNoItem, of.handle.bytes()); }},
    {v4::FATTR4_SUPPATTR_EXCLCREAT,
     [](Encoder& to, const Source&) { exclusive_create_attributes().encode(to); }},
};

// 5.7, of one object.
constexpr Readable kOfObject[] = {
    {v4::FATTR4_ACL, put_acl},
    {v4::FATTR4_FILEID, [](Encoder& to, const Source& of) { to.u64(of.attributes.file_id); }},
    {v4::FATTR4_MODE, [](Encoder& to, const Source& of) { to.u32(of.attributes.mode & 07777); }},
    {v4::FATTR4_NUMLINKS, [](Encoder& to, const Source& of) { to.u32(of.attributes.links); }},
    {v4::FATTR4_OWNER, put_owner},
    {v4::FATTR4_OWNER_GROUP, put_owner_group},
    {v4::FATTR4_RAWDEV,
     [](Encoder& to, const Source& of) {
       to.u32s(of.attributes.device.major, of.attributes.device.minor);
     }},
    {v4::FATTR4_SPACE_USED, [](Encoder& to, const Source& of) { to.u64(of.attributes.used); }},
    {v4::FATTR4_TIME_ACCESS,
     [](Encoder& to, const Source& of) { put_time(to, of.attributes.accessed); }},
    {v4::FATTR4_TIME_CREATE,
     [](Encoder& to, const Source& of) { put_time(to, *of.attributes.created); }},
    {v4::FATTR4_TIME_METADATA,
     [](Encoder& to, const Source& of) { put_time(to, of.attributes.changed); }},
    {v4::FATTR4_TIME_MODIFY,
     [](Encoder& to, const Source& of) { put_time(to, of.attributes.modified); }},
    {v4::FATTR4_MOUNTED_ON_FILEID,
     [](Encoder& to, const Source& of) { to.u64(of.mounted_on_fileid); }},
};

const vfs::Usage& usage_of(const Source& source) {
  static constexpr vfs::Usage kUnknown{};
  return source.usage ? *source.usage : kUnknown;
}

// 5.7, of the file system that holds it.
constexpr Readable kOfFileSystem[] = {
    {v4::FATTR4_ACLSUPPORT,
     [](Encoder& to, const Source&) {
       to.u32(v4::ACL4_SUPPORT_ALLOW_ACL | v4::ACL4_SUPPORT_DENY_ACL);
     }},
    {v4::FATTR4_CANSETTIME,
     [](Encoder& to, const Source& of) { to.boolean(of.limits.times_can_be_set); }},
    {v4::FATTR4_CASE_INSENSITIVE,
     [](Encoder& to, const Source& of) { to.boolean(of.limits.case_insensitive); }},
    {v4::FATTR4_CASE_PRESERVING,
     [](Encoder& to, const Source& of) { to.boolean(of.limits.case_preserving); }},
    {v4::FATTR4_CHOWN_RESTRICTED,
     [](Encoder& to, const Source& of) { to.boolean(of.limits.chown_restricted); }},
    {v4::FATTR4_FILES_AVAIL,
     [](Encoder& to, const Source& of) { to.u64(usage_of(of).available_files); }},
    {v4::FATTR4_FILES_FREE, [](Encoder& to, const Source& of) { to.u64(usage_of(of).free_files); }},
    {v4::FATTR4_FILES_TOTAL,
     [](Encoder& to, const Source& of) { to.u64(usage_of(of).total_files); }},
    {v4::FATTR4_HOMOGENEOUS, [](Encoder& to, const Source&) { to.boolean(true); }},
    {v4::FATTR4_MAXFILESIZE,
     [](Encoder& to, const Source& of) { to.u64(of.limits.max_file_size); }},
    {v4::FATTR4_MAXLINK, [](Encoder& to, const Source& of) { to.u32(of.limits.max_links); }},
    {v4::FATTR4_MAXNAME, [](Encoder& to, const Source& of) { to.u32(of.limits.max_name); }},
    {v4::FATTR4_MAXREAD, [](Encoder& to, const Source&) { to.u64(kMaxTransfer); }},
    {v4::FATTR4_MAXWRITE, [](Encoder& to, const Source&) { to.u64(kMaxTransfer); }},
    {v4::FATTR4_NO_TRUNC, [](Encoder& to, const Source&) { to.boolean(true); }},
    {v4::FATTR4_SPACE_AVAIL,
     [](Encoder& to, const Source& of) { to.u64(usage_of(of).available_bytes); }},
    {v4::FATTR4_SPACE_FREE, [](Encoder& to, const Source& of) { to.u64(usage_of(of).free_bytes); }},
    {v4::FATTR4_SPACE_TOTAL,
     [](Encoder& to, const Source& of) { to.u64(usage_of(of).total_bytes); }},
    {v4::FATTR4_TIME_DELTA,
     [](Encoder& to, const Source& of) { put_time(to, of.limits.time_granularity); }},
    // RFC 7862 12.2.1, RFC 8276 8.2.1.
    {v4::FATTR4_CLONE_BLKSIZE,
     [](Encoder& to, const Source& of) { to.u32(of.limits.clone_block); }},
    {v4::FATTR4_XATTR_SUPPORT, [](Encoder& to, const Source& of) { to.boolean(of.limits.xattrs); }},
};

// What versions 4.1 and 4.2 added.
constexpr AttributeSet kOfMinor1{v4::FATTR4_SUPPATTR_EXCLCREAT};
constexpr AttributeSet kOfMinor2{v4::FATTR4_CLONE_BLKSIZE, v4::FATTR4_XATTR_SUPPORT};

// In the order of their numbers, which is that of the values in a fattr4.
constexpr auto kReadable = [] {
  std::array<Readable, std::size(kRequired) + std::size(kOfObject) + std::size(kOfFileSystem)>
      all{};
  auto next = std::ranges::copy(kRequired, all.begin()).out;
  next = std::ranges::copy(kOfObject, next).out;
  std::ranges::copy(kOfFileSystem, next);
  std::ranges::sort(all, {}, &Readable::number);
  return all;
}();

constexpr AttributeSet kReadableByAny = [] {
  AttributeSet set;
  for (const Readable& each : kReadable) set.add(each.number);
  return set;
}();
constexpr AttributeSet kReadableByMinor[] = {kReadableByAny - kOfMinor2 - kOfMinor1,
                                             kReadableByAny - kOfMinor2, kReadableByAny};

// Those that stat() tells, for which nfs/client asks.
constexpr AttributeSet kOfStat{
    v4::FATTR4_TYPE,          v4::FATTR4_CHANGE,     v4::FATTR4_SIZE,       v4::FATTR4_FSID,
    v4::FATTR4_FILEID,        v4::FATTR4_MODE,       v4::FATTR4_NUMLINKS,   v4::FATTR4_OWNER,
    v4::FATTR4_OWNER_GROUP,   v4::FATTR4_RAWDEV,     v4::FATTR4_SPACE_USED, v4::FATTR4_TIME_ACCESS,
    v4::FATTR4_TIME_METADATA, v4::FATTR4_TIME_MODIFY};
static_assert((kOfStat - kReadableByMinor[0]).empty());

// Without a call for each of them, of which there are many.
template <std::size_t... kPlaces>
[[gnu::always_inline]] inline void encode_each(Encoder& to, AttributeSet given, const Source& of,
                                               std::index_sequence<kPlaces...>) {
  ((given.has(kReadable[kPlaces].number) ? kReadable[kPlaces].encode(to, of) : void()), ...);
}

// The bytes that `write` encodes, behind their length, as one opaque.
template <class Write>
void put_values(Encoder& encoder, Write write) {
  const std::uint32_t length_at = encoder.position();
  encoder.u32(0);
  write();
  encoder.patch_u32(length_at, encoder.position() - length_at - 4);
}

}  // namespace

AttributeSet readable_attributes() {
  return kReadableByAny;
}

AttributeSet readable_attributes(std::uint32_t minor) {
  return kReadableByMinor[minor];
}

bool wants_usage(AttributeSet asked) {
  constexpr AttributeSet kUsage{v4::FATTR4_FILES_AVAIL, v4::FATTR4_FILES_FREE,
                                v4::FATTR4_FILES_TOTAL, v4::FATTR4_SPACE_AVAIL,
                                v4::FATTR4_SPACE_FREE,  v4::FATTR4_SPACE_TOTAL};
  return !(asked & kUsage).empty();
}

bool wants_acls(AttributeSet asked) {
  return asked.has(v4::FATTR4_ACL);
}

std::vector<IdName> owners_in(AttributeSet asked, const AttributeSource& source) {
  std::vector<IdName> owners;
  if (asked.has(v4::FATTR4_OWNER)) owners.push_back({IdKind::User, source.attributes.uid});
  if (asked.has(v4::FATTR4_OWNER_GROUP)) owners.push_back({IdKind::Group, source.attributes.gid});
  if (!asked.has(v4::FATTR4_ACL) || !source.acls) return owners;
  for (const v4::nfsace4& ace : to_aces(*source.acls, true))
    if (const auto id = owner_id(ace.who)) owners.push_back({kind_of(ace), *id});
  return owners;
}

bool wants_handle(AttributeSet asked) {
  return asked.has(v4::FATTR4_FILEHANDLE);
}

AttributeSet given_attributes(AttributeSet asked, const AttributeSource& source) {
  const AttributeSet given = asked & supported_attributes(source);
  return source.acls ? given : given - AttributeSet{v4::FATTR4_ACL};
}

void encode_attributes(Encoder& encoder, AttributeSet asked, const AttributeSource& source) {
  const AttributeSet given = given_attributes(asked, source);
  given.encode(encoder);
  put_values(encoder, [&] {
    encode_each(encoder, given, source, std::make_index_sequence<kReadable.size()>());
  });
}

bool is_stat(AttributeSet asked) {
  return asked == kOfStat;
}

// In the order of their numbers, as all are; put down in two pieces around the owners, whose length
// is not known before.
void encode_stat(Encoder& encoder, const vfs::Attributes& of) {
  constexpr std::uint32_t kWords = 2;
  constexpr std::uint32_t kOthers = 104;  // bytes of those beside the owners
  static_assert(kOfStat.word(1) != 0 && kOfStat.word(2) == 0);
  constexpr std::uint64_t kFsidMinor = 0;
  const OwnerNumber owner(of.uid), group(of.gid);
  encoder.integers(kWords, kOfStat.word(0), kOfStat.word(1), kOthers + owner.size() + group.size(),
                   static_cast<std::uint32_t>(to_nfs_ftype4(of.type)), of.change, of.size,
                   of.file_system_id, kFsidMinor, of.file_id, of.mode & 07777, of.links);
  owner.put(encoder);
  group.put(encoder);
  encoder.integers(of.device.major, of.device.minor, of.used, of.accessed.seconds,
                   of.accessed.nanoseconds, of.changed.seconds, of.changed.nanoseconds,
                   of.modified.seconds, of.modified.nanoseconds);
}

void encode_attribute_error(Encoder& encoder, AttributeSet asked, v4::nfsstat4 status) {
  const AttributeSet given = asked & AttributeSet{v4::FATTR4_RDATTR_ERROR};
  given.encode(encoder);
  put_values(encoder, [&] {
    if (!given.empty()) encoder.u32(status);
  });
}

}  // namespace stag::nfs::nfs4
