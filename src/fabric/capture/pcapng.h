// The blocks of a file in pcapng (draft-ietf-opsawg-pcapng), which Wireshark reads. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace stag::fabric::capture {

// The section and its one interface, of Ethernet; `program` is who wrote it.
void append_header(std::vector<std::byte>& to, std::string_view program);

// Bytes that append_packet() appends for a frame of `size` bytes.
std::size_t packet_size(std::size_t size);
// `at`: microseconds since 1970.
void append_packet(std::vector<std::byte>& to, std::uint64_t at, Bytes frame);

// How many of these bytes, which begin with a block and end behind one, are blocks that are not
// more than `most` together; the first block, where that alone is.
std::size_t whole_blocks(Bytes bytes, std::size_t most);

// How many frames there were, and how many of them are not in the file.
void append_statistics(std::vector<std::byte>& to, std::uint64_t at, std::uint64_t frames,
                       std::uint64_t lost);

}  // namespace stag::fabric::capture
