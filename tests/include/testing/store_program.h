// A small program for tests of transports: numbers, bulk arguments, bulk results, and the ways a
// procedure can end. Its descriptors are what xdrgen would write.
#pragma once

#include <array>
#include <string>

#include "rpc/binding.h"
#include "testing/pattern.h"
#include "xdr/encoder.h"
#include "xdr/procedure.h"
#include "xdr/types.h"

namespace stag::testing::store {

inline constexpr std::uint32_t kProgram = 0x20000077;
inline constexpr std::uint32_t kVersion = 2;

namespace item {
inline constexpr xdr::ItemId put_data = 1;
inline constexpr xdr::ItemId get_data = 2;
}  // namespace item

struct PutArgs {
  std::uint32_t slot = 0;
  xdr::Opaque data{};
  std::uint32_t checksum = 0;  // behind the data: proves that positions are kept
};
struct PutResults {
  std::uint32_t stored = 0;
  std::uint32_t checksum = 0;
};
struct GetArgs {
  std::uint32_t slot = 0;
  std::uint32_t count = 0;
};
struct GetResults {
  std::uint32_t status = 0;  // 0: data follows
  xdr::Opaque data{};
  std::uint32_t checksum = 0;
};

template <std::uint32_t Number, class A, class R>
struct Base {
  using Args = A;
  using Results = R;
  static constexpr std::uint32_t program = kProgram;
  static constexpr std::uint32_t version = kVersion;
  static constexpr std::uint32_t number = Number;
};

// The argument plus one.
struct INCREMENT : Base<1, std::uint32_t, std::uint32_t> {
  static constexpr std::string_view name = "INCREMENT";
  static constexpr std::optional<std::uint32_t> max_args_size = 4;
  static constexpr std::optional<std::uint32_t> max_results_size = 4;
  static void encode_args(xdr::Encoder& to, std::uint32_t value) { to.u32(value); }
  static bool decode_args(xdr::Decoder& from, std::uint32_t& value) { return from.u32(value); }
  static void encode_results(xdr::Encoder& to, std::uint32_t value) { to.u32(value); }
  static bool decode_results(xdr::Decoder& from, std::uint32_t& value) { return from.u32(value); }
};

struct PUT : Base<2, PutArgs, PutResults> {
  static constexpr std::string_view name = "PUT";
  static constexpr std::optional<std::uint32_t> max_args_size = std::nullopt;
  static constexpr std::optional<std::uint32_t> max_results_size = 8;
  static void encode_args(xdr::Encoder& to, const PutArgs& args) {
    to.u32(args.slot);
    to.opaque(item::put_data, args.data);
    to.u32(args.checksum);
  }
  static bool decode_args(xdr::Decoder& from, PutArgs& args) {
    return from.u32(args.slot) && from.opaque(item::put_data, args.data) && from.u32(args.checksum);
  }
  static void encode_results(xdr::Encoder& to, const PutResults& results) {
    to.u32(results.stored);
    to.u32(results.checksum);
  }
  static bool decode_results(xdr::Decoder& from, PutResults& results) {
    return from.u32(results.stored) && from.u32(results.checksum);
  }
};

struct GET : Base<3, GetArgs, GetResults> {
  static constexpr std::string_view name = "GET";
  static constexpr std::optional<std::uint32_t> max_args_size = 8;
  static constexpr std::optional<std::uint32_t> max_results_size = std::nullopt;
  static void encode_args(xdr::Encoder& to, const GetArgs& args) {
    to.u32(args.slot);
    to.u32(args.count);
  }
  static bool decode_args(xdr::Decoder& from, GetArgs& args) {
    return from.u32(args.slot) && from.u32(args.count);
  }
  static void encode_results(xdr::Encoder& to, const GetResults& results) {
    to.u32(results.status);
    if (results.status != 0) return;
    to.opaque(item::get_data, results.data);
    to.u32(results.checksum);
  }
  static bool decode_results(xdr::Decoder& from, GetResults& results) {
    if (!from.u32(results.status)) return false;
    return results.status != 0 ||
           (from.opaque(item::get_data, results.data) && from.u32(results.checksum));
  }
};

// Adds to a counter: running it twice is an error.
struct ADD_ONCE : Base<4, std::uint32_t, std::uint32_t> {
  static constexpr std::string_view name = "ADD_ONCE";
  static constexpr std::optional<std::uint32_t> max_args_size = 4;
  static constexpr std::optional<std::uint32_t> max_results_size = 4;
  static void encode_args(xdr::Encoder& to, std::uint32_t value) { to.u32(value); }
  static bool decode_args(xdr::Decoder& from, std::uint32_t& value) { return from.u32(value); }
  static void encode_results(xdr::Encoder& to, std::uint32_t value) { to.u32(value); }
  static bool decode_results(xdr::Decoder& from, std::uint32_t& value) { return from.u32(value); }
};

// Bulk both ways that no binding makes eligible: Long Calls and Long Replies.
struct REVERSE : Base<5, std::string, std::string> {
  static constexpr std::string_view name = "REVERSE";
  static constexpr std::optional<std::uint32_t> max_args_size = std::nullopt;
  static constexpr std::optional<std::uint32_t> max_results_size = std::nullopt;
  static void encode_args(xdr::Encoder& to, const std::string& text) { to.string(0, text); }
  static bool decode_args(xdr::Decoder& from, std::string& text) { return from.string(0, text); }
  static void encode_results(xdr::Encoder& to, const std::string& text) { to.string(0, text); }
  static bool decode_results(xdr::Decoder& from, std::string& text) { return from.string(0, text); }
};

inline constexpr std::array kTable{
    rpc::bind<PUT>({item::put_data}),
    rpc::bind<GET>({}, {item::get_data},
                   [](const GetArgs& args) {
                     rpc::ReplyBound bound;
                     bound.payload_max = 12;
                     bound.items.push_back({item::get_data, args.count});
                     return bound;
                   }),
    rpc::bind<ADD_ONCE>().once_only(),
    rpc::bind<REVERSE>({}, {},
                       [](const std::string& text) {
                         rpc::ReplyBound bound;
                         bound.payload_max = 8 + static_cast<std::uint32_t>(text.size());
                         return bound;
                       }),
};
inline constexpr rpc::Binding kBinding{kTable};

inline std::uint32_t checksum(const Rope& data) {
  std::uint32_t sum = 17;
  for (const Buffer& piece : data.pieces())
    for (std::byte b : piece.bytes()) sum = sum * 31 + std::to_integer<std::uint32_t>(b);
  return sum;
}

// `length` bytes that differ from place to place and from seed to seed.
inline Rope pattern(std::uint32_t length, std::uint32_t seed) {
  Block block = Block::allocate(length == 0 ? 1 : length);
  fill_pattern({block.data(), length}, seed);
  return Rope(std::move(block).freeze(length));
}

}  // namespace stag::testing::store
