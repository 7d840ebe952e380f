#include "fabric/capture/frames.h"

#include <algorithm>
#include <array>

namespace stag::fabric::capture {

namespace {

constexpr std::uint8_t kSendFirst = 0, kSendMiddle = 1, kSendLast = 2, kSendOnly = 4;
constexpr std::uint8_t kWriteFirst = 6, kWriteMiddle = 7, kWriteLast = 8, kWriteOnly = 10;
constexpr std::uint8_t kReadRequest = 12, kAnswerFirst = 13, kAnswerMiddle = 14, kAnswerLast = 15,
                       kAnswerOnly = 16;
constexpr std::uint8_t kSendLastInvalidate = 22, kSendOnlyInvalidate = 23, kDatagram = 100;
constexpr std::uint16_t kRequest = 0x10, kReply = 0x13, kReadyToUse = 0x14;
constexpr std::uint32_t kManagementPair = 1;
constexpr std::size_t kManagementSize = 232;  // behind the header of a management datagram

// Appends numbers in network byte order.
class Out {
 public:
  explicit Out(std::vector<std::byte>& to) : to_(to) {}
  template <class Number>
  Out& operator<<(Number number) {
    for (std::size_t i = sizeof(Number); i-- > 0;)
      to_.push_back(static_cast<std::byte>(number >> (8 * i)));
    return *this;
  }
  Out& operator<<(Bytes bytes) {
    to_.insert(to_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Out& three_bytes(std::uint32_t number) {
    return *this << static_cast<std::uint16_t>(number >> 8) << static_cast<std::uint8_t>(number);
  }
  Out& zeros(std::size_t count) {
    to_.resize(to_.size() + count);
    return *this;
  }

 private:
  std::vector<std::byte>& to_;
};

std::uint8_t byte(std::size_t value) {
  return static_cast<std::uint8_t>(value);
}

// RFC 791 3.1: over the twenty bytes of the header, in which it is still 0.
std::uint16_t checksum(Bytes header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < header.size(); i += 2)
    sum += std::to_integer<std::uint32_t>(header[i]) << 8 |
           std::to_integer<std::uint32_t>(header[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

// The headers before those of InfiniBand, of which `size` bytes follow.
void put_network(const End& from, const End& to, std::size_t size, std::vector<std::byte>& frame) {
  constexpr std::uint8_t kUdp = 17, kHops = 64;
  const bool v4 = from.address.is_v4() && to.address.is_v4();
  const std::size_t datagram = size + 8;
  Out out(frame);
  // Addresses of no card: those that are administered locally.
  out.three_bytes(0x020000).three_bytes(to.queue_pair);
  out.three_bytes(0x020000).three_bytes(from.queue_pair);
  out << std::uint16_t(v4 ? 0x0800 : 0x86dd);
  if (v4) {
    const std::size_t begin = frame.size();
    out << std::uint16_t(0x4500) << static_cast<std::uint16_t>(datagram + 20) << std::uint16_t(0)
        << std::uint16_t(0x4000) << kHops << kUdp << std::uint16_t(0)
        << static_cast<std::uint32_t>(from.address.low)
        << static_cast<std::uint32_t>(to.address.low);
    const std::uint16_t sum = checksum(Bytes(frame).subspan(begin));
    frame[begin + 10] = static_cast<std::byte>(sum >> 8);
    frame[begin + 11] = static_cast<std::byte>(sum);
  } else {
    out << std::uint32_t(0x60000000) << static_cast<std::uint16_t>(datagram) << kUdp << kHops
        << from.address.high << from.address.low << to.address.high << to.address.low;
  }
  // Annex A17.4.5.2: the source port tells flows apart.
  out << static_cast<std::uint16_t>(0xc000 | (from.queue_pair & 0x3fff)) << std::uint16_t(4791)
      << static_cast<std::uint16_t>(datagram) << std::uint16_t(0);
}

// Which of the pieces of a message this is chooses its opcode.
struct Opcodes {
  std::uint8_t first, middle, last, only;
  std::uint8_t of(bool begins, bool ends) const {
    if (begins) return ends ? only : first;
    return ends ? last : middle;
  }
};

std::array<std::byte, 16> memory_header(const RemoteMemory& memory, std::size_t length) {
  std::vector<std::byte> bytes;
  Out(bytes) << memory.offset << memory.handle << static_cast<std::uint32_t>(length);
  std::array<std::byte, 16> header{};
  std::copy(bytes.begin(), bytes.end(), header.begin());
  return header;
}

constexpr std::array<std::byte, 4> kAcknowledged{};

}  // namespace

Frames::Frames(const Address& near, const Address& far, std::uint32_t number, FrameSink& sink)
    : number_(number), sink_(sink) {
  const auto end = [number](const Address& at, std::uint32_t which) {
    // 24 bits, and the first of them are not free (chapter 3.5.10).
    const std::uint32_t pair = 0x100 + ((2 * number + which) & 0x7fffff);
    return End{IpAddress::parse(at.host).value_or(IpAddress()), at.port, pair};
  };
  near_ = end(near, 0);
  far_ = end(far, 1);
}

void Frames::put(const End& from, const End& to, const Headers& headers, Bytes extended,
                 Bytes payload) {
  const std::size_t padding = -payload.size() & 3, checks = 4;
  const std::size_t size = 12 + extended.size() + payload.size() + padding + checks;
  frame_.clear();
  put_network(from, to, size, frame_);
  Out out(frame_);
  out << headers.opcode << byte(0x40 | padding << 4) << std::uint16_t(0xffff) << headers.queue_pair
      << (headers.packet & 0xffffff) << extended;
  out << payload;
  out.zeros(padding + checks);
  sink_.take(frame_);
}

void Frames::send(From from, Bytes message, std::optional<std::uint32_t> handle) {
  const Opcodes codes{kSendFirst, kSendMiddle, handle ? kSendLastInvalidate : kSendLast,
                      handle ? kSendOnlyInvalidate : kSendOnly};
  std::vector<std::byte> invalidated;
  if (handle) Out(invalidated) << *handle;
  for (std::size_t at = 0; at == 0 || at < message.size(); at += kMtu) {
    const Bytes piece = message.subspan(at, std::min(kMtu, message.size() - at));
    const bool last = at + kMtu >= message.size();
    put(end(from), other(from),
        {codes.of(at == 0, last), end(from).next_packet++, other(from).queue_pair},
        last ? Bytes(invalidated) : Bytes(), piece);
  }
}

void Frames::write(From from, Bytes data, const RemoteMemory& sink) {
  const Opcodes codes{kWriteFirst, kWriteMiddle, kWriteLast, kWriteOnly};
  const auto where = memory_header(sink, data.size());
  for (std::size_t at = 0; at == 0 || at < data.size(); at += kMtu) {
    const Bytes piece = data.subspan(at, std::min(kMtu, data.size() - at));
    const bool last = at + kMtu >= data.size();
    put(end(from), other(from),
        {codes.of(at == 0, last), end(from).next_packet++, other(from).queue_pair},
        at == 0 ? Bytes(where) : Bytes(), piece);
  }
}

std::uint32_t Frames::read(From from, const RemoteMemory& source, std::uint32_t length) {
  const std::uint32_t first = end(from).next_packet;
  put(end(from), other(from), {kReadRequest, first, other(from).queue_pair},
      memory_header(source, length), {});
  // Chapter 9.4.4: the answers have the numbers from that of the request on.
  const std::uint32_t answers = length == 0 ? 1 : (length - 1) / kMtu + 1;
  end(from).next_packet += answers;
  return first;
}

void Frames::answer(From from, std::uint32_t asked, Bytes data) {
  const Opcodes codes{kAnswerFirst, kAnswerMiddle, kAnswerLast, kAnswerOnly};
  for (std::size_t at = 0; at == 0 || at < data.size(); at += kMtu) {
    const Bytes piece = data.subspan(at, std::min(kMtu, data.size() - at));
    const bool last = at + kMtu >= data.size();
    put(other(from), end(from), {codes.of(at == 0, last), asked++, end(from).queue_pair},
        at == 0 || last ? Bytes(kAcknowledged) : Bytes(), piece);
  }
}

void Frames::connect(From from, Bytes asked, Bytes answered) {
  const From to = from == From::Near ? From::Far : From::Near;
  put_management(from, kRequest, request(from, asked));
  put_management(to, kReply, reply(to, answered));
  std::vector<std::byte> ready;
  Out(ready) << end(from).queue_pair << end(to).queue_pair;
  put_management(from, kReadyToUse, ready);
}

void Frames::put_management(From from, std::uint16_t attribute, Bytes body) {
  std::vector<std::byte> extended, datagram;
  Out(extended) << std::uint32_t(0x80010000) << kManagementPair;
  Out out(datagram);
  // Base version 1, class 7 (communication management) version 2, method Send.
  out << std::uint32_t(0x01070203) << std::uint32_t(0) << std::uint64_t(number_) << attribute
      << std::uint16_t(0) << std::uint32_t(0);
  out << body.first(std::min(body.size(), kManagementSize));
  datagram.resize(24 + kManagementSize);
  put(end(from), other(from), {kDatagram, 0, kManagementPair}, extended, datagram);
}

// 12.6.5; behind it the header of RDMA-CM (A11.2), which has the IP addresses. What is said in the
// real one of retries, timeouts and paths is not known.
std::vector<std::byte> Frames::request(From from, Bytes private_data) {
  const End &asks = end(from), &asked = other(from);
  constexpr std::uint64_t kIpService = 0x0000000001060000;
  constexpr std::uint8_t kReads = 32, kMtu4096 = 5 << 4;
  std::vector<std::byte> body;
  Out out(body);
  out << asks.queue_pair << std::uint32_t(0) << (kIpService | asked.port)
      << std::uint64_t(asks.queue_pair);
  out.zeros(8).three_bytes(asks.queue_pair) << kReads;
  out.zeros(3) << kReads;
  out.zeros(8) << std::uint16_t(0xffff) << kMtu4096;
  out.zeros(5);
  out << asks.address.high << asks.address.low << asked.address.high << asked.address.low;
  out.zeros(52);
  const bool v4 = asks.address.is_v4() && asked.address.is_v4();
  out << std::uint8_t(0) << byte(v4 ? 4 << 4 : 6 << 4) << asks.port;
  for (const End* each : {&asks, &asked})
    out << (v4 ? 0 : each->address.high)
        << (v4 ? each->address.low & 0xffffffff : each->address.low);
  out << private_data;
  return body;
}

// 12.6.6.
std::vector<std::byte> Frames::reply(From from, Bytes private_data) {
  const End &answers = end(from), &asked = other(from);
  constexpr std::uint8_t kReads = 32;
  std::vector<std::byte> body;
  Out out(body);
  out << answers.queue_pair << asked.queue_pair << std::uint32_t(0);
  out.three_bytes(answers.queue_pair).zeros(9) << kReads << kReads;
  out.zeros(2) << std::uint64_t(answers.queue_pair) << private_data;
  return body;
}

}  // namespace stag::fabric::capture
