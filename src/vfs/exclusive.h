// Where the verifier of an exclusive create is kept: in the times of the new file, which every file
// system stores durably (RFC 1813 3.3.8 names this way). The top bit of each half is dropped: not
// every file system can keep a time beyond 2038.
#pragma once

#include "base/bytes.h"
#include "vfs/types.h"

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

// Whether the object looks as an exclusive create with this verifier has left it.
inline bool made_by(const Verifier& verifier, const Attributes& object) {
  const VerifierTimes times = times_of(verifier);
  return object.type == FileType::Regular && object.size == 0 &&
         object.accessed == times.accessed && object.modified == times.modified;
}

}  // namespace stag::vfs
