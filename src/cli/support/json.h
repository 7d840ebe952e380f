// Json: the output of --json and of the control socket, objects of ordered members. It is ASCII
// only, so that no name of a peer reaches a terminal or a log as it is.
//
// A member has one type for all values: identifiers are strings, because they use all 64 bits and
// many readers of JSON have 53; quantities are numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nfs/client/protocol/types.h"
#include "rpc/rdma/options.h"

namespace stag::cli {

class Json {
 public:
  // An empty object; array() an empty array.
  Json();
  static Json array();
  Json(Json&&) noexcept;
  Json& operator=(Json&&) noexcept;
  ~Json();

  // Bytes that are no UTF-8 are replaced: JSON has no others.
  Json& set(std::string_view key, std::string_view value);
  // Without it a literal would be a bool.
  Json& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  // Bytes of a peer. Where they are no UTF-8, `key`_bytes has them as URLs do.
  Json& set_bytes(std::string_view key, std::string_view value);
  // A value above 2^53, which a reader of JSON may round, is also in `key`_exact, as a string.
  Json& set_quantity(std::string_view key, std::uint64_t value);
  Json& set_identifier(std::string_view key, std::uint64_t value);
  Json& set(std::string_view key, std::uint64_t value);
  Json& set(std::string_view key, double value);
  Json& set(std::string_view key, bool value);
  Json& set(std::string_view key, Json value);
  Json& add(Json element);
  Json& add(std::string_view element);

  // One line, or indented.
  std::string line() const;
  std::string text() const;

 private:
  struct Value;
  std::unique_ptr<Value> value_;
};

// An object that another program wrote; hostile. A member that is missing, or of another type, is
// nullopt.
class JsonObject {
 public:
  // Takes time and memory in proportion to `text`, however deep that nests. nullopt: it is not one
  // object.
  static std::optional<JsonObject> parse(std::string_view text);
  JsonObject(JsonObject&&) noexcept;
  JsonObject& operator=(JsonObject&&) noexcept;
  ~JsonObject();

  std::optional<std::string> text(std::string_view key) const;
  // What Json::set_bytes() was given; `key`_bytes alone is enough.
  std::optional<std::string> bytes(std::string_view key) const;
  std::optional<std::uint64_t> number(std::string_view key) const;
  // A string of decimal digits (Json::set_identifier).
  std::optional<std::uint64_t> identifier(std::string_view key) const;
  // The elements of an array of strings; empty: there is none.
  std::vector<std::string> texts(std::string_view key) const;
  bool is_true(std::string_view key) const;
  bool has(std::string_view key) const;

 private:
  struct Value;
  explicit JsonObject(std::unique_ptr<Value> value);
  std::unique_ptr<Value> value_;
};

Json to_json(std::string_view name, const nfs::client::Attributes& attributes);
// The counters of transfers (rpc/rdma/options.h).
Json to_json(const rpc::rdma::TransferStats& stats);

}  // namespace stag::cli
