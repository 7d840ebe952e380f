#include "cli/support/json.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

nfs::client::Attributes attributes_with(std::uint64_t number) {
  nfs::client::Attributes attributes;
  attributes.size = attributes.used = attributes.file_id = attributes.file_system_id = number;
  return attributes;
}

bool holds(const std::string& line, std::string_view part) {
  return line.find(part) != std::string::npos;
}

TEST(Json, has_identifiers_as_strings_and_quantities_as_numbers) {
  const std::string line = to_json("f", attributes_with(5)).line();
  EXPECT_TRUE(holds(line, R"("size":5,"used":5,"fileid":"5","fsid":"5")")) << line;
}

TEST(Json, has_quantities_that_readers_would_round_as_strings_too) {
  const std::string most = to_json("f", attributes_with(std::uint64_t{1} << 53)).line();
  EXPECT_FALSE(holds(most, "size_exact")) << most;
  const std::string line = to_json("f", attributes_with(~std::uint64_t{0})).line();
  EXPECT_TRUE(holds(line, R"("size":18446744073709551615,"size_exact":"18446744073709551615")"))
      << line;
  EXPECT_TRUE(holds(line, R"("used_exact":"18446744073709551615")")) << line;
}

TEST(Json, has_all_digits_of_times) {
  nfs::client::Attributes attributes;
  attributes.modified = {1'700'000'000, 123'456'789};
  attributes.accessed = {-5, 0};
  attributes.changed = {-1, 750'000'000};
  const std::string line = to_json("f", attributes).line();
  EXPECT_TRUE(holds(line, R"("mtime_exact":"1700000000.123456789")")) << line;
  EXPECT_TRUE(holds(line, R"("atime_exact":"-5.000000000")")) << line;
  EXPECT_TRUE(holds(line, R"("ctime_exact":"-0.250000000")")) << line;
}

TEST(Json, has_names_that_are_no_UTF_8_percent_encoded_too) {
  EXPECT_EQ(Json()
                .set_bytes("name",
                           "Gr\xc3\xb6\xc3\x9f"
                           "e")
                .line(),
            R"({"name":"Gr\u00f6\u00dfe"})");
  EXPECT_EQ(Json().set_bytes("name", "a\xff %").line(),
            R"({"name":"a\ufffd %","name_bytes":"a%FF%20%25"})");
}

TEST(Json, is_ASCII_without_control_characters) {
  const std::string line = Json().set("name", "\x1b\x7f\u009b\u202e\n"sv).line();
  EXPECT_EQ(line, R"({"name":"\u001b\u007f\u009b\u202e\n"})");
}

TEST(JsonObject, reads_members_of_the_type_that_is_asked_for_and_no_other) {
  const auto object = JsonObject::parse(
      R"({"text":"t","number":7,"id":"18446744073709551615","yes":true,"null":null,"minus":-1})");
  ASSERT_TRUE(object);
  EXPECT_EQ(object->text("text"), "t");
  EXPECT_EQ(object->number("number"), 7u);
  EXPECT_EQ(object->identifier("id"), ~std::uint64_t{0});
  EXPECT_TRUE(object->is_true("yes"));
  EXPECT_TRUE(object->has("null"));
  EXPECT_FALSE(object->has("nothing"));
  for (const char* key : {"number", "yes", "null", "nothing"})
    EXPECT_FALSE(object->text(key)) << key;
  for (const char* key : {"text", "minus", "null", "nothing"})
    EXPECT_FALSE(object->number(key)) << key;
  for (const char* key : {"text", "number", "nothing"})
    EXPECT_FALSE(object->identifier(key)) << key;
  for (const char* key : {"text", "number", "nothing"}) EXPECT_FALSE(object->is_true(key)) << key;
  EXPECT_FALSE(JsonObject::parse(R"({"id":"18446744073709551616"})")->identifier("id"));
  EXPECT_FALSE(JsonObject::parse(R"({"id":"-1"})")->identifier("id"));
}

TEST(JsonObject, reads_bytes_that_are_text_or_percent_encoded) {
  for (const std::string& bytes : {"a\xff %"s, "Gr\xc3\xb6\xc3\x9f%41"s, "\x1b\0"s})
    EXPECT_EQ(JsonObject::parse(Json().set_bytes("name", bytes).line())->bytes("name"), bytes);
  EXPECT_EQ(JsonObject::parse(R"({"name_bytes":"%00"})")->bytes("name"), "\0"s);
  for (const char* bad :
       {R"({"name":"n","name_bytes":"%"})", R"({"name":"n","name_bytes":7})", "{}"})
    EXPECT_FALSE(JsonObject::parse(bad)->bytes("name")) << bad;
}

TEST(JsonObject, is_one_object_and_nothing_else) {
  for (const char* bad : {"", " ", "[]", "7", "{", "{}{}", "{\"a\":}", "{\"a\":\"\xff\"}"})
    EXPECT_FALSE(JsonObject::parse(bad)) << bad;
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":[";
  EXPECT_FALSE(JsonObject::parse(deep));
  EXPECT_TRUE(JsonObject::parse("{}"));
}

}  // namespace
}  // namespace stag::cli
