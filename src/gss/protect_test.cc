// rpc_gss_integ_data and rpc_gss_priv_data (RFC 2203 sections 5.3.2.2 and 5.3.2.3).
#include "gss/protect.h"

#include <gtest/gtest.h>

#include "testing/fake_mechanism.h"
#include "testing/store_program.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace stag::gss {
namespace {

using testing::FakeAcceptor;
using testing::FakeInitiator;
using testing::FakeRealm;

struct Pair {
  Pair() {
    Step step = client->step({});
    const Step answer = server->step(step.token.bytes());
    client->step(answer.token.bytes());
  }
  std::shared_ptr<FakeRealm> realm = std::make_shared<FakeRealm>();
  std::unique_ptr<Context> client = *FakeInitiator(realm).begin();
  std::unique_ptr<Context> server = FakeAcceptor(realm).begin();
};

xdr::Stream stream(std::size_t length) {
  xdr::Encoder encoder;
  encoder.u32(4711);
  encoder.opaque(1, testing::store::pattern(length, 5));
  encoder.u32(4712);
  return std::move(encoder).finish();
}

Buffer flat(const xdr::Stream& stream) {
  return Buffer::copy_of(stream.rope().flatten().bytes());
}

TEST(GssProtect, gives_back_what_was_protected) {
  Pair pair;
  for (const Service service : {Service::integrity, Service::privacy})
    for (const std::size_t length : {0u, 1u, 4u, 4093u, 100'000u}) {
      const xdr::Stream plain = stream(length);
      const auto made = protect(*pair.client, service, 77, plain);
      ASSERT_TRUE(made.ok());
      EXPECT_LE(made->size(), plain.size() + overhead_of(service, {12, 8}));
      const auto back = unprotect(*pair.server, service, 77, flat(*made));
      ASSERT_TRUE(back.ok());
      EXPECT_TRUE(std::ranges::equal(back->bytes(), plain.rope().flatten().bytes()));
    }
}

TEST(GssProtect, sends_the_number_the_arguments_and_their_checksum_with_integrity) {
  Pair pair;
  const Buffer wire = flat(*protect(*pair.client, Service::integrity, 0x01020304, stream(1)));
  xdr::Decoder from(wire);
  Bytes body, checksum;
  ASSERT_TRUE(from.inline_opaque(body, 1000) && from.inline_opaque(checksum, 1000));
  EXPECT_TRUE(from.finish().ok());
  EXPECT_EQ(load_be<std::uint32_t>(body.data()), 0x01020304u);
  EXPECT_EQ(load_be<std::uint32_t>(body.data() + 4), 4711u);
  EXPECT_EQ(pair.server->verify_mic(Pieces(&body, 1), checksum), Major::COMPLETE);
}

TEST(GssProtect, refers_to_long_data_instead_of_copying_it_with_integrity) {
  Pair pair;
  const Rope data = testing::store::pattern(100'000, 5);
  xdr::Encoder encoder;
  encoder.opaque(1, data);
  const auto made = protect(*pair.client, Service::integrity, 1, std::move(encoder).finish());
  bool found = false;
  const Rope rope = made->rope();
  for (const Buffer& piece : rope.pieces())
    found = found || piece.data() == data.pieces().front().data();
  EXPECT_TRUE(found);
}

// RFC 2203 5.3.3.1: "the server will reject the message [...] if the sequence number embedded in
// the request body is different from the sequence number in the credential."
TEST(GssProtect, refuses_another_sequence_number_than_that_of_the_credential) {
  Pair pair;
  for (const Service service : {Service::integrity, Service::privacy}) {
    const Buffer wire = flat(*protect(*pair.client, service, 77, stream(8)));
    EXPECT_FALSE(unprotect(*pair.server, service, 78, wire).ok());
  }
}

TEST(GssProtect, refuses_every_message_with_a_bit_changed_or_cut_short) {
  Pair pair;
  for (const Service service : {Service::integrity, Service::privacy}) {
    const Buffer wire = flat(*protect(*pair.client, service, 77, stream(8)));
    for (std::size_t i = 0; i < wire.size(); ++i) {
      std::vector<std::byte> changed(wire.bytes().begin(), wire.bytes().end());
      changed[i] ^= std::byte{0x10};
      const auto result = unprotect(*pair.server, service, 77, Buffer::copy_of(changed));
      EXPECT_FALSE(result.ok()) << i;
      EXPECT_FALSE(unprotect(*pair.server, service, 77, wire.slice(0, i)).ok()) << i;
    }
  }
}

TEST(GssProtect, refuses_what_was_protected_for_another_context) {
  Pair pair;
  const auto mine = *FakeInitiator(pair.realm).begin();
  for (const Service service : {Service::integrity, Service::privacy}) {
    const Buffer wire = flat(*protect(*mine, service, 77, stream(8)));
    EXPECT_FALSE(unprotect(*pair.server, service, 77, wire).ok());
  }
}

}  // namespace
}  // namespace stag::gss
