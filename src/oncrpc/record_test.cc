#include "oncrpc/record.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "oncrpc/dispatch.h"

namespace stag::oncrpc {
namespace {

void append(std::string& stream, std::string_view fragment, bool last) {
  std::array<std::byte, 4> mark{};
  store_be(mark.data(), static_cast<std::uint32_t>(fragment.size()) | (last ? kLastFragment : 0));
  stream += std::string(text_of(mark)) + std::string(fragment);
}

// All records of `stream` when it arrives in pieces of the sizes `next_size` names.
template <class NextSize>
std::vector<std::string> read_all(const std::string& stream, NextSize next_size) {
  RecordReader reader;
  std::vector<std::string> records;
  std::string_view left = stream;
  while (!left.empty()) {
    std::string_view piece = left.substr(0, next_size());
    left.remove_prefix(piece.size());
    while (!piece.empty()) {
      auto used = reader.feed(bytes_of(piece));
      if (!used.ok()) return records;
      piece.remove_prefix(*used);
      if (reader.complete()) records.emplace_back(text_of(reader.take().bytes()));
    }
  }
  EXPECT_FALSE(reader.midway());
  return records;
}

TEST(RecordReader, puts_records_together_from_fragments_of_any_size_in_pieces_of_any_size) {
  std::mt19937 random(20260501);
  for (int round = 0; round < 50; ++round) {
    std::string stream;
    std::vector<std::string> sent;
    for (int i = 0; i < 5; ++i) {
      std::string record(random() % 3000, static_cast<char>('a' + i));
      std::string_view left = record;
      while (random() % 3 != 0) {
        const std::size_t n = random() % (left.size() + 1);
        append(stream, left.substr(0, n), false);
        left.remove_prefix(n);
      }
      append(stream, left, true);
      sent.push_back(record);
    }
    EXPECT_EQ(read_all(stream, [&] { return 1 + random() % 700; }), sent);
    EXPECT_EQ(read_all(stream, [] { return 1; }), sent);
    EXPECT_EQ(read_all(stream, [&] { return stream.size(); }), sent);
  }
}

TEST(RecordReader, takes_bytes_placed_straight_into_its_buffer) {
  RecordReader reader;
  std::string stream;
  const std::string payload(200'000, 'x');
  append(stream, payload, true);
  ASSERT_EQ(*reader.feed(bytes_of(stream).first(10)), 10u);
  std::size_t at = 10;
  while (!reader.complete()) {
    const MutableBytes room = reader.room();
    ASSERT_FALSE(room.empty());
    const std::size_t n = std::min<std::size_t>(room.size(), stream.size() - at);
    std::memcpy(room.data(), stream.data() + at, n);
    reader.placed(n);
    at += n;
  }
  EXPECT_EQ(text_of(reader.take().bytes()), payload);
}

TEST(RecordReader, breaks_on_a_record_above_its_limit_before_any_of_it_came) {
  RecordReader reader({.record = 1000, .fragments = 10});
  std::string stream;
  append(stream, std::string(600, 'a'), false);
  ASSERT_TRUE(reader.feed(bytes_of(stream)).ok());
  auto mark = record_mark(401);
  auto result = reader.feed(mark);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error(), Reason::RpcRecordTooLong);
}

TEST(RecordReader, takes_a_record_of_exactly_its_limit) {
  RecordReader reader({.record = 1000, .fragments = 10});
  std::string stream;
  append(stream, std::string(1000, 'a'), true);
  ASSERT_TRUE(reader.feed(bytes_of(stream)).ok());
  EXPECT_TRUE(reader.complete());
}

TEST(RecordReader, breaks_on_endless_empty_fragments) {
  RecordReader reader({.record = 1000, .fragments = 10});
  std::string stream;
  for (int i = 0; i < 11; ++i) append(stream, "", false);
  auto result = reader.feed(bytes_of(stream));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error(), Reason::RpcRecordFragmented);
}

TEST(RecordReader, gives_memory_only_as_bytes_come) {
  RecordReader reader({.record = 1u << 30, .fragments = 10});
  auto mark = record_mark(1u << 30);
  ASSERT_TRUE(reader.feed(mark).ok());
  EXPECT_LE(reader.room().size(), 128u << 10);
}

TEST(RecordReader, yields_an_empty_record) {
  RecordReader reader;
  ASSERT_EQ(*reader.feed(record_mark(0)), 4u);
  ASSERT_TRUE(reader.complete());
  EXPECT_EQ(reader.take().size(), 0u);
  EXPECT_FALSE(reader.midway());
}

TEST(DispatchTable, finds_what_is_registered_and_says_what_is_not) {
  DispatchTable<int> table;
  table.add(100, 2, 22);
  table.add(100, 4, 44);
  table.add(200, 9, 99);
  ASSERT_NE(table.find(100, 4), nullptr);
  EXPECT_EQ(*table.find(100, 4), 44);
  EXPECT_EQ(table.find(100, 3), nullptr);
  EXPECT_EQ(table.missing(100), ReplyStatus::accepted(AcceptStat::PROG_MISMATCH, {2, 4}));
  EXPECT_EQ(table.missing(300), ReplyStatus::accepted(AcceptStat::PROG_UNAVAIL));
}

}  // namespace
}  // namespace stag::oncrpc
