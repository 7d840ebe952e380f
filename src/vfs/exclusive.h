// Where the verifier of an exclusive create is kept: in the times of the new file, which every file
// system stores durably (RFC 1813 3.3.8 names this way). The top bit of each half is dropped: not
// every file system can keep a time beyond 2038.
#pragma once

#include "base/bytes.h"
#include "vfs/change_rules.h"
#include "vfs/status.h"
#include "vfs/types.h"
#include "vfs/vfs.h"

namespace stag::vfs {

struct VerifierTimes {
  Time accessed;
  Time modified;
};

inline VerifierTimes times_of(const Verifier& verifier) {
  constexpr std::uint32_t kKept = 0x7fffffff;
  return {{load_be<std::uint32_t>(verifier.data()) & kKept, 0},
          {load_be<std::uint32_t>(verifier.data() + 4) & kKept, 0}};
}

// The attributes that create() sets: those of the caller and, of an exclusive create, the verifier.
// Invalid for attributes that would overwrite the verifier, or make a repetition look like another
// file.
inline Outcome<SetAttributes> attributes_to_create(const CreateHow& how) {
  SetAttributes attributes = how.attributes;
  if (how.mode == CreateMode::Exclusive) {
    if (attributes.size || attributes.accessed.how != SetTime::How::Keep ||
        attributes.modified.how != SetTime::How::Keep)
      return Failure{Status::Invalid};
    const VerifierTimes times = times_of(how.verifier);
    attributes.accessed = {SetTime::How::To, times.accessed};
    attributes.modified = {SetTime::How::To, times.modified};
  }
  if (attributes.size && *attributes.size > kLargestFile) return Failure{Status::FileTooBig};
  return attributes;
}

// Whether the object was made by an exclusive create of this user with this verifier and not
// changed since: the times of a file are no secret, and the user who makes one may open it whatever
// its mode.
inline bool made_by(std::uint32_t uid, const Verifier& verifier, const Attributes& object) {
  const VerifierTimes times = times_of(verifier);
  return object.type == FileType::Regular && object.size == 0 &&
         object.accessed == times.accessed && object.modified == times.modified &&
         (uid == 0 || uid == object.uid);
}

}  // namespace stag::vfs
