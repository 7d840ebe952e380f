#include "nfs/client/v4/attributes.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "nfs/ulb/nfs4_client.h"
#include "xdr/encoder.h"

namespace stag::nfs::client::nfs4 {
namespace {

constexpr std::uint32_t kNobody = 65534;
constexpr std::uint32_t kMostOwner = v4::NFS4_OPAQUE_LIMIT;
constexpr std::uint32_t kMostEntries = 1u << 16;  // of an access control list
constexpr std::uint32_t kMost32 = std::numeric_limits<std::uint32_t>::max();

// RFC 8881 5.9: a number is the ID itself. Names belong to a domain whose users are not known here.
std::optional<std::uint32_t> owner_of(std::string_view name) {
  std::uint64_t id = 0;
  bool numeric = !name.empty();
  for (const char c : name) {
    const auto digit = static_cast<std::uint32_t>(c) - '0';
    id = 10 * id + digit;
    numeric = numeric && digit <= 9 && id <= kMost32;
    if (!numeric) break;
  }
  if (numeric) return static_cast<std::uint32_t>(id);
  if (name == "root" || name.starts_with("root@")) return 0;
  return std::nullopt;
}

[[gnu::always_inline]] inline bool read_owner_in_line(xdr::Decoder& from, std::uint32_t& to,
                                                      bool& unknown) {
  Bytes name;
  if (!from.inline_opaque(name, kMostOwner)) return false;
  const std::optional<std::uint32_t> id = owner_of(text_of(name));
  to = id.value_or(kNobody);
  unknown = !id;
  return true;
}

bool read_owner(xdr::Decoder& from, std::uint32_t& to, bool& unknown) {
  return read_owner_in_line(from, to, unknown);
}

bool is_time(const Time& time) {
  return time.nanoseconds < 1'000'000'000;
}
bool read_time(xdr::Decoder& from, Time& to) {
  return from.integers(to.seconds, to.nanoseconds) && is_time(to);
}

bool set_type(Values& to, std::uint32_t type) {
  to.has_type = type >= v4::NF4REG && type <= v4::NF4FIFO;
  if (to.has_type) to.attributes.type = static_cast<FileType>(type);
  return to.has_type;
}
bool read_type(xdr::Decoder& from, Values& to) {
  std::uint32_t type = 0;
  return from.u32(type) && set_type(to, type);
}

// Two file systems of one server differ in either half.
std::uint64_t file_system_id_of(const v4::fsid4& fsid) {
  return fsid.major ^ (fsid.minor << 32 | fsid.minor >> 32);
}
bool read_fsid(xdr::Decoder& from, Values& to) {
  v4::fsid4 fsid;
  if (!from.integers(fsid.major, fsid.minor)) return false;
  to.attributes.file_system_id = file_system_id_of(fsid);
  return true;
}

bool read_handle(xdr::Decoder& from, Values& to) {
  Bytes bytes;
  if (!from.inline_opaque(bytes, v4::NFS4_FHSIZE)) return false;
  to.handle = Handle::from(bytes);
  return true;
}

bool read_mode(xdr::Decoder& from, Values& to) {
  if (!from.u32(to.attributes.mode)) return false;
  to.attributes.mode &= 07777;
  return true;
}

bool read_error(xdr::Decoder& from, Values& to) {
  std::uint32_t error = 0;
  if (!from.u32(error)) return false;
  to.error = static_cast<v4::nfsstat4>(error);
  return true;
}

// Sizes of transfers are 64 bits wide here; no transfer is.
bool read_size(xdr::Decoder& from, std::uint32_t& to) {
  std::uint64_t size = 0;
  if (!from.u64(size)) return false;
  to = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, kMost32));
  return true;
}

bool read_acl(xdr::Decoder& from, Values& to) {
  constexpr std::uint32_t kLeastEntry = 16;
  std::uint32_t count = 0;
  if (!from.count(count, kMostEntries, kLeastEntry)) return false;
  to.has_acl = true;
  to.acl.resize(count);
  for (Nfs4Ace& ace : to.acl)
    if (!from.integers(ace.type, ace.flags, ace.mask) ||
        !from.string(xdr::kNoItem, ace.who, kMostOwner))
      return false;
  return true;
}

struct ReadAttribute {
  std::uint32_t number;
  bool (*read)(xdr::Decoder&, Values&);
};

constexpr ReadAttribute kAttributes[] = {
    {v4::FATTR4_TYPE, read_type},
    {v4::FATTR4_CHANGE, [](xdr::Decoder& d, Values& v) { return d.u64(v.attributes.change); }},
    {v4::FATTR4_SIZE, [](xdr::Decoder& d, Values& v) { return d.u64(v.attributes.size); }},
    {v4::FATTR4_LINK_SUPPORT, [](auto& d, Values& v) { return d.boolean(v.info.hard_links); }},
    {v4::FATTR4_SYMLINK_SUPPORT, [](auto& d, Values& v) { return d.boolean(v.info.symlinks); }},
    {v4::FATTR4_FSID, read_fsid},
    {v4::FATTR4_LEASE_TIME, [](auto& d, Values& v) { return d.u32(v.lease_seconds); }},
    {v4::FATTR4_RDATTR_ERROR, read_error},
    {v4::FATTR4_ACL, read_acl},
    {v4::FATTR4_CANSETTIME, [](auto& d, Values& v) { return d.boolean(v.info.times_can_be_set); }},
    {v4::FATTR4_CASE_INSENSITIVE,
     [](auto& d, Values& v) { return d.boolean(v.names.case_insensitive); }},
    {v4::FATTR4_CASE_PRESERVING,
     [](auto& d, Values& v) { return d.boolean(v.names.case_preserving); }},
    {v4::FATTR4_CHOWN_RESTRICTED,
     [](auto& d, Values& v) { return d.boolean(v.names.chown_restricted); }},
    {v4::FATTR4_FILEHANDLE, read_handle},
    {v4::FATTR4_FILEID, [](auto& d, Values& v) { return d.u64(v.attributes.file_id); }},
    {v4::FATTR4_FILES_AVAIL, [](auto& d, Values& v) { return d.u64(v.usage.available_files); }},
    {v4::FATTR4_FILES_FREE, [](auto& d, Values& v) { return d.u64(v.usage.free_files); }},
    {v4::FATTR4_FILES_TOTAL, [](auto& d, Values& v) { return d.u64(v.usage.total_files); }},
    {v4::FATTR4_MAXFILESIZE, [](auto& d, Values& v) { return d.u64(v.info.max_file_size); }},
    {v4::FATTR4_MAXLINK, [](auto& d, Values& v) { return d.u32(v.names.max_links); }},
    {v4::FATTR4_MAXNAME, [](auto& d, Values& v) { return d.u32(v.names.max_name); }},
    {v4::FATTR4_MAXREAD, [](auto& d, Values& v) { return read_size(d, v.info.read_max); }},
    {v4::FATTR4_MAXWRITE, [](auto& d, Values& v) { return read_size(d, v.info.write_max); }},
    {v4::FATTR4_MODE, read_mode},
    {v4::FATTR4_NO_TRUNC, [](auto& d, Values& v) { return d.boolean(v.names.no_truncation); }},
    {v4::FATTR4_NUMLINKS, [](auto& d, Values& v) { return d.u32(v.attributes.links); }},
    {v4::FATTR4_OWNER,
     [](auto& d, Values& v) { return read_owner(d, v.attributes.uid, v.attributes.uid_unknown); }},
    {v4::FATTR4_OWNER_GROUP,
     [](auto& d, Values& v) { return read_owner(d, v.attributes.gid, v.attributes.gid_unknown); }},
    {v4::FATTR4_RAWDEV,
     [](auto& d, Values& v) {
       return d.integers(v.attributes.device.major, v.attributes.device.minor);
     }},
    {v4::FATTR4_SPACE_AVAIL, [](auto& d, Values& v) { return d.u64(v.usage.available_bytes); }},
    {v4::FATTR4_SPACE_FREE, [](auto& d, Values& v) { return d.u64(v.usage.free_bytes); }},
    {v4::FATTR4_SPACE_TOTAL, [](auto& d, Values& v) { return d.u64(v.usage.total_bytes); }},
    {v4::FATTR4_SPACE_USED, [](auto& d, Values& v) { return d.u64(v.attributes.used); }},
    {v4::FATTR4_TIME_ACCESS,
     [](auto& d, Values& v) { return read_time(d, v.attributes.accessed); }},
    {v4::FATTR4_TIME_DELTA,
     [](auto& d, Values& v) { return read_time(d, v.info.time_granularity); }},
    {v4::FATTR4_TIME_METADATA,
     [](auto& d, Values& v) { return read_time(d, v.attributes.changed); }},
    {v4::FATTR4_TIME_MODIFY,
     [](auto& d, Values& v) { return read_time(d, v.attributes.modified); }},
    {v4::FATTR4_MOUNTED_ON_FILEID, [](auto& d, Values& v) { return d.u64(v.mounted_on_file_id); }},
};

constexpr std::uint64_t mask_of(std::initializer_list<std::uint32_t> numbers) {
  std::uint64_t mask = 0;
  for (const std::uint32_t number : numbers) mask |= std::uint64_t{1} << number;
  return mask;
}
constexpr std::uint64_t kKnown = [] {
  std::uint64_t known = 0;
  for (const ReadAttribute& attribute : kAttributes) known |= mask_of({attribute.number});
  return known;
}();
// Those of client::Attributes.
constexpr std::uint64_t kOfNode =
    mask_of({v4::FATTR4_TYPE, v4::FATTR4_CHANGE, v4::FATTR4_SIZE, v4::FATTR4_FSID,
             v4::FATTR4_FILEID, v4::FATTR4_MODE, v4::FATTR4_NUMLINKS, v4::FATTR4_OWNER,
             v4::FATTR4_OWNER_GROUP, v4::FATTR4_RAWDEV, v4::FATTR4_SPACE_USED,
             v4::FATTR4_TIME_ACCESS, v4::FATTR4_TIME_METADATA, v4::FATTR4_TIME_MODIFY});
static_assert(std::ranges::is_sorted(kAttributes, {}, &ReadAttribute::number));

// In the order of their numbers (RFC 8881 5.2). Without a call for each of them, of which there are
// many.
template <std::size_t... kPlaces>
[[gnu::always_inline]] inline bool read_each(std::uint64_t given, xdr::Decoder& from, Values& to,
                                             std::index_sequence<kPlaces...>) {
  return (
      ((given >> kAttributes[kPlaces].number & 1) == 0 || kAttributes[kPlaces].read(from, to)) &&
      ...);
}

// Those of kOfNode, which most answers have exactly: in two pieces around the owners, whose length
// is not known before.
[[gnu::always_inline]] inline bool read_node(xdr::Decoder& from, Values& to) {
  std::uint32_t type = 0;
  v4::fsid4 fsid;
  Attributes& node = to.attributes;
  if (!from.integers(type, node.change, node.size, fsid.major, fsid.minor, node.file_id, node.mode,
                     node.links) ||
      !set_type(to, type))
    return false;
  node.file_system_id = file_system_id_of(fsid);
  node.mode &= 07777;
  if (!read_owner_in_line(from, node.uid, node.uid_unknown) ||
      !read_owner_in_line(from, node.gid, node.gid_unknown))
    return false;
  return from.integers(node.device.major, node.device.minor, node.used, node.accessed.seconds,
                       node.accessed.nanoseconds, node.changed.seconds, node.changed.nanoseconds,
                       node.modified.seconds, node.modified.nanoseconds) &&
         is_time(node.accessed) && is_time(node.changed) && is_time(node.modified);
}

// The attributes that a server says it gives; none of those that are known is in a third word.
struct Mask {
  [[gnu::always_inline]] bool decode(xdr::Decoder& from) {
    std::uint32_t count = 0;
    if (!from.length_word(count, xdr::kUnbounded)) return false;
    std::uint32_t word = 0, next = 0;
    if (count == 2) {  // as most have
      if (!from.integers(word, next)) return false;
      words = std::uint64_t{next} << 32 | word;
      return true;
    }
    if (!from.holds(count, 4)) return false;
    for (std::uint32_t place = 0; place < count; ++place) {
      if (!from.u32(word)) return false;
      add(place, word);
    }
    return true;
  }
  void add(std::size_t place, std::uint32_t word) {
    if (place < 2)
      words |= std::uint64_t{word} << 32 * place;
    else
      others = others || word != 0;
  }
  std::uint64_t words = 0;
  bool others = false;
};

// Those that are in the set, one by one.
bool read_others(std::uint64_t given, xdr::Decoder& from, Values& to) {
  return read_each(given, from, to, std::make_index_sequence<std::size(kAttributes)>());
}

void read_values(const Mask& mask, Bytes values, Values& to) {
  to.state = Values::State::Unreadable;
  if (mask.others || (mask.words & ~kKnown) != 0) return;
  xdr::Decoder decoder(Buffer::borrow(values));
  const bool read =
      mask.words == kOfNode ? read_node(decoder, to) : read_others(mask.words, decoder, to);
  if (read && decoder.finish().ok()) to.state = Values::State::Whole;
}

// The values that `write` encodes.
template <class Write>
v4::fattr4 encoded_fattr4(std::initializer_list<std::uint32_t> numbers, Write write) {
  xdr::Encoder encoder;
  write(encoder);
  const xdr::Stream stream = std::move(encoder).finish();
  return {bitmap_of(numbers), Rope(stream.without({}).flatten())};
}

void put_time(xdr::Encoder& to, const Time& time) {
  to.i64(time.seconds);
  to.u32(time.nanoseconds);
}

void put_set_time(xdr::Encoder& to, const SetTime& set) {
  const bool value = set.how == SetTime::How::To;
  to.u32(value ? v4::SET_TO_CLIENT_TIME4 : v4::SET_TO_SERVER_TIME4);
  if (value) put_time(to, set.time);
}

}  // namespace

v4::bitmap4 bitmap_of(std::initializer_list<std::uint32_t> numbers) {
  v4::bitmap4 bitmap;
  for (const std::uint32_t number : numbers) {
    if (bitmap.size() <= number / 32) bitmap.resize(number / 32 + 1);
    bitmap[number / 32] |= 1u << (number % 32);
  }
  return bitmap;
}

bool has(const v4::bitmap4& bitmap, std::uint32_t number) {
  const std::size_t word = number / 32;
  return word < bitmap.size() && (bitmap[word] >> (number % 32) & 1) != 0;
}

AskedAttributes::AskedAttributes(v4::bitmap4 numbers)
    : bitmap(std::move(numbers)), results_max(ulb::nfs4_getattr_max(bitmap)) {}

const AskedAttributes& node_attributes() {
  static const AskedAttributes kAsked(
      {static_cast<std::uint32_t>(kOfNode), static_cast<std::uint32_t>(kOfNode >> 32)});
  return kAsked;
}

const AskedAttributes& entry_attributes() {
  static const AskedAttributes kAsked([] {
    v4::bitmap4 bitmap =
        bitmap_of({v4::FATTR4_RDATTR_ERROR, v4::FATTR4_FILEHANDLE, v4::FATTR4_MOUNTED_ON_FILEID});
    for (std::size_t i = 0; i < bitmap.size(); ++i) bitmap[i] |= node_attributes().bitmap[i];
    return bitmap;
  }());
  return kAsked;
}

const AskedAttributes& usage_attributes() {
  static const AskedAttributes kAsked(
      bitmap_of({v4::FATTR4_FILES_AVAIL, v4::FATTR4_FILES_FREE, v4::FATTR4_FILES_TOTAL,
                 v4::FATTR4_SPACE_AVAIL, v4::FATTR4_SPACE_FREE, v4::FATTR4_SPACE_TOTAL}));
  return kAsked;
}

const AskedAttributes& info_attributes() {
  static const AskedAttributes kAsked(
      bitmap_of({v4::FATTR4_LINK_SUPPORT, v4::FATTR4_SYMLINK_SUPPORT, v4::FATTR4_LEASE_TIME,
                 v4::FATTR4_CANSETTIME, v4::FATTR4_MAXFILESIZE, v4::FATTR4_MAXREAD,
                 v4::FATTR4_MAXWRITE, v4::FATTR4_TIME_DELTA}));
  return kAsked;
}

const AskedAttributes& name_attributes() {
  static const AskedAttributes kAsked(bitmap_of(
      {v4::FATTR4_CASE_INSENSITIVE, v4::FATTR4_CASE_PRESERVING, v4::FATTR4_CHOWN_RESTRICTED,
       v4::FATTR4_MAXLINK, v4::FATTR4_MAXNAME, v4::FATTR4_NO_TRUNC}));
  return kAsked;
}

const AskedAttributes& acl_attributes() {
  static const AskedAttributes kAsked(
      bitmap_of({v4::FATTR4_TYPE, v4::FATTR4_ACL, v4::FATTR4_MODE}));
  return kAsked;
}

const AskedAttributes& change_attribute() {
  static const AskedAttributes kAsked(bitmap_of({v4::FATTR4_CHANGE}));
  return kAsked;
}

const AskedAttributes& lease_attribute() {
  static const AskedAttributes kAsked(bitmap_of({v4::FATTR4_LEASE_TIME}));
  return kAsked;
}

void Values::reset() {
  *this = Values();
}

bool decode_values(xdr::Decoder& from, Values& to) {
  Mask mask;
  Bytes values;
  if (!mask.decode(from) || !from.inline_opaque(values, xdr::kUnbounded)) return false;
  read_values(mask, values, to);
  return true;
}

std::optional<Values> values_of(const v4::fattr4& from) {
  std::optional<Values> values(std::in_place);
  Mask mask;
  for (std::size_t place = 0; place < from.attrmask.size(); ++place)
    mask.add(place, from.attrmask[place]);
  const Buffer bytes = from.attr_vals.flatten();
  read_values(mask, bytes.bytes(), *values);
  if (!values->whole()) values.reset();
  return values;
}

v4::fattr4 to_fattr4(const SetAttributes& changes) {
  v4::fattr4 to = encoded_fattr4({}, [&](xdr::Encoder& encoder) {
    if (changes.size) encoder.u64(*changes.size);
    if (changes.mode) encoder.u32(*changes.mode & 07777);
    if (changes.uid) encoder.string(xdr::kNoItem, std::to_string(*changes.uid));
    if (changes.gid) encoder.string(xdr::kNoItem, std::to_string(*changes.gid));
    if (changes.accessed.how != SetTime::How::Keep) put_set_time(encoder, changes.accessed);
    if (changes.modified.how != SetTime::How::Keep) put_set_time(encoder, changes.modified);
  });
  const auto mark = [&to](bool set, std::uint32_t number) {
    if (!set) return;
    const v4::bitmap4 one = bitmap_of({number});
    if (to.attrmask.size() < one.size()) to.attrmask.resize(one.size());
    to.attrmask[one.size() - 1] |= one.back();
  };
  mark(changes.size.has_value(), v4::FATTR4_SIZE);
  mark(changes.mode.has_value(), v4::FATTR4_MODE);
  mark(changes.uid.has_value(), v4::FATTR4_OWNER);
  mark(changes.gid.has_value(), v4::FATTR4_OWNER_GROUP);
  mark(changes.accessed.how != SetTime::How::Keep, v4::FATTR4_TIME_ACCESS_SET);
  mark(changes.modified.how != SetTime::How::Keep, v4::FATTR4_TIME_MODIFY_SET);
  return to;
}

v4::fattr4 to_fattr4(const Nfs4Acl& acl) {
  return encoded_fattr4({v4::FATTR4_ACL}, [&acl](xdr::Encoder& encoder) {
    encoder.u32(static_cast<std::uint32_t>(acl.size()));
    for (const Nfs4Ace& ace : acl) {
      encoder.u32(ace.type);
      encoder.u32(ace.flags);
      encoder.u32(ace.mask);
      encoder.string(xdr::kNoItem, ace.who);
    }
  });
}

v4::fattr4 type_is(FileType type) {
  return encoded_fattr4({v4::FATTR4_TYPE}, [type](xdr::Encoder& encoder) {
    encoder.u32(static_cast<std::uint32_t>(type));
  });
}

v4::fattr4 changed_at(const Time& time) {
  return encoded_fattr4({v4::FATTR4_TIME_METADATA},
                        [&time](xdr::Encoder& encoder) { put_time(encoder, time); });
}

}  // namespace stag::nfs::client::nfs4
