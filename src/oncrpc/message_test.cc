#include "oncrpc/message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "oncrpc/auth_sys.h"

namespace stag::oncrpc {
namespace {

std::vector<std::byte> words(std::initializer_list<std::uint32_t> values) {
  std::vector<std::byte> bytes(values.size() * 4);
  std::size_t at = 0;
  for (std::uint32_t value : values) store_be(bytes.data() + 4 * at++, value);
  return bytes;
}

std::vector<std::byte> bytes_of_stream(const xdr::Stream& stream) {
  EXPECT_TRUE(stream.ok());
  const Buffer flat = stream.rope().flatten();
  return {flat.bytes().begin(), flat.bytes().end()};
}

Result<CallHeader, CallFault> parse_call(const std::vector<std::byte>& bytes) {
  xdr::Decoder decoder(Buffer::borrow(bytes));
  return decode_call(decoder);
}

Result<ReplyHeader, Reason> parse_reply(const std::vector<std::byte>& bytes) {
  xdr::Decoder decoder(Buffer::borrow(bytes));
  return decode_reply(decoder);
}

// xid, CALL, rpcvers 2, NFS v3 GETATTR, credential of flavor 1 with 5 bytes, AUTH_NONE verifier.
const std::vector<std::byte> kCall =
    words({0x11223344, 0, 2, 100003, 3, 1, 1, 5, 0x61626364, 0x65000000, 0, 0});

TEST(CallHeader, is_encoded_as_RFC_5531_section_9_writes_it) {
  CallHeader header{.xid = 0x11223344, .program = 100003, .version = 3, .procedure = 1};
  header.credential = {AuthFlavor::AUTH_SYS, bytes_of("abcde")};
  xdr::Encoder encoder;
  encode(encoder, header);
  EXPECT_EQ(bytes_of_stream(std::move(encoder).finish()), kCall);
}

TEST(CallHeader, is_decoded_and_leaves_the_decoder_at_the_arguments) {
  std::vector<std::byte> message = kCall;
  for (std::byte more : words({42})) message.push_back(more);
  xdr::Decoder decoder(Buffer::borrow(message));
  auto header = decode_call(decoder);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->xid, 0x11223344u);
  EXPECT_EQ(header->program, 100003u);
  EXPECT_EQ(header->version, 3u);
  EXPECT_EQ(header->procedure, 1u);
  EXPECT_EQ(header->credential.flavor, AuthFlavor::AUTH_SYS);
  EXPECT_EQ(text_of(header->credential.body), "abcde");
  EXPECT_EQ(header->verifier.flavor, AuthFlavor::AUTH_NONE);
  EXPECT_EQ(decoder.position(), kCall.size());
}

TEST(CallHeader, cut_at_any_length_is_truncated) {
  for (std::size_t length = 0; length < kCall.size(); ++length) {
    const std::vector<std::byte> cut(kCall.begin(), kCall.begin() + static_cast<long>(length));
    auto header = parse_call(cut);
    ASSERT_FALSE(header.ok()) << length;
    EXPECT_EQ(header.error().reason, Reason::RpcMessageTruncated) << length;
    EXPECT_FALSE(header.error().wrong_rpc_version) << length;
  }
}

TEST(CallHeader, keeps_the_XID_of_another_rpc_version_even_when_nothing_follows) {
  auto header = parse_call(words({7, 0, 3}));
  ASSERT_FALSE(header.ok());
  EXPECT_TRUE(header.error().wrong_rpc_version);
  EXPECT_EQ(header.error().xid, 7u);
  EXPECT_EQ(header.error().reason, Reason::RpcVersionUnsupported);
}

TEST(CallHeader, refuses_a_credential_above_400_bytes) {
  std::vector<std::byte> message = words({1, 0, 2, 9, 9, 9, 1, 404});
  message.resize(message.size() + 404 + 8);
  auto header = parse_call(message);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().reason, Reason::RpcAuthTooLong);
}

TEST(CallHeader, takes_a_credential_of_exactly_400_bytes) {
  std::vector<std::byte> message = words({1, 0, 2, 9, 9, 9, 1, 400});
  message.resize(message.size() + 400 + 8);
  auto header = parse_call(message);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->credential.body.size(), 400u);
}

TEST(CallHeader, is_not_made_of_a_reply) {
  auto header = parse_call(words({1, 1, 2, 9, 9, 9, 0, 0, 0, 0}));
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().reason, Reason::RpcMessageTypeUnknown);
}

struct ReplyCase {
  const char* name;
  ReplyStatus status;
  std::vector<std::byte> wire;
};

std::vector<ReplyCase> reply_cases() {
  std::vector<ReplyCase> cases;
  const auto accepted = [&](const char* name, AcceptStat stat) {
    cases.push_back({name, ReplyStatus::accepted(stat),
                     words({5, 1, 0, 0, 0, static_cast<std::uint32_t>(stat)})});
  };
  accepted("SUCCESS", AcceptStat::SUCCESS);
  accepted("PROG_UNAVAIL", AcceptStat::PROG_UNAVAIL);
  accepted("PROC_UNAVAIL", AcceptStat::PROC_UNAVAIL);
  accepted("GARBAGE_ARGS", AcceptStat::GARBAGE_ARGS);
  accepted("SYSTEM_ERR", AcceptStat::SYSTEM_ERR);
  cases.push_back({"PROG_MISMATCH", ReplyStatus::accepted(AcceptStat::PROG_MISMATCH, {2, 4}),
                   words({5, 1, 0, 0, 0, 2, 2, 4})});
  cases.push_back({"RPC_MISMATCH", ReplyStatus::rpc_mismatch(), words({5, 1, 1, 0, 2, 2})});
  for (std::uint32_t stat = 1; stat <= 14; ++stat)
    cases.push_back({"AUTH_ERROR", ReplyStatus::auth_error(static_cast<AuthStat>(stat)),
                     words({5, 1, 1, 1, stat})});
  return cases;
}

TEST(ReplyHeader, is_encoded_as_RFC_5531_writes_it_for_every_status) {
  for (const ReplyCase& reply : reply_cases()) {
    ReplyHeader header;
    header.xid = 5;
    header.status = reply.status;
    xdr::Encoder encoder;
    encode(encoder, header);
    EXPECT_EQ(bytes_of_stream(std::move(encoder).finish()), reply.wire) << reply.name;
  }
}

TEST(ReplyHeader, is_decoded_for_every_status) {
  for (const ReplyCase& reply : reply_cases()) {
    auto header = parse_reply(reply.wire);
    ASSERT_TRUE(header.ok()) << reply.name;
    EXPECT_EQ(header->xid, 5u);
    EXPECT_EQ(header->status, reply.status) << reply.name;
    EXPECT_EQ(header->status.success(), reply.status == ReplyStatus()) << reply.name;
  }
}

TEST(ReplyHeader, cut_at_any_length_is_truncated) {
  for (const ReplyCase& reply : reply_cases()) {
    for (std::size_t length = 0; length < reply.wire.size(); ++length) {
      auto header =
          parse_reply({reply.wire.begin(), reply.wire.begin() + static_cast<long>(length)});
      ASSERT_FALSE(header.ok()) << reply.name << " " << length;
      EXPECT_EQ(header.error(), Reason::RpcMessageTruncated) << reply.name << " " << length;
    }
  }
}

TEST(ReplyHeader, refuses_an_unknown_status) {
  for (const auto& wire :
       {words({5, 1, 2}), words({5, 1, 0, 0, 0, 6}), words({5, 1, 1, 2, 0, 0})}) {
    auto header = parse_reply(wire);
    ASSERT_FALSE(header.ok());
    EXPECT_EQ(header.error(), Reason::RpcReplyStatusUnknown);
  }
}

TEST(ReplyHeader, keeps_a_refusal_whose_auth_stat_is_new) {
  auto header = parse_reply(words({5, 1, 1, 1, 99}));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(static_cast<std::uint32_t>(header->status.auth), 99u);
  EXPECT_FALSE(header->status.success());
}

TEST(Peek, tells_calls_from_replies_and_from_noise) {
  EXPECT_EQ(peek(words({8, 0}))->type, MessageType::CALL);
  EXPECT_EQ(peek(words({8, 1}))->type, MessageType::REPLY);
  EXPECT_EQ(peek(words({8, 1}))->xid, 8u);
  EXPECT_EQ(peek(words({8, 2})).error(), Reason::RpcMessageTypeUnknown);
  EXPECT_EQ(peek(words({8})).error(), Reason::RpcMessageTruncated);
}

TEST(AuthSys, survives_the_wire) {
  AuthSys auth{.stamp = 9, .machine = "client", .uid = 1000, .gid = 100};
  for (std::uint32_t gid = 1; gid <= 16; ++gid) auth.gids.push_back(gid);
  xdr::Encoder encoder;
  encode(encoder, auth);
  const auto wire = bytes_of_stream(std::move(encoder).finish());
  auto back = decode_auth_sys(wire);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->stamp, 9u);
  EXPECT_EQ(back->machine, "client");
  EXPECT_EQ(back->uid, 1000u);
  EXPECT_EQ(back->gid, 100u);
  EXPECT_EQ(back->gids, auth.gids);
  for (std::size_t length = 0; length < wire.size(); ++length) {
    const std::vector<std::byte> cut(wire.begin(),
                                     wire.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(decode_auth_sys(cut).has_value()) << length;
  }
}

TEST(AuthSys, has_at_most_16_groups_and_255_bytes_of_name_and_nothing_behind) {
  std::vector<std::byte> groups = words({0, 0, 1, 1, 17});
  groups.resize(groups.size() + 17 * 4);
  EXPECT_FALSE(decode_auth_sys(groups).has_value());
  std::vector<std::byte> name = words({0, 256});
  name.resize(name.size() + 256 + 12);
  EXPECT_FALSE(decode_auth_sys(name).has_value());
  EXPECT_FALSE(decode_auth_sys(words({0, 0, 1, 1, 0, 0})).has_value());
  EXPECT_TRUE(decode_auth_sys(words({0, 0, 1, 1, 0})).has_value());
}

}  // namespace
}  // namespace stag::oncrpc
