#include "fuse/unstable_writes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "base/pause.h"

namespace stag::fuse {
namespace {

using nfs::client::Error;
using nfs::client::File;
using nfs::client::Outcome;
using nfs::client::Stability;
using nfs::client::Verifier;
using nfs::client::WritePart;

// Memory of a request is kept for data that fills at least half of it; less is copied.
constexpr std::size_t kWorthKeeping = std::size_t{1} << 19;
// Bytes of writes one behind the other that are kept together, and written again at once.
constexpr std::size_t kLargestJoined = std::size_t{1} << 18;
// Before a COMMIT that nobody has answered goes again, where nobody waits for it.
constexpr Duration kAgain = std::chrono::seconds(1);

// Otherwise no Reply came, and what is kept may be written again.
bool says_lost(const Error& error) {
  return error.kind != Error::Kind::Call;
}

}  // namespace

UnstableWrites::Piece::~Piece() {
  owner.kept_ -= kept;
  owner.used_ -= used;
  if (of_request) owner.requests_.give_back(std::move(memory));
}

bool UnstableWrites::Piece::keep(Memory& request) {
  if (data.size() >= kWorthKeeping) {
    memory = std::move(request);
    of_request = true;
  } else {
    memory.reset(static_cast<std::byte*>(std::malloc(data.size())));
    if (!memory) return false;
    std::memcpy(memory.get(), data.data(), data.size());
    data = Bytes(memory.get(), data.size());
    capacity = data.size();
  }
  kept = data.size();
  used = kept + kPieceBytes;
  owner.kept_ += kept;
  owner.used_ += used;
  return true;
}

bool UnstableWrites::Piece::join(const Piece& next) {
  const bool same = next.file.handle == file.handle && next.file.open == file.open &&
                    next.unstable && unstable && !next.lost && !lost && next.verifier == verifier &&
                    next.connections_lost == connections_lost;
  const std::size_t size = data.size() + next.data.size();
  // Some of it may have been written again.
  const bool whole = capacity > 0 && data.data() == memory.get();
  if (!same || !whole || next.offset != offset + data.size() || size > kLargestJoined) return false;
  if (size > capacity) {
    // Twice as much, so that many small writes are not copied over and over.
    const std::size_t wanted = std::min(std::max(size, 2 * capacity), kLargestJoined);
    if (!owner.has_room(wanted - capacity)) return false;
    auto* const larger = static_cast<std::byte*>(std::realloc(memory.get(), wanted));
    if (larger == nullptr) return false;
    static_cast<void>(memory.release());
    memory.reset(larger);
    used += wanted - capacity;
    owner.used_ += wanted - capacity;
    capacity = wanted;
  }
  std::memcpy(memory.get() + data.size(), next.data.data(), next.data.size());
  data = Bytes(memory.get(), size);
  kept += next.data.size();
  owner.kept_ += next.data.size();
  return true;
}

struct UnstableWrites::Writing {
  explicit Writing(Written& file) : written(file) { ++written.writing; }
  ~Writing() {
    --written.writing;
    written.waiters.tell();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  Written& written;
};

struct UnstableWrites::Committing {
  explicit Committing(Written& file) : written(file) { written.committing = true; }
  ~Committing() {
    written.committing = written.rewriting = false;
    written.waiters.tell();
  }
  Committing(const Committing&) = delete;
  Committing& operator=(const Committing&) = delete;
  Written& written;
};

Task<Outcome<std::size_t>> UnstableWrites::write(std::uint64_t number, File file,
                                                 std::uint64_t offset, Memory& memory, Bytes data) {
  const auto entry = files_written_.try_emplace(number, std::make_shared<Written>()).first;
  const Shared written = entry->second;
  Pieces one;
  Piece& piece = one.emplace_back(*this, number, file, offset, data);
  const bool stable = std::exchange(written->next_is_stable, false);
  bool kept = false;
  for (;;) {
    while (written->rewriting) co_await written->waiters.change();
    const bool keeps = !stable || !written->pieces.empty();
    if (keeps && !has_room(data.size())) ask_for_room(number);
    kept = keeps && has_room(data.size()) && piece.keep(memory);
    // What is not kept must be newer than nothing that is.
    if (kept || written->pieces.empty()) break;
    const Outcome<Ok> committed = co_await commit(number);
    if (!committed) co_return Failure{committed.error()};
  }
  const Writing writing(*written);
  const bool asks_stable = stable || !kept;
  Outcome<std::size_t> sent =
      co_await send(piece, asks_stable ? Stability::FileSync : Stability::Unstable);
  if (sent && kept && (piece.unstable || !written->pieces.empty())) {
    piece.data = piece.data.first(*sent);
    append(*written, one);
  }
  co_return sent;
}

// Programs that leave files open would keep the room from all others. It is there for later writes:
// the file system of that file may not answer for as long as it likes.
void UnstableWrites::ask_for_room(std::uint64_t number) {
  if (making_room_) return;
  const std::uint64_t largest = find_largest();
  if (largest != 0 && largest != number) tasks_.add(make_room(largest));
}

// Those who write to the file are told what came of it.
Task<void> UnstableWrites::make_room(std::uint64_t number) {
  making_room_ = true;
  try {
    static_cast<void>(co_await commit(number));
  } catch (const std::bad_alloc&) {  // the next one asks again
  }
  making_room_ = false;
}

void UnstableWrites::add(Written& written, Pieces& one) {
  const Piece& piece = one.front();
  written.end = std::max(written.end, piece.offset + piece.data.size());
  if (piece.unstable && !written.verifier) {
    written.verifier = piece.verifier;
    written.connections_lost = piece.connections_lost;
  }
  if (piece.unstable && (piece.lost || piece.verifier != *written.verifier)) written.mixed = true;
  written.pieces.splice(written.pieces.end(), one);
}

// What was written during a COMMIT is none of its business, and stays apart.
void UnstableWrites::append(Written& written, Pieces& one) {
  const bool joined =
      !written.pieces.empty() && !written.committing && written.pieces.back().join(one.front());
  if (joined)
    written.end = std::max(written.end, one.front().offset + one.front().data.size());
  else
    add(written, one);
}

// Those in front of `end`, which nobody needs any more.
void UnstableWrites::remove(Written& written, Pieces::iterator end) {
  written.pieces.erase(written.pieces.begin(), end);
  written.end = 0;
  written.verifier.reset();
  written.mixed = false;
  for (Pieces rest = std::exchange(written.pieces, {}); !rest.empty();) {
    Pieces one;
    one.splice(one.end(), rest, rest.begin());
    add(written, one);
  }
}

// Yields how much of it was written; an error, if nothing was.
Task<Outcome<std::size_t>> UnstableWrites::send(Piece& piece, Stability stability) {
  std::size_t sent = 0;
  while (sent < piece.data.size()) {
    const std::size_t most = std::min<std::size_t>(piece.data.size() - sent, files_.sizes().write);
    const Outcome<WritePart> part = co_await files_.write(
        piece.file, piece.offset + sent, piece.data.subspan(sent, most), stability);
    if (!part && sent == 0) co_return Failure{part.error()};
    if (!part) break;
    sent += part->count;
    if (part->committed != Stability::Unstable) continue;
    piece.lost = piece.lost || (piece.unstable && piece.verifier != part->verifier);
    if (!piece.unstable) piece.connections_lost = files_.channel().connections_lost();
    piece.unstable = true;
    piece.verifier = part->verifier;
  }
  co_return sent;
}

Task<Outcome<Ok>> UnstableWrites::commit(std::uint64_t number) {
  const auto found = files_written_.find(number);
  if (found == files_written_.end()) co_return Ok{};
  const Shared written = found->second;
  while (written->committing) {
    const std::uint64_t failures = written->failures;
    co_await written->waiters.change();
    if (written->failures != failures) co_return Failure{*written->failure};
  }
  Outcome<Ok> done = Ok{};
  if (!written->pieces.empty()) {
    const Committing committing(*written);
    done = co_await commit_pieces(*written);
    written->unheard.reset();
    // Without memory nothing was asked that could not be asked again.
    const bool unheard = !done && !says_lost(done.error()) && !done.error().out_of_memory();
    if (unheard) written->unheard = done.error();
  }
  give_up_unheard(number, *written);
  written->next_is_stable = written->pieces.empty();
  // Not where a program writes, or waits to.
  if (written->next_is_stable && written->failures == 0 && written.use_count() == 2)
    files_written_.erase(number);
  co_return done;
}

// As Linux's client, which keeps nothing that a fatal error met. A Call that waits for the server
// has not ended, and what it is about is kept.
void UnstableWrites::give_up_unheard(std::uint64_t number, Written& written) noexcept {
  const Inode* const inode = inodes_.find(number);
  const bool open = inode != nullptr && inode->opens > 0;
  if (!written.unheard || open || written.committing || written.pieces.empty()) return;
  std::size_t bytes = 0;
  for (const Piece& piece : written.pieces) bytes += piece.data.size();
  try {
    if (on_given_up_ && inode != nullptr) on_given_up_(*inode, bytes, *written.unheard);
  } catch (const std::bad_alloc&) {  // without a line in the log
  }
  written.unheard.reset();
  remove(written, written.pieces.end());
}

void UnstableWrites::note_loss(Written& written, const Error& error) {
  ++written.failures;
  written.failure = error;
}

Task<Outcome<Ok>> UnstableWrites::commit_pieces(Written& written) {
  Pieces& pieces = written.pieces;
  // What is written during the COMMIT is none of its business.
  const auto last = std::prev(pieces.end());
  const Outcome<Verifier> now = co_await files_.commit(pieces.front().file.handle);
  if (!now) {
    if (says_lost(now.error())) {
      remove(written, pieces.end());
      note_loss(written, now.error());
    }
    co_return Failure{now.error()};
  }
  const auto end = std::next(last);
  const auto safe = [&](const Piece& piece) { return piece.safe(*now); };
  if (std::all_of(pieces.begin(), end, safe)) {
    remove(written, end);
    co_return Ok{};
  }
  written.rewriting = true;
  while (written.writing > 0) co_await written.waiters.change();
  co_return co_await write_again(written);
}

Task<Outcome<Ok>> UnstableWrites::write_again(Written& written) {
  Outcome<Ok> done = Ok{};
  while (!written.pieces.empty()) {
    Piece& piece = written.pieces.front();
    while (!piece.data.empty()) {
      const Outcome<std::size_t> sent = co_await send(piece, Stability::FileSync);
      if (!sent && !says_lost(sent.error())) co_return Failure{sent.error()};
      if (!sent) {
        // Of this piece alone: the open of another one may stand yet.
        note_loss(written, sent.error());
        done = Failure{sent.error()};
        break;
      }
      piece.data = piece.data.subspan(*sent);
      piece.offset += *sent;
    }
    written.pieces.pop_front();
  }
  remove(written, written.pieces.end());
  co_return done;
}

Task<bool> UnstableWrites::make_safe(std::uint64_t number) {
  const Outcome<Ok> committed = co_await commit(number);
  co_return committed || says_lost(committed.error());
}

Task<void> UnstableWrites::make_all_safe(Loop& loop, CancelToken end) {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, written] : files_written_) numbers.push_back(number);
  // Side by side: that of another one may be on a file system that does not answer.
  for (const std::uint64_t number : numbers) tasks_.add(made_safe(number, loop, end));
  co_await tasks_.join();
}

Task<void> UnstableWrites::made_safe(std::uint64_t number, Loop& loop, CancelToken end) {
  for (;;) {
    bool safe = false;
    try {
      safe = co_await make_safe(number);
    } catch (const std::bad_alloc&) {
    }
    if (safe || end.cancelled()) break;
    co_await pause(loop, kAgain, end);
  }
}

std::uint64_t UnstableWrites::find_largest() const {
  std::uint64_t largest = 0;
  std::size_t most = 0;
  for (const auto& [number, written] : files_written_) {
    if (written->committing) continue;
    std::size_t used = 0;
    for (const Piece& piece : written->pieces) used += piece.used;
    if (used <= most) continue;
    most = used;
    largest = number;
  }
  return largest;
}

const UnstableWrites::Written* UnstableWrites::find(std::uint64_t number) const {
  const auto found = files_written_.find(number);
  return found == files_written_.end() ? nullptr : found->second.get();
}

std::uint64_t UnstableWrites::failures(std::uint64_t number) const {
  const Written* written = find(number);
  return written == nullptr ? 0 : written->failures;
}

const Error& UnstableWrites::failure(std::uint64_t number) const {
  return *find(number)->failure;
}

void UnstableWrites::on_close(std::uint64_t number, const File& closed, const File* other) {
  const auto found = files_written_.find(number);
  if (found == files_written_.end()) return;
  for (Piece& piece : found->second->pieces)
    if (piece.file.open == closed.open) piece.file.open = other == nullptr ? 0 : other->open;
}

void UnstableWrites::forget(std::uint64_t number) {
  const auto found = files_written_.find(number);
  if (found == files_written_.end()) return;
  found->second->failures = 0;
  give_up_unheard(number, *found->second);
  if (found->second->pieces.empty() && found->second.use_count() == 1) files_written_.erase(found);
}

std::uint64_t UnstableWrites::kept_end(std::uint64_t number) const {
  const Written* written = find(number);
  return written == nullptr ? 0 : written->end;
}

bool UnstableWrites::is_doubtful(std::uint64_t number) const {
  const Written* written = find(number);
  if (written == nullptr || !written->verifier) return false;
  return written->mixed || written->connections_lost != files_.channel().connections_lost();
}

}  // namespace stag::fuse
