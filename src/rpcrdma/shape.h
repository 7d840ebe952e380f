// What the transport must know of an RPC message to move it: lengths and positions, never bytes.
// Positions count the complete, unreduced Payload stream; lengths are bytes without XDR pad.
#pragma once

#include <cstdint>
#include <limits>

#include "base/inline_vector.h"

namespace stag::rpcrdma {

// One DDP-eligible data item of a message (RFC 8166 3.4.2).
struct Item {
  std::uint32_t position = 0;  // of its first data byte
  std::uint32_t length = 0;
  std::uint32_t segments = 1;  // registrations needed to expose it, when it is a Call's
  std::uint32_t source = 0;    // the owner's name for it, e.g. its index in xdr::Stream::items()
  std::uint32_t ordinal = 0;   // of a result: which of the eligible ones, absent ones counted
  // XDR pad that the owner of an argument adds to its Read chunk. RFC 8166 3.4.5.2 advises against
  // it; it is all of the pad or nothing.
  std::uint32_t chunk_pad = 0;

  friend bool operator==(const Item&, const Item&) = default;
};
using Items = InlineVector<Item, 2>;

struct CallShape {
  std::uint32_t length = 0;    // of the complete stream, a multiple of 4
  std::uint32_t segments = 1;  // registrations needed to expose the whole stream
  Items items;                 // eligible arguments, in stream order
};

// The largest eligible result that may come back at one place.
struct ResultBound {
  std::uint32_t max_length = 0;
  std::uint32_t segments = 1;  // registrations needed for its memory
  bool wanted_inline = false;  // ask for it inline with an empty Write chunk (RFC 8166 4.3.2.3)
};

// RFC 8166 4.3.2.2: the next result takes the chunk an absent one left (Shift). RFC 8267 6.4.1 for
// NFSv4: each result has its own place in the Write list (ByIndex, by Item::ordinal).
enum class Pairing : std::uint8_t { Shift, ByIndex };

// RFC 8166 6.2: the largest Reply, known before the Call is sent.
struct ReplyBound {
  std::uint32_t payload_max = 0;  // of the Reply's stream without data and pad of `results`
  std::uint32_t segments = 1;     // registrations needed for a Reply chunk
  std::uint32_t reply_chunk_max = std::numeric_limits<std::uint32_t>::max();  // bytes to offer
  InlineVector<ResultBound, 2> results;  // eligible results, in order
  Pairing pairing = Pairing::Shift;
};

struct ReplyShape {
  std::uint32_t length = 0;  // of the complete stream, a multiple of 4
  Items items;               // eligible results that are there, in stream order
  Pairing pairing = Pairing::Shift;
};

}  // namespace stag::rpcrdma
