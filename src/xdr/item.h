// The name of a field that may become a data item of its own: a variable-length opaque or string,
// or an array or optional that its specification marks. xdrgen numbers the fields of one .x file
// from 1, in the nested namespace `item`. An upper-layer binding says which of them are
// DDP-eligible (RFC 8166 3.4.1, "Upper-Layer Binding"); xdr only records where such a field stands
// in the stream.
#pragma once

#include <cstdint>

namespace stag::xdr {

using ItemId = std::uint32_t;
// The id of fields that are never watched.
inline constexpr ItemId kNoItem = 0;

}  // namespace stag::xdr
