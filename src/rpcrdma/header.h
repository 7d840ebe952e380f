// The Transport header of RPC-over-RDMA version 1 as a value (RFC 8166 section 4): decoded once,
// with every bound and sum checked, and then nobody sees wire bytes. Ordinary headers allocate
// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/inline_vector.h"
#include "base/reason.h"
#include "base/result.h"
#include "rpcrdma/wire.h"

namespace stag::rpcrdma {

// A plain segment: memory of the Requester. `offset` is opaque, of any value (RFC 8166 3.4.3).
// Length 0 describes no data.
struct Segment {
  std::uint32_t handle = 0;
  std::uint32_t length = 0;  // bytes
  std::uint64_t offset = 0;

  friend bool operator==(const Segment&, const Segment&) = default;
};
using Segments = InlineVector<Segment, 4>;

// The sum of the lengths, in bytes. Cannot overflow: a message holds too few segments.
std::uint64_t total_length(const Segments& segments);

// All read segments of one Position, in list order. Position 0: the Payload stream itself.
struct ReadChunk {
  std::uint32_t position = 0;  // in the unreduced Payload stream (RFC 8166 3.4.5)
  Segments segments;

  friend bool operator==(const ReadChunk&, const ReadChunk&) = default;
};

// Without segments: an empty Write chunk, which asks for the result inline (RFC 8166 4.3.2.3).
struct WriteChunk {
  Segments segments;

  friend bool operator==(const WriteChunk&, const WriteChunk&) = default;
};

using ReadList = InlineVector<ReadChunk, 2>;
using WriteList = InlineVector<WriteChunk, 2>;

// RDMA_MSG or RDMA_NOMSG with its lists.
struct Header {
  std::uint32_t xid = 0;
  std::uint32_t credits = 0;
  rdma_proc proc = RDMA_MSG;
  ReadList read_list;  // one chunk for each Position, in order of first appearance
  WriteList write_list;
  std::optional<WriteChunk> reply_chunk;

  bool has_chunks() const {
    return !read_list.empty() || !write_list.empty() || reply_chunk.has_value();
  }
  void clear_chunks() {
    read_list.clear();
    write_list.clear();
    reply_chunk.reset();
  }
  friend bool operator==(const Header&, const Header&) = default;
};

// RDMA_ERROR. The version range is there with ERR_VERS only.
struct ErrorMessage {
  std::uint32_t xid = 0;
  std::uint32_t version = kVersion;  // of the Call that failed (RFC 8166 4.5)
  std::uint32_t credits = 0;
  rpc_rdma_errcode code = ERR_CHUNK;
  std::uint32_t lowest = 0, highest = 0;

  friend bool operator==(const ErrorMessage&, const ErrorMessage&) = default;
};

// What a received header may ask of us. Bytes of one chunk beyond max_chunk_bytes are refused
// (RFC 8166 8.1.4). At least 16 segments must be allowed (RFC 8267 6.4.2).
struct HeaderLimits {
  std::uint32_t max_chunks = 64;            // in each of Read list and Write list
  std::uint32_t max_segments = 64;          // in each chunk
  std::uint32_t max_segments_in_all = 256;  // a header of 4096 bytes has no room for more
  std::uint32_t max_chunk_bytes = 64u << 20;
};

struct ParsedHeader {
  // Said, so that nobody who makes one in place fills the room for chunks with zeros first.
  ParsedHeader() {}

  Header header;
  std::uint32_t size = 0;  // bytes of the header; with RDMA_MSG the Payload stream follows
};

// What a header that is no header draws from a Responder. A Requester drops all of them.
enum class HeaderErrorReply : std::uint8_t { Nothing, ErrVers, ErrChunk };

// Why there is no header. The words that an answer repeats are valid when `answer` is not Nothing.
struct HeaderFault {
  Reason reason = Reason::None;
  HeaderErrorReply answer = HeaderErrorReply::Nothing;
  std::uint32_t xid = 0;
  std::uint32_t version = 0;
  bool has_read_list = false;  // it had read segments, so it was meant as a Call

  friend bool operator==(const HeaderFault&, const HeaderFault&) = default;
};

// Whether `message` is an RDMA_ERROR of any version: then decode_error() is the decoder for it.
bool is_error(Bytes message);

// Checks in this order: length (28 bytes; 16 for RDMA_DONE), version, procedure, lists. Segments
// must neither wrap around the offset space nor exceed the limits; Positions are multiples of four;
// RDMA_MSG has no Position Zero chunk (it would hold the stream twice); RDMA_NOMSG has a chunk.
Result<ParsedHeader, HeaderFault> decode_header(Bytes message, const HeaderLimits& limits = {});
// The decoder for what most messages are: an RDMA_MSG of version 1 without chunks. False: the
// message is something else, and `to` is unchanged. Else all but the lists of `to` is set.
inline bool decode_plain_header(Bytes message, ParsedHeader& to) {
  if (message.size() < kMinHeaderSize) return false;
  const auto word = [&message](std::size_t i) {
    return load_be<std::uint32_t>(message.data() + 4 * i);
  };
  if (word(1) != kVersion || word(3) != RDMA_MSG || (word(4) | word(5) | word(6)) != 0)
    return false;
  to.header.xid = word(0);
  to.header.credits = word(2);
  to.header.proc = RDMA_MSG;
  to.size = kMinHeaderSize;
  return true;
}
// The same into a header that has no chunks yet; false: `fault` says why not.
bool decode_header(Bytes message, const HeaderLimits& limits, ParsedHeader& to, HeaderFault& fault);

// RDMA_ERROR of version 1, or ERR_VERS of any version (RFC 8166 section 7). Trailing bytes are
// ignored. Never answered, so the failure is a bare reason.
Result<ErrorMessage, Reason> decode_error(Bytes message);

// Bytes of the EncodedHeader of a Reply, which has no Read list.
std::uint32_t header_size(const WriteList& write_list,
                          const std::optional<WriteChunk>& reply_chunk);
// The same without a header at hand: read segments in all, and the segment count of each Write
// chunk and of the Reply chunk.
std::uint32_t header_size(std::uint32_t read_segments, std::span<const std::uint32_t> write_chunks,
                          std::optional<std::uint32_t> reply_chunk);

// A header as it goes out; ordinary ones lie inside. The Read list is sent chunk by chunk, so
// segments of one Position are adjacent.
class EncodedHeader {
 public:
  explicit EncodedHeader(const Header& header)
      : EncodedHeader(header.xid, header.credits, header.proc) {
    if (header.has_chunks())
      add_lists({header.read_list.data(), header.read_list.size()}, header.write_list,
                header.reply_chunk);
  }
  // The header of a Reply, whose Read list is empty.
  EncodedHeader(std::uint32_t xid, std::uint32_t credits, rdma_proc proc,
                const WriteList& write_list, const std::optional<WriteChunk>& reply_chunk)
      : EncodedHeader(xid, credits, proc) {
    if (!write_list.empty() || reply_chunk) add_lists({}, write_list, reply_chunk);
  }
  Bytes bytes() const { return Bytes(large_ ? large_.data() : small_.data(), size_); }

 private:
  // Without chunks there are three words of zero behind the fixed ones.
  EncodedHeader(std::uint32_t xid, std::uint32_t credits, rdma_proc proc) {
    store_be(small_.data(), xid);
    store_be(small_.data() + 4, kVersion);
    store_be(small_.data() + 8, credits);
    store_be(small_.data() + 12, static_cast<std::uint32_t>(proc));
    std::memset(small_.data() + kFixedSize, 0, kMinHeaderSize - kFixedSize);
  }
  void add_lists(std::span<const ReadChunk> read_list, const WriteList& write_list,
                 const std::optional<WriteChunk>& reply_chunk);

  std::uint32_t size_ = kMinHeaderSize;
  std::array<std::byte, 124> small_;
  Block large_;
};

Buffer encode_error(const ErrorMessage& error);

}  // namespace stag::rpcrdma
