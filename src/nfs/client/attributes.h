// The nouns of the client API: RFC 1813's own types where they are handy, and shorter ones where
// XDR unions are not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nfs/proto/nfs3.h"

namespace stag::nfs::client {

using Handle = v3::nfs_fh3;
using Attributes = v3::fattr3;
using Time = v3::nfstime3;
using Verifier = v3::writeverf3;

// An object and what it was like when the server last told.
struct Node {
  Handle handle;
  Attributes attributes;
};

// A time to be set: left alone, the server's now, or a value.
struct SetTime {
  enum class How : std::uint8_t { Keep, Now, To };
  How how = How::Keep;
  Time time{};  // How::To only

  static SetTime now() { return {How::Now, {}}; }
  static SetTime to(Time time) { return {How::To, time}; }
};

// What setattr() and the creating operations change; what is absent stays, or gets the server's
// default.
struct SetAttributes {
  std::optional<std::uint32_t> mode{};  // 07777
  std::optional<std::uint32_t> uid{};
  std::optional<std::uint32_t> gid{};
  std::optional<std::uint64_t> size{};  // truncates or extends with zeros
  SetTime accessed{};
  SetTime modified{};
};
v3::sattr3 to_sattr3(const SetAttributes& attributes);

// How create() treats a name that is taken (RFC 1813 3.3.8).
enum class CreateMode : std::uint8_t {
  Unchecked,  // opens the existing file; of the attributes only `size` is applied to it
  Guarded,    // NFS3ERR_EXIST
  Exclusive,  // NFS3ERR_EXIST, and safe against repetition; attributes are set afterwards
};

// What mknod() makes.
struct Special {
  v3::ftype3 type = v3::NF3FIFO;  // NF3FIFO, NF3SOCK, NF3BLK or NF3CHR
  v3::specdata3 device{};         // major and minor number of the last two
};

// One entry of a directory; never "." or "..".
struct Entry {
  std::string name;
  std::uint64_t file_id = 0;
  // With Listing::Detail::Attributes, and then where the server gives them.
  std::optional<Attributes> attributes{};
  std::optional<Handle> handle{};
};

}  // namespace stag::nfs::client
