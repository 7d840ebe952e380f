// The memory one connection lets its peer touch, by STag. Every registration has one right: a sink
// of a Read accepts only the Read Response it was issued for, not a Write (design: RFC 5042 asks
// for it, Linux siw does not check). STags are random, and one that was revoked names nothing again
// before kQuarantine others have been revoked, so no message still under way can hit its successor;
// but for that of a Read's sink, whose Response is over, and which is forgotten.
//
// A lookup is valid for the current turn of the connection's loop only: look up again before every
// transfer, never keep the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/result.h"
#include "iwarp/terminate.h"

namespace stag::iwarp {

// Where STags come from; 64 unpredictable bits a call.
class Entropy {
 public:
  virtual std::uint64_t next() = 0;

 protected:
  ~Entropy() = default;
};

enum class Right : std::uint8_t {
  RemoteRead,   // the peer may fetch it with a Read Request
  RemoteWrite,  // the peer may RDMA Write into it
  ReadSink,     // only Read Responses to our own Read Requests
};

enum class StagFault : std::uint8_t { Unknown, Revoked, WrongRight, Bounds, Wrap };
Reason reason_of(StagFault fault);
// What the peer is told: for a Read Request RDMAP answers, for a Write or Read Response DDP does.
ErrorCode read_error_of(StagFault fault);
ErrorCode tagged_error_of(StagFault fault);

// Where a peer's bytes go: into `bytes`, or nowhere (`discard`), because the call was given up.
struct Placement {
  MutableBytes bytes;
  bool discard = false;
};

class StagTable {
 public:
  // Registrations that may live at once; more are refused.
  static constexpr std::size_t kDefaultLimit = 8192;
  static constexpr std::size_t kQuarantine = 256;

  explicit StagTable(Entropy& entropy, std::size_t limit = kDefaultLimit);

  // Registers memory whose first byte has Tagged Offset `offset`; offset + size must not wrap
  // (STAG_CHECK). The memory is the caller's and stays valid until revoke() or discard(). Nothing
  // when the table is full.
  std::optional<std::uint32_t> expose_source(Bytes memory, std::uint64_t offset);
  std::optional<std::uint32_t> expose_sink(MutableBytes memory, std::uint64_t offset);
  std::optional<std::uint32_t> register_read_sink(MutableBytes memory, std::uint64_t offset);

  // Ends a registration; false when `stag` names none. Afterwards its memory is not touched.
  bool revoke(std::uint32_t stag);
  // A sink that was given up: the peer's bytes are accepted and dropped, its memory is free at
  // once. Ends with revoke(). False when `stag` names no sink.
  bool discard(std::uint32_t stag);
  // The memory of a source; nothing when `stag` names none.
  std::optional<Bytes> exposed_source(std::uint32_t stag) const;
  // A source that was given up: the peer reads from `copy`, of the same size, instead; its memory
  // is free at once. False when `stag` names no source.
  bool substitute(std::uint32_t stag, Buffer copy);
  // A Read Response with these bytes of a source has been sent.
  void count_read(std::uint32_t stag, std::uint64_t offset, std::size_t length);
  // A source that was given up when all of it had been read, from its beginning to its end: no
  // further Read of it is answered, its memory is free at once. Ends with revoke(). False when
  // `stag` names no such source.
  bool retire(std::uint32_t stag);
  // The peer's Send with Invalidate. Fails when the STag was never this connection's or is a Read
  // sink, which a peer has no right to invalidate; succeeds on one revoked a moment ago.
  Result<Ok, StagFault> invalidate(std::uint32_t stag);

  // The registration's bytes from `offset` on, exactly `length` of them. A sink's count as touched
  // from here on.
  Result<Placement, StagFault> sink(std::uint32_t stag, Right right, std::uint64_t offset,
                                    std::size_t length);
  // All bytes of a sink from `offset` on, when none of them has been touched; else nothing.
  MutableBytes untouched_sink(std::uint32_t stag, Right right, std::uint64_t offset) const;
  // How far a sink has been touched, also of one that was revoked a moment ago; nothing when `stag`
  // names none.
  std::optional<std::size_t> touched(std::uint32_t stag) const;
  Result<Buffer, StagFault> source(std::uint32_t stag, std::uint64_t offset,
                                   std::size_t length) const;

  std::size_t live() const { return live_; }

 private:
  enum class State : std::uint8_t { Free, Exposed, Discarding, Revoked };
  struct Entry {
    std::uint32_t stag = 0;
    State state = State::Free;
    Right right = Right::RemoteRead;
    std::uint64_t offset = 0;
    std::size_t size = 0;
    std::size_t touched = 0;        // of a sink: nothing from here on; of a source: all up to here
    std::byte* writable = nullptr;  // sinks
    const std::byte* readable = nullptr;  // sources
    Buffer copy;                          // owns what `readable` names after substitute()
  };

  std::optional<std::uint32_t> add(Entry entry);
  std::uint32_t fresh_stag();
  // Linear probing from the STag's low bits, which are random. Null when it names nothing.
  Entry* find(std::uint32_t stag);
  const Entry* find(std::uint32_t stag) const;
  void insert(Entry entry);
  void erase(std::uint32_t stag);
  void grow();
  void quarantine(std::uint32_t stag);

  Entropy& entropy_;
  std::size_t limit_;
  std::vector<Entry> entries_;  // a power of two, at most half full; empty until first used
  std::size_t used_ = 0;        // live and quarantined
  std::size_t live_ = 0;
  std::array<std::uint32_t, kQuarantine> revoked_{};  // a ring of the latest
  std::size_t revocations_ = 0;
};

}  // namespace stag::iwarp
