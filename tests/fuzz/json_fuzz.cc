// Lines of the control socket: what is one object yields its members or nothing, whatever their
// types.
#include <string_view>

#include "base/check.h"
#include "cli/support/json.h"
#include "input.h"

using stag::cli::JsonObject;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stag::fuzz::Input input(data, size);
  const std::string_view key = stag::text_of(input.take(input.octet() % 8));
  const auto object = JsonObject::parse(stag::text_of(input.rest()));
  if (!object) return 0;
  const bool has_value =
      object->text(key) || object->number(key) || object->identifier(key) || object->is_true(key);
  STAG_CHECK(!has_value || object->has(key));
  const auto digits = object->identifier(key);
  STAG_CHECK(!digits || object->text(key));
  return 0;
}
