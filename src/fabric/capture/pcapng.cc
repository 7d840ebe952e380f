#include "fabric/capture/pcapng.h"

namespace stag::fabric::capture {

namespace {

constexpr std::uint32_t kSection = 0x0a0d0d0a, kInterface = 1, kPacket = 6, kStatistics = 5;
constexpr std::size_t kFraming = 12;         // type and both lengths of a block
constexpr std::size_t kPacketHeader = 20;    // of its body
constexpr std::uint16_t kNameOfProgram = 4;  // of a section; of statistics it is what was received
constexpr std::uint16_t kReceived = 4, kDropped = 5;

// Least significant byte first; the magic number of the section says so.
template <class Number>
void put(std::vector<std::byte>& to, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    to.push_back(static_cast<std::byte>(number >> (8 * i)));
}

std::size_t padded(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

void put(std::vector<std::byte>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
  to.resize(to.size() + padded(bytes.size()) - bytes.size());
}

void put_time(std::vector<std::byte>& to, std::uint64_t at) {
  put(to, static_cast<std::uint32_t>(at >> 32));
  put(to, static_cast<std::uint32_t>(at));
}

void begin(std::vector<std::byte>& to, std::uint32_t type, std::size_t body) {
  put(to, type);
  put(to, static_cast<std::uint32_t>(body + kFraming));
}
void end(std::vector<std::byte>& to, std::size_t body) {
  put(to, static_cast<std::uint32_t>(body + kFraming));
}

void put_option(std::vector<std::byte>& to, std::uint16_t code, Bytes value) {
  put(to, code);
  put(to, static_cast<std::uint16_t>(value.size()));
  put(to, value);
}
void put_option(std::vector<std::byte>& to, std::uint16_t code, std::uint64_t value) {
  put(to, code);
  put(to, std::uint16_t{8});
  put(to, value);
}

}  // namespace

void append_header(std::vector<std::byte>& to, std::string_view program) {
  constexpr std::uint32_t kMagic = 0x1a2b3c4d, kEndOfOptions = 0;
  const std::size_t section = 16 + 4 + padded(program.size()) + 4, interface = 8;
  begin(to, kSection, section);
  put(to, kMagic);
  put(to, std::uint16_t{1});
  put(to, std::uint16_t{0});
  put(to, ~std::uint64_t{0});  // how long the section is is not known
  put_option(to, kNameOfProgram, bytes_of(program));
  put(to, kEndOfOptions);
  end(to, section);
  begin(to, kInterface, interface);
  put(to, std::uint16_t{1});  // LINKTYPE_ETHERNET
  put(to, std::uint16_t{0});
  put(to, std::uint32_t{0});  // no frame is too long
  end(to, interface);
}

std::size_t packet_size(std::size_t size) {
  return kFraming + kPacketHeader + padded(size);
}

void append_packet(std::vector<std::byte>& to, std::uint64_t at, Bytes frame) {
  const std::size_t body = kPacketHeader + padded(frame.size());
  begin(to, kPacket, body);
  put(to, std::uint32_t{0});
  put_time(to, at);
  put(to, static_cast<std::uint32_t>(frame.size()));
  put(to, static_cast<std::uint32_t>(frame.size()));  // none is cut
  put(to, frame);
  end(to, body);
}

std::size_t whole_blocks(Bytes bytes, std::size_t most) {
  std::size_t end = 0;
  while (bytes.size() - end >= kFraming) {
    std::size_t block = 0;
    for (std::size_t i = 4; i-- > 0;)
      block = block << 8 | std::to_integer<std::size_t>(bytes[end + 4 + i]);
    if (block < kFraming || block > bytes.size() - end) return bytes.size();
    if (end != 0 && end + block > most) break;
    end += block;
  }
  return end;
}

void append_statistics(std::vector<std::byte>& to, std::uint64_t at, std::uint64_t frames,
                       std::uint64_t lost) {
  constexpr std::size_t kBody = 12 + 12 + 12 + 4;
  begin(to, kStatistics, kBody);
  put(to, std::uint32_t{0});
  put_time(to, at);
  put_option(to, kReceived, frames);
  put_option(to, kDropped, lost);
  put(to, std::uint32_t{0});
  end(to, kBody);
}

}  // namespace stag::fabric::capture
