// How a message travels: Short, Chunked or Long (RFC 8166 section 3.5). Pure functions from shapes
// and limits to a plan; performing a plan takes no further decision.
#pragma once

#include <cstdint>
#include <optional>

#include "base/inline_vector.h"
#include "base/reason.h"
#include "base/result.h"
#include "rpcrdma/header.h"
#include "rpcrdma/peer_quirks.h"
#include "rpcrdma/shape.h"
#include "rpcrdma/wire.h"

namespace stag::rpcrdma {

struct CallLimits {
  std::uint32_t call_threshold = kDefaultInlineThreshold;   // bytes of header and inline stream
  std::uint32_t reply_threshold = kDefaultInlineThreshold;  // the same of a Reply
  std::uint32_t max_segments = 16;                          // per chunk (RFC 8267 6.4.2)
  PeerQuirks quirks;
};

// RDMA_MSG with the stream (less what was reduced) behind the header, or RDMA_NOMSG with the stream
// in the Position Zero Read chunk or the Reply chunk.
enum class Form : std::uint8_t { Inline, Long };

struct CallPlan {
  CallPlan() {}  // like ParsedHeader's

  Form form = Form::Inline;
  // Indices into CallShape::items, ascending: each travels in a Read chunk of its own.
  InlineVector<std::uint32_t, 2> reduced;
  // Bytes of the stream less reduced items with their pads: what is inline, or (Long) in the
  // Position Zero Read chunk, complete with the pads of all items inside.
  std::uint32_t stream_length = 0;
  // One entry for each of ReplyBound::results, or none at all: room in bytes of the Write chunk,
  // 0 for an empty chunk.
  InlineVector<std::uint32_t, 2> write_chunks;
  std::uint32_t reply_chunk = 0;  // bytes of room, 0: no Reply chunk
  std::uint32_t header_size = 0;  // bytes at most

  void clear() {
    form = Form::Inline;
    reduced.clear();
    write_chunks.clear();
    reply_chunk = 0;
  }
  bool needs_memory() const {
    return form == Form::Long || !reduced.empty() || !write_chunks.empty() || reply_chunk != 0;
  }
  friend bool operator==(const CallPlan&, const CallPlan&) = default;
};

// Fails when the header alone does not fit the threshold or a chunk needs more segments than
// allowed (the owner then gathers memory and tries again, or gives up).
// `plan` may be that of an earlier Call. None: it can be done.
Reason plan_call(const CallShape& shape, const ReplyBound& bound, const CallLimits& limits,
                 CallPlan& plan);

// One RDMA Write: `length` bytes from `offset` of the source to the peer's memory. Never pad.
inline constexpr std::uint32_t kReplyStream = 0xffffffff;
struct Placement {
  std::uint32_t item = kReplyStream;  // index into ReplyShape::items, or the stream less `reduced`
  std::uint32_t offset = 0;
  Segment to;

  friend bool operator==(const Placement&, const Placement&) = default;
};

struct ReplyPlan {
  ReplyPlan() {}  // like ParsedHeader's

  Form form = Form::Inline;
  InlineVector<std::uint32_t, 2> reduced;  // indices into ReplyShape::items, ascending
  std::uint32_t stream_length = 0;         // bytes inline, or (Long) in the Reply chunk
  InlineVector<Placement, 4> writes;       // all before the Send (RFC 8166 4.4.2)
  WriteList write_list;                    // the Call's, with the lengths returned
  std::optional<WriteChunk> reply_chunk;   // the Call's, with the lengths returned

  void clear() {
    form = Form::Inline;
    reduced.clear();
    writes.clear();
    write_list.clear();
    reply_chunk.reset();
  }
  friend bool operator==(const ReplyPlan&, const ReplyPlan&) = default;
};

// `write_list` and `reply_chunk` are the Call's. All sizes are checked before anything is written;
// a Failure is answered with ERR_CHUNK (RFC 8166 4.5.3, RFC 8267 3.1).
Result<ReplyPlan, Reason> plan_reply(const ReplyShape& shape, const WriteList& write_list,
                                     const std::optional<WriteChunk>& reply_chunk,
                                     std::uint32_t reply_threshold);
// The same into a plan that is there, perhaps of an earlier Reply; None: it can be done.
Reason plan_reply(const ReplyShape& shape, const WriteList& write_list,
                  const std::optional<WriteChunk>& reply_chunk, std::uint32_t reply_threshold,
                  ReplyPlan& plan);

}  // namespace stag::rpcrdma
