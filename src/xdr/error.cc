#include "xdr/error.h"

namespace stag::xdr {

std::string_view to_string(Error error) {
  switch (error) {
    case Error::None:
      return "no error";
    case Error::Truncated:
      return "the stream ends inside a value";
    case Error::TooLong:
      return "a length or count is above its bound";
    case Error::BadBoolean:
      return "a boolean is neither 0 nor 1";
    case Error::BadEnum:
      return "an enumeration does not have this value";
    case Error::BadDiscriminant:
      return "a union has no arm for this discriminant";
    case Error::TooDeep:
      return "a recursive value is nested too deeply";
    case Error::TooLarge:
      return "the value would take too much memory";
    case Error::ItemMismatch:
      return "a reduced data item does not fit the stream";
    case Error::TrailingBytes:
      return "bytes follow the value";
  }
  return "unknown error";
}

}  // namespace stag::xdr
