// xdr::Error: why bytes cannot be decoded as a value of the type, or a value cannot be encoded
// within the bounds of its type (RFC 4506).
#pragma once

#include <cstdint>
#include <string_view>

namespace stag::xdr {

enum class Error : std::uint8_t {
  None,
  Truncated,        // The stream ends inside the value.
  TooLong,          // A length or count above the bound of its type, or above 2^32 - 1 in all.
  BadBoolean,       // RFC 4506 4.4: neither 0 nor 1; also the flag of an optional (4.19).
  BadEnum,          // RFC 4506 4.3: a number that the enumeration does not name.
  BadDiscriminant,  // RFC 4506 4.15: no arm has this number and there is no default.
  TooDeep,          // A recursive type nested deeper than the decoder's limit.
  TooLarge,         // The value would take unreasonably more memory than the stream has bytes.
  ItemMismatch,     // A reduced data item is not as long as the stream says, or its source failed.
  TrailingBytes,    // Bytes follow the value.
};

// A phrase, in static memory: "a length or count is above its bound".
std::string_view to_string(Error error);

}  // namespace stag::xdr
