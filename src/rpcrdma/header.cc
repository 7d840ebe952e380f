#include "rpcrdma/header.h"

#include <algorithm>
#include <limits>

namespace stag::rpcrdma {
namespace {

// A Call's first 40 bytes are its XID, type, versions, program, procedure and two authentication
// heads (RFC 5531 section 9): no argument can stand there.
constexpr std::uint32_t kFirstArgument = 40;

// Reads big-endian words; after the end it yields zeros and is not ok.
class Words {
 public:
  explicit Words(Bytes bytes) : bytes_(bytes) {}

  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::uint64_t u64() { return take<std::uint64_t>(); }
  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size() - at_; }
  std::uint32_t at() const { return static_cast<std::uint32_t>(at_); }

 private:
  template <class Integer>
  Integer take() {
    if (left() < sizeof(Integer)) {
      ok_ = false;
      at_ = bytes_.size();
      return 0;
    }
    const Integer value = load_be<Integer>(bytes_.data() + at_);
    at_ += sizeof(Integer);
    return value;
  }

  Bytes bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// The three lists. `reason_` is the first thing found wrong.
class ListParser {
 public:
  ListParser(Words& words, const HeaderLimits& limits) : words_(words), limits_(limits) {}

  Reason parse(Header& header, bool& has_read_list) {
    while (present()) {
      has_read_list = true;
      read_segment(header.read_list);
    }
    while (present()) {
      if (header.write_list.size() >= limits_.max_chunks) {
        fail(Reason::RdmaChunksTooMany);
        break;
      }
      write_chunk(header.write_list.emplace_back());
    }
    if (present()) write_chunk(header.reply_chunk.emplace());
    return reason_;
  }

 private:
  void fail(Reason reason) {
    if (reason_ == Reason::None) reason_ = reason;
  }

  // The word before a list entry: 1 or 0, nothing else (RFC 4506 4.19).
  bool present() {
    if (reason_ != Reason::None) return false;
    const std::uint32_t word = words_.u32();
    if (!words_.ok() || word > 1) fail(Reason::RdmaHeaderMalformed);
    return reason_ == Reason::None && word == 1;
  }

  Segment segment() {
    if (++segments_ > limits_.max_segments_in_all) fail(Reason::RdmaChunksTooMany);
    Segment segment;
    segment.handle = words_.u32();
    segment.length = words_.u32();
    segment.offset = words_.u64();
    if (!words_.ok()) fail(Reason::RdmaHeaderMalformed);
    const auto last = std::numeric_limits<std::uint64_t>::max();
    if (segment.length != 0 && segment.offset > last - (segment.length - 1))
      fail(Reason::RdmaSegmentWraps);
    return segment;
  }

  // RFC 8166 4.3.1: one flat list; segments of equal Position are one chunk, wherever they stand.
  void read_segment(ReadList& list) {
    const std::uint32_t position = words_.u32();
    const Segment piece = segment();
    if (position % 4 != 0 || (position != 0 && position < kFirstArgument))
      fail(Reason::InvalidReadPosition);
    if (reason_ != Reason::None) return;
    auto* chunk = std::find_if(list.begin(), list.end(), [position](const ReadChunk& other) {
      return other.position == position;
    });
    if (chunk == list.end()) {
      if (list.size() >= limits_.max_chunks) return fail(Reason::RdmaChunksTooMany);
      list.emplace_back().position = position;
      chunk = &list.back();
    }
    if (chunk->segments.size() >= limits_.max_segments) return fail(Reason::RdmaChunksTooMany);
    chunk->segments.push_back(piece);
    if (total_length(chunk->segments) > limits_.max_chunk_bytes) fail(Reason::RdmaChunkTooLarge);
  }

  void write_chunk(WriteChunk& chunk) {
    const std::uint32_t count = words_.u32();
    if (!words_.ok() || count > words_.left() / kSegmentSize)
      return fail(Reason::RdmaHeaderMalformed);
    if (count > limits_.max_segments) return fail(Reason::RdmaChunksTooMany);
    chunk.segments.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) chunk.segments.push_back(segment());
  }

  Words& words_;
  const HeaderLimits& limits_;
  std::uint32_t segments_ = 0;  // in all lists so far
  Reason reason_ = Reason::None;
};

// RFC 8166 3.5.3, 4.2.4: where the Payload stream is said to be.
Reason stream_fault(const Header& header) {
  const auto* zero = std::find_if(header.read_list.begin(), header.read_list.end(),
                                  [](const ReadChunk& chunk) { return chunk.position == 0; });
  const bool position_zero = zero != header.read_list.end();
  if (header.proc == RDMA_MSG) return position_zero ? Reason::RdmaStreamTwice : Reason::None;
  if (position_zero)
    return total_length(zero->segments) == 0 ? Reason::RdmaStreamMissing : Reason::None;
  const bool can_be_reply = header.read_list.empty() && header.reply_chunk.has_value();
  return can_be_reply ? Reason::None : Reason::RdmaStreamMissing;
}

std::uint32_t chunk_size(std::size_t segments) {
  return kWriteChunkHead + static_cast<std::uint32_t>(segments) * kSegmentSize;
}
// The Reply chunk is one optional entry, not a list: no zero word closes it (RFC 8166 4.7).
std::uint32_t reply_chunk_size(std::size_t segments) {
  return chunk_size(segments) - 4;
}

std::uint32_t read_list_size(std::span<const ReadChunk> read_list) {
  std::uint32_t size = 0;
  for (const ReadChunk& chunk : read_list)
    size += static_cast<std::uint32_t>(chunk.segments.size()) * kReadEntrySize;
  return size;
}

// Writes big-endian words into memory known to be large enough.
class WordWriter {
 public:
  explicit WordWriter(std::byte* to) : to_(to) {}
  void u32(std::uint32_t value) {
    store_be(to_, value);
    to_ += 4;
  }
  void segment(const Segment& segment) {
    u32(segment.handle);
    u32(segment.length);
    store_be(to_, segment.offset);
    to_ += 8;
  }
  void chunk(const WriteChunk& chunk) {
    u32(1);
    u32(static_cast<std::uint32_t>(chunk.segments.size()));
    for (const Segment& piece : chunk.segments) segment(piece);
  }
  void results(const WriteList& write_list, const std::optional<WriteChunk>& reply_chunk) {
    for (const WriteChunk& each : write_list) chunk(each);
    u32(0);
    if (reply_chunk)
      chunk(*reply_chunk);
    else
      u32(0);
  }

 private:
  std::byte* to_;
};

}  // namespace

std::uint64_t total_length(const Segments& segments) {
  std::uint64_t total = 0;
  for (const Segment& segment : segments) total += segment.length;
  return total;
}

bool is_error(Bytes message) {
  return message.size() >= kFixedSize && load_be<std::uint32_t>(message.data() + 12) == RDMA_ERROR;
}

bool decode_header(Bytes message, const HeaderLimits& limits, ParsedHeader& parsed,
                   HeaderFault& fault) {
  const auto failed = [&fault](Reason reason, HeaderErrorReply answer) {
    fault.reason = reason;
    fault.answer = answer;
    return false;
  };
  if (message.size() < kFixedSize)
    return failed(Reason::RdmaMessageTooShort, HeaderErrorReply::Nothing);
  const auto word = [&message](std::size_t i) {
    return load_be<std::uint32_t>(message.data() + 4 * i);
  };
  parsed.header.xid = fault.xid = word(0);
  fault.version = word(1);
  parsed.header.credits = word(2);
  const std::uint32_t proc = word(3);
  // The numbers of these two are the same in all versions, and neither is ever answered.
  if (proc == RDMA_DONE) return failed(Reason::RdmaDone, HeaderErrorReply::Nothing);
  if (proc == RDMA_ERROR) return failed(Reason::RdmaErrorMalformed, HeaderErrorReply::Nothing);
  // RFC 8166 4.5: nothing shorter is parsed.
  if (message.size() < kMinHeaderSize)
    return failed(Reason::RdmaMessageTooShort, HeaderErrorReply::Nothing);
  if (fault.version != kVersion)
    return failed(Reason::RdmaVersionUnsupported, HeaderErrorReply::ErrVers);
  if (proc == RDMA_MSGP) return failed(Reason::RdmaMsgp, HeaderErrorReply::ErrChunk);
  if (proc > RDMA_NOMSG) return failed(Reason::RdmaProcedureUnknown, HeaderErrorReply::ErrChunk);

  parsed.header.proc = static_cast<rdma_proc>(proc);
  Words words(message.subspan(kFixedSize));
  Reason reason = ListParser(words, limits).parse(parsed.header, fault.has_read_list);
  if (reason == Reason::None) reason = stream_fault(parsed.header);
  if (reason != Reason::None) return failed(reason, HeaderErrorReply::ErrChunk);
  parsed.size = kFixedSize + words.at();
  return true;
}

Result<ParsedHeader, HeaderFault> decode_header(Bytes message, const HeaderLimits& limits) {
  Result<ParsedHeader, HeaderFault> result(std::in_place);
  HeaderFault fault;
  if (!decode_header(message, limits, *result, fault)) result = Failure{fault};
  return result;
}

Result<ErrorMessage, Reason> decode_error(Bytes message) {
  Words words(message);
  ErrorMessage error;
  error.xid = words.u32();
  error.version = words.u32();
  error.credits = words.u32();
  const std::uint32_t proc = words.u32();
  const std::uint32_t code = words.u32();
  error.code = static_cast<rpc_rdma_errcode>(code);
  if (code == ERR_VERS) {
    error.lowest = words.u32();
    error.highest = words.u32();
  } else if (code != ERR_CHUNK || error.version != kVersion) {
    return Failure{Reason::RdmaErrorMalformed};
  }
  if (!words.ok() || proc != RDMA_ERROR) return Failure{Reason::RdmaErrorMalformed};
  return error;
}

std::uint32_t header_size(std::uint32_t read_segments, std::span<const std::uint32_t> write_chunks,
                          std::optional<std::uint32_t> reply_chunk) {
  std::uint32_t size = kMinHeaderSize + read_segments * kReadEntrySize;
  for (std::uint32_t segments : write_chunks) size += chunk_size(segments);
  if (reply_chunk) size += reply_chunk_size(*reply_chunk);
  return size;
}

std::uint32_t header_size(const WriteList& write_list,
                          const std::optional<WriteChunk>& reply_chunk) {
  std::uint32_t size = kMinHeaderSize;
  for (const WriteChunk& chunk : write_list) size += chunk_size(chunk.segments.size());
  if (reply_chunk) size += reply_chunk_size(reply_chunk->segments.size());
  return size;
}

void EncodedHeader::add_lists(std::span<const ReadChunk> read_list, const WriteList& write_list,
                              const std::optional<WriteChunk>& reply_chunk) {
  size_ = header_size(write_list, reply_chunk) + read_list_size(read_list);
  if (size_ > small_.size()) {
    large_ = Block::allocate(size_);
    std::memcpy(large_.data(), small_.data(), kFixedSize);
  }
  WordWriter words((large_ ? large_.data() : small_.data()) + kFixedSize);
  for (const ReadChunk& chunk : read_list) {
    for (const Segment& segment : chunk.segments) {
      words.u32(1);
      words.u32(chunk.position);
      words.segment(segment);
    }
  }
  words.u32(0);
  words.results(write_list, reply_chunk);
}

Buffer encode_error(const ErrorMessage& error) {
  const std::uint32_t size = error.code == ERR_VERS ? kErrVersSize : kErrChunkSize;
  Block block = Block::allocate(size);
  WordWriter words(block.data());
  words.u32(error.xid);
  words.u32(error.version);
  words.u32(error.credits);
  words.u32(RDMA_ERROR);
  words.u32(error.code);
  if (error.code == ERR_VERS) {
    words.u32(error.lowest);
    words.u32(error.highest);
  }
  return std::move(block).freeze(size);
}

}  // namespace stag::rpcrdma
