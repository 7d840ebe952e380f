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
#include <memory>
#include <optional>
#include <vector>

#include "base/task.h"
#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"

namespace stag::nfs::client {

class Protocol;
struct ListedPart;

class Listing {
 public:
  enum class Detail : std::uint8_t {
    Names,
    Attributes,  // where the server does not list them: names
  };

  // A list of more entries than this is taken for one without an end.
  static constexpr std::uint64_t kMostEntries = 1u << 24;
  // The same for callers that keep all entries: so many of them take some 100 MB with their names.
  static constexpr std::uint64_t kMostKept = 1u << 20;

  // `reply_size`: bytes of one reply asked for. The Protocol's Channel outlives the Listing.
  Listing(std::shared_ptr<Protocol> protocol, const Handle& directory, Detail detail,
          std::uint32_t reply_size, std::uint64_t most = kMostEntries);

  // The next entries in the server's order, "." and ".." left out; empty: that was all. Entries
  // that are made or removed meanwhile may or may not show up; the others do, once, as far as the
  // server's cookies are stable. A list that goes in circles, that has more entries than `most`, or
  // more bytes of names than so many can need, is an Error.
  Task<Outcome<std::vector<Entry>>> next();

 private:
  Outcome<std::vector<Entry>> taken(ListedPart part);
  std::optional<Error> count(std::uint64_t cookie, std::size_t name_size);

  std::shared_ptr<Protocol> protocol_;
  Handle directory_;
  Detail detail_;
  std::uint32_t reply_size_;
  std::uint64_t cookie_ = 0;
  Verifier verifier_{};
  bool ended_ = false;
  std::uint64_t most_;
  std::uint64_t entries_ = 0;     // so far, "." and ".." with them
  std::uint64_t name_bytes_ = 0;  // of them
  // Brent's search for circles: a cookie that was seen, another after twice as many entries.
  std::optional<std::uint64_t> seen_;
  std::uint64_t next_seen_ = 2;
};

}  // namespace stag::nfs::client
