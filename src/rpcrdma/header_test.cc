#include "rpcrdma/header.h"

#include <gtest/gtest.h>

#include "rpcrdma/golden_test.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using testing::copy;
using testing::from_hex;
using testing::golden;
using testing::Message;
using testing::set_word;
using testing::word;

HeaderFault fault_of(const Message& message, const HeaderLimits& limits = {}) {
  const auto parsed = decode_header(message, limits);
  return parsed ? HeaderFault{} : parsed.error();
}

// A message of version 1 with these words behind the procedure.
Message message_of(rdma_proc proc, std::string_view lists) {
  Message message = from_hex("11223344 00000001 00000010 00000000");
  set_word(message, 3, proc);
  const Message rest = from_hex(lists);
  message.insert(message.end(), rest.begin(), rest.end());
  return message;
}

// Decodes the golden header, encodes it again, and cuts it at every length.
ParsedHeader round_trip(const std::string& name) {
  const Message message = golden(name);
  const HeaderLimits limits{.max_chunk_bytes = 0xffffffff};
  const auto parsed = decode_header(message, limits);
  EXPECT_TRUE(parsed.ok()) << name;
  if (!parsed) return {};
  const Message header(message.begin(), message.begin() + parsed->size);
  EXPECT_EQ(copy(EncodedHeader(parsed->header).bytes()), header) << name;
  for (std::size_t length = 0; length < parsed->size; ++length) {
    const Message cut(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(length));
    const HeaderFault fault = fault_of(cut, limits);
    EXPECT_EQ(fault.reason, length < 28 ? Reason::RdmaMessageTooShort : Reason::RdmaHeaderMalformed)
        << name << " cut at " << length;
    EXPECT_EQ(fault.answer, length < 28 ? HeaderErrorReply::Nothing : HeaderErrorReply::ErrChunk);
  }
  return *parsed;
}

TEST(Header, is_28_bytes_without_chunks_and_the_stream_follows_at_once) {
  PROVES("R8166-4.3-a", "R8166-4.2-a", "R8166-3.2-b", "R8166-4.7-b");
  const ParsedHeader parsed = round_trip("null_call");
  EXPECT_EQ(parsed.size, 28u);
  EXPECT_EQ(parsed.header.xid, 0x0a0b0c0du);
  EXPECT_EQ(parsed.header.credits, 32u);
  EXPECT_EQ(parsed.header.proc, RDMA_MSG);
  EXPECT_TRUE(parsed.header.read_list.empty());
  EXPECT_TRUE(parsed.header.write_list.empty());
  EXPECT_FALSE(parsed.header.reply_chunk.has_value());
  EXPECT_EQ(word(golden("null_call"), parsed.size / 4), parsed.header.xid);
}

TEST(Header, encodes_the_fields_of_read_segments_big_endian_in_their_order) {
  PROVES("R8166-4-a", "R8166-4.1.2-a", "R8166-4.1.2-b", "R8166-4.7-a");
  const ParsedHeader parsed = round_trip("read_list_of_three");
  EXPECT_EQ(parsed.size, 16u + 76 + 8);
  ASSERT_EQ(parsed.header.read_list.size(), 2u);
  const ReadChunk& first = parsed.header.read_list[0];
  EXPECT_EQ(first.position, 112u);
  ASSERT_EQ(first.segments.size(), 2u);
  EXPECT_EQ(first.segments[0], (Segment{0x01020304, 0x05060708, 0x090a0b0c0d0e0f10}));
  EXPECT_EQ(first.segments[1], (Segment{0x01020305, 3, 0}));
}

TEST(Header, keeps_handles_and_offsets_of_any_value) {
  PROVES("R8166-2.3.2-a");
  const ParsedHeader parsed = round_trip("read_list_of_three");
  ASSERT_EQ(parsed.header.read_list.size(), 2u);
  EXPECT_EQ(parsed.header.read_list[1].segments[0],
            (Segment{0xffffffff, 4096, 0xfffffffffffff000}));
}

TEST(Header, encodes_a_Write_list_as_counted_segments_without_Positions) {
  PROVES("R8166-3.4.6-a", "R8166-4.7-c", "R8166-4.7-d");
  const ParsedHeader parsed = round_trip("write_list");
  EXPECT_EQ(parsed.size, 16u + 4 + 100 + 4);
  ASSERT_EQ(parsed.header.write_list.size(), 2u);
  EXPECT_EQ(parsed.header.write_list[0].segments.size(), 3u);
  EXPECT_EQ(parsed.header.write_list[1].segments[1], (Segment{0xb2, 16, 0x200}));
}

TEST(Header, tells_an_empty_Write_chunk_by_its_count_of_zero) {
  PROVES("R8166-3.4.6-g");
  const ParsedHeader parsed = round_trip("empty_write_chunk");
  ASSERT_EQ(parsed.header.write_list.size(), 3u);
  EXPECT_FALSE(parsed.header.write_list[0].segments.empty());
  EXPECT_TRUE(parsed.header.write_list[1].segments.empty());
  EXPECT_FALSE(parsed.header.write_list[2].segments.empty());
  // Alone: presence word 1, count 0, and nothing else before the end of the list.
  Header alone = parsed.header;
  alone.write_list.clear();
  alone.write_list.push_back({});
  const Message message = copy(EncodedHeader(alone).bytes());
  EXPECT_EQ(message, message_of(RDMA_MSG, "00000000 00000001 00000000 00000000 00000000"));
  EXPECT_EQ(decode_header(message)->header, alone);
}

TEST(Header, encodes_a_Reply_chunk_without_a_terminator) {
  PROVES("R8166-4.7-f", "R8166-4.7-e");
  const ParsedHeader parsed = round_trip("reply_chunk");
  EXPECT_TRUE(parsed.header.write_list.empty());
  EXPECT_EQ(parsed.size, 16u + 8 + 40);
  ASSERT_TRUE(parsed.header.reply_chunk.has_value());
  EXPECT_EQ(total_length(parsed.header.reply_chunk->segments), 1500u);
}

TEST(Header, holds_the_lists_in_the_order_Read_Write_Reply) {
  PROVES("R8166-4.1.2-c", "R8166-3.4.5-a");
  const ParsedHeader parsed = round_trip("long_call");
  EXPECT_EQ(parsed.header.proc, RDMA_NOMSG);
  ASSERT_EQ(parsed.header.read_list.size(), 2u);
  EXPECT_EQ(parsed.header.read_list[0].position, 0u);
  EXPECT_EQ(parsed.header.read_list[0].segments[0].offset, 0x8c6357445c6b8000u);
  EXPECT_EQ(parsed.header.read_list[1].position, 180u);
  EXPECT_EQ(parsed.header.write_list[0].segments[0].handle, 0xe4u);
  EXPECT_EQ(parsed.header.reply_chunk->segments[0].handle, 0xe5u);
}

TEST(Header, decodes_with_any_of_its_lists_absent) {
  PROVES("R8166-4.2.4-a", "R8166-4.1.2-d", "R8166-3.2-a");
  const std::string reads = "00000001 00000070 0000000a 00000004 00000000 00000000";
  const std::string writes = "00000001 00000001 0000000b 00000004 00000000 00000000";
  for (int lists = 0; lists < 8; ++lists) {
    const bool has_reads = lists & 1, has_writes = lists & 2, has_reply = lists & 4;
    const Message message = message_of(
        RDMA_MSG, (has_reads ? reads : "") + "00000000" + (has_writes ? writes : "") + "00000000" +
                      (has_reply ? writes : "00000000") + "11223344 00000000");
    const auto parsed = decode_header(message);
    ASSERT_TRUE(parsed.ok()) << lists;
    EXPECT_EQ(parsed->size, message.size() - 8) << "there the stream begins, with its XID";
    EXPECT_EQ(parsed->header.read_list.size(), has_reads ? 1u : 0u);
    EXPECT_EQ(parsed->header.write_list.size(), has_writes ? 1u : 0u);
    EXPECT_EQ(parsed->header.reply_chunk.has_value(), has_reply);
  }
  for (std::size_t list = 0; list < 3; ++list) {
    Message message = message_of(RDMA_MSG, "00000000 00000000 00000000");
    set_word(message, 4 + list, 2);
    EXPECT_EQ(fault_of(message).reason, Reason::RdmaHeaderMalformed) << list;
  }
}

TEST(Header, groups_read_segments_by_Position_wherever_they_stand) {
  PROVES("R8166-4.3.1-a", "R8166-3.4.5-c");
  const auto parsed =
      decode_header(message_of(RDMA_NOMSG,
                               "00000001 00000084 000000a1 00000003 00000000 00000000"
                               "00000001 00000000 000000b1 00000050 00000000 00000000"
                               "00000001 00000084 000000a2 00000002 00000000 00000000"
                               "00000001 00000000 000000b2 00000050 00000000 00000000"
                               "00000000 00000000 00000000"));
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->header.read_list.size(), 2u);
  EXPECT_EQ(parsed->header.read_list[0], (ReadChunk{132, {{0xa1, 3, 0}, {0xa2, 2, 0}}}));
  EXPECT_EQ(parsed->header.read_list[1], (ReadChunk{0, {{0xb1, 80, 0}, {0xb2, 80, 0}}}));
  // They are sent adjacent.
  const EncodedHeader again(parsed->header);
  EXPECT_EQ(word(again.bytes(), 5), 132u);
  EXPECT_EQ(word(again.bytes(), 11), 132u);
  EXPECT_EQ(word(again.bytes(), 17), 0u);
}

TEST(Header, shorter_than_28_bytes_is_not_parsed) {
  PROVES("R8166-4.5-b");
  // Longer ones would be executed, or answered: whatever was looked at would have another reason.
  Message other_version = golden("null_call"), obsolete = other_version, unknown = other_version;
  set_word(other_version, 1, 7);
  set_word(obsolete, 3, RDMA_MSGP);
  set_word(unknown, 3, 77);
  for (const Message& message : {golden("null_call"), golden("write_list"), golden("long_call"),
                                 other_version, obsolete, unknown, Message(28, std::byte{0xff})}) {
    for (std::size_t length = 0; length < 28; ++length) {
      const auto parsed = decode_header(Bytes(message).first(length));
      ASSERT_FALSE(parsed.ok());
      EXPECT_EQ(parsed.error().reason, Reason::RdmaMessageTooShort) << length;
      EXPECT_EQ(parsed.error().answer, HeaderErrorReply::Nothing) << length;
    }
  }
}

TEST(Header, draws_ERR_VERS_in_another_version_whatever_follows) {
  PROVES("R8166-7-a");
  for (std::uint32_t version : {0u, 2u, 99u, 0xffffffffu}) {
    Message message(40, std::byte{0xee});
    set_word(message, 0, 0x55667788);
    set_word(message, 1, version);
    const HeaderFault fault = fault_of(message);
    EXPECT_EQ(fault.reason, Reason::RdmaVersionUnsupported);
    EXPECT_EQ(fault.answer, HeaderErrorReply::ErrVers);
    EXPECT_EQ(fault.xid, 0x55667788u);
    EXPECT_EQ(fault.version, version);
  }
}

TEST(Header, RDMA_DONE_is_never_answered_in_any_version_or_length) {
  for (std::size_t length : {16, 20, 28, 40}) {
    for (std::uint32_t version : {1u, 2u}) {
      Message message(length, std::byte{0xff});
      set_word(message, 1, version);
      set_word(message, 3, RDMA_DONE);
      EXPECT_EQ(fault_of(message).reason, Reason::RdmaDone);
      EXPECT_EQ(fault_of(message).answer, HeaderErrorReply::Nothing);
    }
  }
}

TEST(Header, draws_ERR_CHUNK_with_an_obsolete_or_undefined_procedure) {
  Message message = message_of(RDMA_MSGP, "00000000 00000000 00000000");
  EXPECT_EQ(fault_of(message).reason, Reason::RdmaMsgp);
  EXPECT_EQ(fault_of(message).answer, HeaderErrorReply::ErrChunk);
  for (std::uint32_t proc : {5u, 6u, 0x80000000u, 0xffffffffu}) {
    set_word(message, 3, proc);
    EXPECT_EQ(fault_of(message).reason, Reason::RdmaProcedureUnknown);
    EXPECT_EQ(fault_of(message).answer, HeaderErrorReply::ErrChunk);
  }
}

TEST(Header, refuses_a_Position_that_is_no_multiple_of_four_or_lies_in_the_RPC_header) {
  PROVES("R8166-3.4.5-d");
  for (std::uint32_t position : {1u, 6u, 4u, 36u, 0x71u, 0xffffffffu}) {
    Message message = message_of(RDMA_MSG,
                                 "00000001 00000070 000000a1 00000004 00000000 00000000"
                                 "00000000 00000000 00000000");
    ASSERT_TRUE(decode_header(message).ok());
    set_word(message, 5, position);
    EXPECT_EQ(fault_of(message).reason, Reason::InvalidReadPosition) << position;
    EXPECT_TRUE(fault_of(message).has_read_list);
  }
}

TEST(Header, refuses_a_segment_that_wraps_around_the_offset_space) {
  PROVES("R8166-8.1-a");
  Message message = message_of(RDMA_MSG,
                               "00000001 00000070 000000a1 00001000 ffffffff fffff000"
                               "00000000 00000000 00000000");
  EXPECT_TRUE(decode_header(message).ok());
  set_word(message, 7, 0x1001);
  EXPECT_EQ(fault_of(message).reason, Reason::RdmaSegmentWraps);
  set_word(message, 7, 0);
  EXPECT_TRUE(decode_header(message).ok()) << "an empty segment describes no memory";
}

TEST(Header, refuses_more_than_its_limits_and_never_believes_a_count) {
  PROVES("R8166-8.1.4-a", "R8166-8.1-a");
  const std::string entry = "00000001 00000070 000000a1 00100000 00000000 00000000";
  const std::string other = "00000001 000000f0 000000a1 00100000 00000000 00000000";
  const std::string none = "00000000 00000000 00000000";
  HeaderLimits limits{.max_chunks = 1, .max_segments = 2, .max_chunk_bytes = 2u << 20};
  EXPECT_TRUE(decode_header(message_of(RDMA_MSG, entry + entry + none), limits).ok());
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, entry + entry + entry + none), limits).reason,
            Reason::RdmaChunksTooMany);
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, entry + other + none), limits).reason,
            Reason::RdmaChunksTooMany);
  const std::string write = "00000001 00000001 000000b1 00100000 00000000 00000000";
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, "00000000" + write + write + "00000000 00000000"), limits)
                .reason,
            Reason::RdmaChunksTooMany);
  limits.max_chunk_bytes = (2u << 20) - 1;
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, entry + entry + none), limits).reason,
            Reason::RdmaChunkTooLarge);
  // Lengths that add up to more than 32 bits, and to nothing at all in 32 bits.
  std::string huge;
  for (int i = 0; i < 16; ++i) huge += "00000001 00000070 000000a1 ffffffff 00000000 00000000";
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, huge + none)).reason, Reason::RdmaChunkTooLarge);
  const std::string rest = "00000001 00000070 000000a1 fff00000 00000000 00000000";
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, entry + rest + none)).reason, Reason::RdmaChunkTooLarge);
  // A Write chunk that claims four thousand million segments.
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, "00000000 00000001 ffffffff 00000000 00000000")).reason,
            Reason::RdmaHeaderMalformed);
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, "00000000 00000000 00000001 10000000 00000000")).reason,
            Reason::RdmaHeaderMalformed);
}

TEST(Header, takes_sixteen_segments_in_every_chunk_by_default) {
  std::string reads, writes = "00000010";
  for (int i = 0; i < 16; ++i) reads += "00000001 00000000 000000a1 00001000 00000000 00000000";
  for (int i = 0; i < 16; ++i) reads += "00000001 00000070 000000a1 00001000 00000000 00000000";
  for (int i = 0; i < 16; ++i) writes += "000000b1 00001000 00000000 00000000";
  const Message message =
      message_of(RDMA_NOMSG, reads + "00000000 00000001" + writes + "00000000 00000001" + writes);
  // 1320 bytes: the largest header a server has to understand.
  EXPECT_EQ(message.size(), 1320u);
  EXPECT_TRUE(decode_header(message).ok());
}

TEST(Header, refuses_more_segments_in_all_its_lists_than_a_header_of_4096_bytes_has_room_for) {
  Header header;
  const auto chunk = [](std::size_t segments) {
    WriteChunk made;
    for (std::size_t i = 0; i < segments; ++i) made.segments.push_back({0xa1, 1, i});
    return made;
  };
  for (std::uint32_t position = 40; position < 48; position += 4)
    header.read_list.push_back({position, chunk(64).segments});
  header.write_list.push_back(chunk(64));
  header.reply_chunk = chunk(64);
  const Message all = copy(EncodedHeader(header).bytes());
  EXPECT_GT(all.size(), 4096u);
  EXPECT_TRUE(decode_header(all).ok());
  header.write_list.push_back(chunk(1));
  const HeaderFault fault = fault_of(copy(EncodedHeader(header).bytes()));
  EXPECT_EQ(fault.reason, Reason::RdmaChunksTooMany);
  EXPECT_EQ(fault.answer, HeaderErrorReply::ErrChunk);
}

TEST(Header, RDMA_MSG_has_no_Position_Zero_chunk_and_RDMA_NOMSG_has_its_stream_in_a_chunk) {
  PROVES("R8166-4.2.4-b", "R8166-4.2.4-c", "R8166-4.2.4-d", "R8166-4.5.2-c");
  const std::string zero = "00000001 00000000 000000a1 00000050 00000000 00000000";
  const std::string empty = "00000001 00000000 000000a1 00000000 00000000 00000000";
  const std::string data = "00000001 00000070 000000a1 00000050 00000000 00000000";
  const std::string chunk = "00000001 00000001 000000b1 00000050 00000000 00000000";
  EXPECT_EQ(fault_of(message_of(RDMA_MSG, zero + "00000000 00000000 00000000")).reason,
            Reason::RdmaStreamTwice);
  EXPECT_TRUE(decode_header(message_of(RDMA_NOMSG, zero + "00000000 00000000 00000000")).ok());
  EXPECT_TRUE(decode_header(message_of(RDMA_NOMSG, "00000000 00000000" + chunk)).ok());
  for (const std::string& lists :
       {std::string("00000000 00000000 00000000"), "00000000" + chunk + "00000000 00000000",
        data + "00000000 00000000 00000000", data + "00000000 00000000" + chunk,
        empty + "00000000 00000000 00000000"})
    EXPECT_EQ(fault_of(message_of(RDMA_NOMSG, lists)).reason, Reason::RdmaStreamMissing) << lists;
}

TEST(Header, size_counts_what_encoding_yields) {
  const std::uint32_t counts[] = {3, 0, 2};
  Header header;
  header.read_list = {{112, {{1, 2, 3}, {4, 5, 6}}}, {240, {{7, 8, 9}}}};
  header.write_list = {{{{1, 1, 1}, {2, 2, 2}, {3, 3, 3}}}, {}, {{{4, 4, 4}, {5, 5, 5}}}};
  header.reply_chunk = WriteChunk{{{6, 6, 6}}};
  EXPECT_EQ(EncodedHeader(header).bytes().size(), header_size(3, counts, 1));
  EXPECT_EQ(header_size(0, {}, std::nullopt), 28u);
  EXPECT_EQ(header_size(0, {}, 2), 28u + 36);
}

TEST(ErrorMessage, ERR_VERS_is_28_bytes_with_the_version_range) {
  PROVES("R8166-4.1.2-g", "R8166-4.1.2-f", "R8166-4.5-i");
  const Message message = golden("err_vers");
  ASSERT_TRUE(is_error(message));
  const auto error = decode_error(message);
  ASSERT_TRUE(error.ok());
  EXPECT_EQ(*error, (ErrorMessage{0x11223344, 7, 64, ERR_VERS, 1, 1}));
  EXPECT_EQ(copy(encode_error(*error).bytes()), message);
  for (std::size_t length = 0; length < message.size(); ++length)
    EXPECT_FALSE(decode_error(Bytes(message).first(length)).ok()) << length;
  const ErrorMessage range{0x11223344, 1, 64, ERR_VERS, 2, 3};
  const Message encoded = copy(encode_error(range).bytes());
  EXPECT_EQ(encoded, from_hex("11223344 00000001 00000040 00000004 00000001 00000002 00000003"));
  EXPECT_EQ(*decode_error(encoded), range);
}

TEST(ErrorMessage, ERR_CHUNK_is_20_bytes_and_what_follows_is_ignored) {
  PROVES("R8166-4.1.2-h", "R8166-4.1.2-e");
  Message message = golden("err_chunk");
  const auto error = decode_error(message);
  ASSERT_TRUE(error.ok());
  EXPECT_EQ(*error, (ErrorMessage{0x11223344, 1, 64, ERR_CHUNK, 0, 0}));
  EXPECT_EQ(copy(encode_error(*error).bytes()), message);
  for (std::size_t length = 0; length < message.size(); ++length)
    EXPECT_FALSE(decode_error(Bytes(message).first(length)).ok()) << length;
  message.resize(64);
  EXPECT_TRUE(decode_error(message).ok());
}

TEST(ErrorMessage, is_no_error_message_with_an_unknown_code_or_version) {
  Message message = golden("err_chunk");
  set_word(message, 4, 99);
  EXPECT_FALSE(decode_error(message).ok());
  // Another version may say something else with this number; ERR_VERS is the same in all.
  message = golden("err_chunk");
  set_word(message, 1, 2);
  EXPECT_FALSE(decode_error(message).ok());
}

TEST(ErrorMessage, ERR_VERS_is_understood_in_any_version) {
  PROVES("R8166-7-b");
  Message message = golden("err_vers");
  set_word(message, 1, 3);
  set_word(message, 5, 2);
  set_word(message, 6, 3);
  const auto error = decode_error(message);
  ASSERT_TRUE(error.ok());
  EXPECT_EQ(error->lowest, 2u);
  EXPECT_EQ(error->highest, 3u);
}

TEST(Header, survives_every_single_changed_word_of_every_golden_message) {
  PROVES("R8166-8.1-a");
  for (const char* name : {"null_call", "read_list_of_three", "write_list", "empty_write_chunk",
                           "reply_chunk", "long_call", "err_vers", "err_chunk"}) {
    const Message message = golden(name);
    for (std::size_t index = 0; index < message.size() / 4; ++index) {
      for (std::uint32_t value : {0u, 1u, 2u, 3u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
        Message changed = message;
        set_word(changed, index, value);
        const auto parsed = decode_header(changed);
        // What decodes is within its bounds and says the same again.
        if (parsed) {
          ASSERT_LE(parsed->size, changed.size());
          const auto again = decode_header(EncodedHeader(parsed->header).bytes());
          ASSERT_TRUE(again.ok());
          EXPECT_EQ(again->header, parsed->header);
        }
        (void)decode_error(changed);
      }
    }
  }
}

}  // namespace
}  // namespace stag::rpcrdma
