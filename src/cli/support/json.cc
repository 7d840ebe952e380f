#include "cli/support/json.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/support/escape.h"
#include "cli/support/format.h"

namespace stag::cli {

struct Json::Value {
  nlohmann::ordered_json json;
};

namespace {

double seconds(const nfs::client::Time& time) {
  return static_cast<double>(time.seconds) + static_cast<double>(time.nanoseconds) / 1e9;
}

// All digits, which a number of JSON would lose.
std::string exact_seconds(const nfs::client::Time& time) {
  constexpr std::uint32_t kBillion = 1'000'000'000;
  const bool before = time.seconds < 0 && time.nanoseconds != 0;  // of a second that is negative
  if (!before) return fmt::format("{}.{:09}", time.seconds, time.nanoseconds);
  return fmt::format("-{}.{:09}", -(time.seconds + 1), kBillion - time.nanoseconds);
}

std::string dumped(const nlohmann::ordered_json& json, int indent) {
  constexpr bool kAscii = true;
  return json.dump(indent, ' ', kAscii, nlohmann::ordered_json::error_handler_t::replace);
}

std::string bytes_key(std::string_view key) {
  return std::string(key) + "_bytes";
}

}  // namespace

Json::Json() : value_(std::make_unique<Value>()) {
  value_->json = nlohmann::ordered_json::object();
}
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array() {
  Json out;
  out.value_->json = nlohmann::ordered_json::array();
  return out;
}

Json& Json::set(std::string_view key, std::string_view value) {
  value_->json[std::string(key)] = std::string(value);
  return *this;
}
Json& Json::set_bytes(std::string_view key, std::string_view value) {
  set(key, value);
  return is_utf8(value) ? *this : set(bytes_key(key), percent_encoded(value));
}
Json& Json::set_quantity(std::string_view key, std::uint64_t value) {
  constexpr std::uint64_t kMostExact = std::uint64_t{1} << 53;
  set(key, value);
  return value <= kMostExact ? *this : set_identifier(std::string(key) + "_exact", value);
}
Json& Json::set_identifier(std::string_view key, std::uint64_t value) {
  return set(key, std::to_string(value));
}
Json& Json::set(std::string_view key, std::uint64_t value) {
  value_->json[std::string(key)] = value;
  return *this;
}
Json& Json::set(std::string_view key, double value) {
  value_->json[std::string(key)] = value;
  return *this;
}
Json& Json::set(std::string_view key, bool value) {
  value_->json[std::string(key)] = value;
  return *this;
}
Json& Json::set(std::string_view key, Json value) {
  value_->json[std::string(key)] = std::move(value.value_->json);
  return *this;
}
Json& Json::add(Json element) {
  value_->json.push_back(std::move(element.value_->json));
  return *this;
}
Json& Json::add(std::string_view element) {
  value_->json.push_back(std::string(element));
  return *this;
}

std::string Json::line() const {
  return dumped(value_->json, -1);
}
std::string Json::text() const {
  return dumped(value_->json, 2);
}

struct JsonObject::Value {
  // Null when it is missing.
  const nlohmann::json* find(std::string_view key) const {
    const auto at = json.find(std::string(key));
    return at == json.end() ? nullptr : &*at;
  }
  nlohmann::json json;
};

JsonObject::JsonObject(std::unique_ptr<Value> value) : value_(std::move(value)) {}
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;
JsonObject::~JsonObject() = default;

std::optional<JsonObject> JsonObject::parse(std::string_view text) {
  constexpr bool kThrow = false;
  auto value = std::make_unique<Value>();
  value->json = nlohmann::json::parse(text, nullptr, kThrow);
  if (!value->json.is_object()) return std::nullopt;
  return JsonObject(std::move(value));
}

std::optional<std::string> JsonObject::text(std::string_view key) const {
  const nlohmann::json* const found = value_->find(key);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::vector<std::string> JsonObject::texts(std::string_view key) const {
  const nlohmann::json* const found = value_->find(key);
  std::vector<std::string> texts;
  if (found == nullptr || !found->is_array()) return texts;
  for (const nlohmann::json& each : *found)
    if (each.is_string()) texts.push_back(each.get<std::string>());
  return texts;
}

std::optional<std::string> JsonObject::bytes(std::string_view key) const {
  const std::string encoded = bytes_key(key);
  if (!has(encoded)) return text(key);
  const auto found = text(encoded);
  return found ? percent_decoded(*found) : std::nullopt;
}

std::optional<std::uint64_t> JsonObject::number(std::string_view key) const {
  const nlohmann::json* const found = value_->find(key);
  if (found == nullptr || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

std::optional<std::uint64_t> JsonObject::identifier(std::string_view key) const {
  const auto digits = text(key);
  std::uint64_t number = 0;
  if (!digits) return std::nullopt;
  const char* const end = digits->data() + digits->size();
  const auto [rest, error] = std::from_chars(digits->data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

bool JsonObject::is_true(std::string_view key) const {
  const nlohmann::json* const found = value_->find(key);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

bool JsonObject::has(std::string_view key) const {
  return value_->find(key) != nullptr;
}

Json to_json(std::string_view name, const nfs::client::Attributes& attributes) {
  Json json;
  json.set_bytes("name", name)
      .set("type", type_name(attributes.type))
      .set("mode", std::uint64_t{attributes.mode})
      .set("links", std::uint64_t{attributes.links})
      .set("uid", std::uint64_t{attributes.uid})
      .set("gid", std::uint64_t{attributes.gid})
      .set_quantity("size", attributes.size)
      .set_quantity("used", attributes.used)
      .set_identifier("fileid", attributes.file_id)
      .set_identifier("fsid", attributes.file_system_id)
      .set("atime", seconds(attributes.accessed))
      .set("mtime", seconds(attributes.modified))
      .set("ctime", seconds(attributes.changed))
      .set("atime_exact", exact_seconds(attributes.accessed))
      .set("mtime_exact", exact_seconds(attributes.modified))
      .set("ctime_exact", exact_seconds(attributes.changed));
  return json;
}

Json to_json(const rpc::rdma::TransferStats& stats) {
  Json json;
  json.set("calls", stats.calls.load())
      .set("inline_bytes", stats.inline_bytes.load())
      .set("read_chunks", stats.read_chunks.load())
      .set("read_chunk_bytes", stats.read_chunk_bytes.load())
      .set("write_chunks", stats.write_chunks.load())
      .set("write_chunk_bytes", stats.write_chunk_bytes.load())
      .set("position_zero_chunks", stats.position_zero_chunks.load())
      .set("position_zero_bytes", stats.position_zero_bytes.load())
      .set("reply_chunks", stats.reply_chunks.load())
      .set("reply_chunk_bytes", stats.reply_chunk_bytes.load());
  return json;
}

}  // namespace stag::cli
