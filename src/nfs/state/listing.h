// A listing of what clients hold, for an administrator: page by page, so that neither a lock is
// held nor memory taken for all of it. The cursor is a place in the table of stateids, which does
// not move while others come and go.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nfs/state/files.h"

namespace stag::nfs::state {

// Where a listing goes on; a new one begins.
struct StateCursor {
  std::uint32_t shard = 0;
  std::uint32_t place = 0;
  std::uint64_t first_byte = 0;  // of a lock with more ranges than a row has
};

struct StateFilter {
  std::optional<ClientId> client;
  std::optional<StateInfo::Type> type;
};

// The rows of one page. It takes all its memory when it is made, and is used again for the next
// page: no memory is asked for while a lock is held.
class StatePage {
 public:
  static constexpr std::size_t kRows = 64;
  static constexpr std::size_t kRangesOfRow = 64;

  StatePage();
  std::span<const StateInfo> rows() const { return std::span(rows_).first(used_); }

  // For Files.
  void clear() { used_ = 0; }
  bool full() const { return used_ == rows_.size(); }
  // An empty row; drop() takes the last one back.
  StateInfo& add();
  void drop() { --used_; }

 private:
  std::vector<StateInfo> rows_;
  std::size_t used_ = 0;
};

}  // namespace stag::nfs::state
