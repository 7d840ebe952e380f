// Procedure: the type that xdrgen writes for a procedure of an RPC program (RFC 5531 section 12),
// with all that generic clients and servers need:
//
//   struct NFSPROC3_READ {
//     using Args = READ3args;  // xdr::Void for none; NFSPROC3_READ_args for several arguments
//     using Results = READ3res;
//     static constexpr std::uint32_t program, version, number;
//     static constexpr std::string_view name;
//     // Bytes; nullopt: no bound.
//     static constexpr std::optional<std::uint32_t> max_args_size, max_results_size;
//     static void encode_args(xdr::Encoder&, const Args&);
//     static bool decode_args(xdr::Decoder&, Args&);
//     static void encode_results(xdr::Encoder&, const Results&);
//     static bool decode_results(xdr::Decoder&, Results&);
//   };
//
// Use these four rather than encode() and decode() on Args: an argument may be a typedef of a
// standard type, which has no codec of its own.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include "xdr/decoder.h"

namespace stag::xdr {

template <class P>
concept Procedure = std::default_initializable<typename P::Args> &&
    std::default_initializable<typename P::Results> &&
    requires(Encoder& encoder, Decoder& decoder, typename P::Args& args,
             typename P::Results& results) {
  { P::program } -> std::convertible_to<std::uint32_t>;
  { P::version } -> std::convertible_to<std::uint32_t>;
  { P::number } -> std::convertible_to<std::uint32_t>;
  { P::name } -> std::convertible_to<std::string_view>;
  { P::max_args_size } -> std::convertible_to<std::optional<std::uint32_t>>;
  { P::max_results_size } -> std::convertible_to<std::optional<std::uint32_t>>;
  P::encode_args(encoder, args);
  { P::decode_args(decoder, args) } -> std::same_as<bool>;
  P::encode_results(encoder, results);
  { P::decode_results(decoder, results) } -> std::same_as<bool>;
};

// Bytes of the longest and the shortest encoding of a generated struct, union or enum; nullopt when
// nothing bounds it. xdrgen specialises both beside the type.
template <class T>
inline constexpr std::optional<std::uint32_t> max_size = std::nullopt;
template <class T>
inline constexpr std::uint32_t min_size = 0;

}  // namespace stag::xdr
