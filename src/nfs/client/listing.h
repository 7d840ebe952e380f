// A directory, read in batches of what one reply holds, so that one of a million entries takes no
// more memory than one of a hundred.
//
//   Listing listing = files.list(directory, Listing::Detail::Attributes);
//   for (;;) {
//     Outcome<std::vector<Entry>> batch = co_await listing.next();
//     if (!batch || batch->empty()) break;
//     ...
//   }
#pragma once

#include <cstdint>
#include <vector>

#include "nfs/client/attributes.h"
#include "nfs/client/caller.h"

namespace stag::nfs::client {

class Listing {
 public:
  enum class Detail : std::uint8_t {
    Names,       // READDIR
    Attributes,  // READDIRPLUS; READDIR where the server does not have it (RFC 1813 3.3.17)
  };

  // `reply_size`: bytes of one reply asked for. The Caller's Channel outlives the Listing.
  Listing(const Caller& caller, const Handle& directory, Detail detail, std::uint32_t reply_size);

  // The next entries in the server's order, "." and ".." left out; empty: that was all. Entries
  // that are made or removed meanwhile may or may not show up; the others do, once, as far as the
  // server's cookies are stable.
  Task<Outcome<std::vector<Entry>>> next();

 private:
  Task<Outcome<std::vector<Entry>>> plain();
  Task<Outcome<std::vector<Entry>>> plus();
  template <class Resok>
  Outcome<std::vector<Entry>> taken(Resok& resok);

  Caller caller_;
  Handle directory_;
  Detail detail_;
  std::uint32_t reply_size_;
  std::uint64_t cookie_ = 0;
  v3::cookieverf3 verifier_{};
  bool ended_ = false;
};

}  // namespace stag::nfs::client
