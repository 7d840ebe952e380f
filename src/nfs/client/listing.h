// Listing: the entries of a directory in batches of one reply each, so that a directory of a
// million entries takes no more memory than one of a hundred. Thread: the Channel's loop.
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

  // A directory with more entries than this is taken for a listing that never ends.
  static constexpr std::uint64_t kMostEntries = 1u << 24;
  // The same bound for callers that keep all entries, which take about 100 MB with their names.
  static constexpr std::uint64_t kMostKept = 1u << 20;

  // `reply_size`: bytes of one reply that the client asks for. The Protocol's Channel outlives the
  // Listing.
  Listing(std::shared_ptr<Protocol> protocol, const Handle& directory, Detail detail,
          std::uint32_t reply_size, std::uint64_t most = kMostEntries);

  // The next entries in the server's order, without "." and ".."; empty after the last one. Entries
  // that are made or removed during the listing may be listed or not; all others are listed once,
  // provided that the server's cookies are stable. Fails when the listing goes in circles, has more
  // entries than `most`, or has more bytes of names than that many entries can have.
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
  std::uint64_t entries_ = 0;     // listed so far, "." and ".." included
  std::uint64_t name_bytes_ = 0;  // of their names
  // Brent's cycle detection: remembers a cookie, and another one after twice as many entries.
  std::optional<std::uint64_t> seen_;
  std::uint64_t next_seen_ = 2;
};

}  // namespace stag::nfs::client
