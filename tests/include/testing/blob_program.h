// A small RPC program for transport tests: moves opaques of any size in every way RPC-over-RDMA
// has. The data is a function of (seed, length), so both ends can check it.
#pragma once

#include <array>
#include <cstdint>

#include "rpc/binding.h"
#include "rpc/program.h"
#include "testing/pattern.h"
#include "xdr/procedure.h"

namespace stag::testing {

inline Rope pattern(std::uint32_t seed, std::uint32_t length) {
  if (length == 0) return {};
  Block block = Block::allocate(length);
  fill_pattern({block.data(), length}, seed);
  return Rope(std::move(block).freeze(length));
}

struct Blob {
  std::uint32_t seed = 0;
  Rope data;
};
struct Wanted {
  std::uint32_t seed = 0;
  std::uint32_t length = 0;
};
struct Stored {
  std::uint32_t length = 0;
  bool intact = false;
};

inline constexpr std::uint32_t kBlobProgram = 0x20000042;
inline constexpr xdr::ItemId kBlobData = 1;

inline void encode_blob(xdr::Encoder& encoder, const Blob& blob) {
  encoder.u32(blob.seed);
  encoder.opaque(kBlobData, blob.data);
  encoder.u32(0x600df00d);  // something behind the item, so that positions matter
}
inline bool decode_blob(xdr::Decoder& decoder, Blob& blob) {
  std::uint32_t end = 0;
  return decoder.u32(blob.seed) && decoder.opaque(kBlobData, blob.data) && decoder.u32(end) &&
         end == 0x600df00d;
}
inline void encode_wanted(xdr::Encoder& encoder, const Wanted& wanted) {
  encoder.u32(wanted.seed);
  encoder.u32(wanted.length);
}
inline bool decode_wanted(xdr::Decoder& decoder, Wanted& wanted) {
  return decoder.u32(wanted.seed) && decoder.u32(wanted.length);
}
inline void encode_stored(xdr::Encoder& encoder, const Stored& stored) {
  encoder.u32(stored.length);
  encoder.boolean(stored.intact);
}
inline bool decode_stored(xdr::Decoder& decoder, Stored& stored) {
  return decoder.u32(stored.length) && decoder.boolean(stored.intact);
}

// Number 1 and 2 have eligible items (Read and Write chunks), 3 and 4 have none (Long Calls and
// Long Replies), 5 has both an eligible argument and an eligible result.
template <std::uint32_t Number>
struct StoreProcedure {
  using Args = Blob;
  using Results = Stored;
  static constexpr std::uint32_t program = kBlobProgram, version = 1, number = Number;
  static constexpr std::string_view name = "STORE";
  static constexpr std::optional<std::uint32_t> max_args_size{}, max_results_size{8};
  static void encode_args(xdr::Encoder& e, const Args& a) { encode_blob(e, a); }
  static bool decode_args(xdr::Decoder& d, Args& a) { return decode_blob(d, a); }
  static void encode_results(xdr::Encoder& e, const Results& r) { encode_stored(e, r); }
  static bool decode_results(xdr::Decoder& d, Results& r) { return decode_stored(d, r); }
};
template <std::uint32_t Number>
struct FetchProcedure {
  using Args = Wanted;
  using Results = Blob;
  static constexpr std::uint32_t program = kBlobProgram, version = 1, number = Number;
  static constexpr std::string_view name = "FETCH";
  static constexpr std::optional<std::uint32_t> max_args_size{8}, max_results_size{};
  static void encode_args(xdr::Encoder& e, const Args& a) { encode_wanted(e, a); }
  static bool decode_args(xdr::Decoder& d, Args& a) { return decode_wanted(d, a); }
  static void encode_results(xdr::Encoder& e, const Results& r) { encode_blob(e, r); }
  static bool decode_results(xdr::Decoder& d, Results& r) { return decode_blob(d, r); }
};
struct EchoProcedure {
  using Args = Blob;
  using Results = Blob;
  static constexpr std::uint32_t program = kBlobProgram, version = 1, number = 5;
  static constexpr std::string_view name = "ECHO";
  static constexpr std::optional<std::uint32_t> max_args_size{}, max_results_size{};
  static void encode_args(xdr::Encoder& e, const Args& a) { encode_blob(e, a); }
  static bool decode_args(xdr::Decoder& d, Args& a) { return decode_blob(d, a); }
  static void encode_results(xdr::Encoder& e, const Results& r) { encode_blob(e, r); }
  static bool decode_results(xdr::Decoder& d, Results& r) { return decode_blob(d, r); }
};
using Store = StoreProcedure<1>;
using Fetch = FetchProcedure<2>;
using StoreWhole = StoreProcedure<3>;
using FetchWhole = FetchProcedure<4>;
using Echo = EchoProcedure;

inline constexpr std::uint32_t kBlobFrame = 12;  // seed, length word, end word

inline constexpr std::array kBlobTable{
    rpc::bind<Store>({kBlobData}, {}),
    rpc::bind<Fetch>({}, {kBlobData},
                     [](const Wanted& wanted) {
                       return rpc::ReplyBound{kBlobFrame, {{kBlobData, wanted.length}}};
                     }),
    rpc::bind<StoreWhole>(),
    rpc::bind<FetchWhole>({}, {},
                          [](const Wanted& wanted) {
                            return rpc::ReplyBound{kBlobFrame + (wanted.length + 3) / 4 * 4, {}};
                          }),
    rpc::bind<Echo>({kBlobData}, {kBlobData},
                    [](const Blob& blob) {
                      const auto length = static_cast<std::uint32_t>(blob.data.size());
                      return rpc::ReplyBound{kBlobFrame, {{kBlobData, length}}};
                    }),
};
inline constexpr rpc::Binding kBlobBinding{kBlobTable};

inline Task<Stored> store_blob(rpc::CallContext&, Blob blob) {
  const auto length = static_cast<std::uint32_t>(blob.data.size());
  co_return Stored{length, blob.data == pattern(blob.seed, length)};
}
inline Task<Blob> fetch_blob(rpc::CallContext&, Wanted wanted) {
  co_return Blob{wanted.seed, pattern(wanted.seed, wanted.length)};
}
inline Task<Blob> echo_blob(rpc::CallContext&, Blob blob) {
  co_return blob;
}

inline rpc::Program blob_program() {
  rpc::Program program(kBlobProgram, 1, kBlobBinding);
  program.add<Store>(store_blob)
      .add<Fetch>(fetch_blob)
      .add<StoreWhole>(store_blob)
      .add<FetchWhole>(fetch_blob)
      .add<Echo>(echo_blob);
  return program;
}

}  // namespace stag::testing
