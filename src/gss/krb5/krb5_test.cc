// The mechanism with a real KDC (testing/kdc.h): proofs, protection, and why there is no ticket.
#include "gss/krb5/krb5.h"

#include <gtest/gtest.h>

#include "gss/protect.h"
#include "testing/kdc.h"
#include "testing/pattern.h"
#include "xdr/encoder.h"

// MIT 1.20 leaks a name when a keytab has no key for it: once a start of a server that fails.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:krb5_build_principal_alloc_va\n";
}

namespace stag::gss::krb5 {
namespace {

using testing::Kdc;

class Krb5 : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (Kdc::available()) kdc = new Kdc;
  }
  static void TearDownTestSuite() { delete std::exchange(kdc, nullptr); }
  void SetUp() override {
    if (kdc == nullptr) GTEST_SKIP() << "krb5-kdc, krb5-admin-server or krb5-user is not installed";
  }

  static std::unique_ptr<Acceptor> server() {
    auto made = acceptor({.keytab = kdc->server_keytab()});
    EXPECT_TRUE(made.ok()) << made.error().detail;
    return *std::move(made);
  }
  static InitiatorOptions by_keytab() {
    InitiatorOptions options;
    options.host = Kdc::kHost;
    options.client_keytab = kdc->client_keytab();
    return options;
  }
  // Why no first token can be made.
  static Error failure_of(const InitiatorOptions& options) {
    auto made = initiator(options);
    if (!made) return made.error();
    auto context = (*made)->begin();
    if (!context) return context.error();
    return (*context)->step({}).error;
  }

  struct Ends {
    std::unique_ptr<Context> client, server;
  };
  static Ends establish(const InitiatorOptions& options = by_keytab()) {
    Ends ends;
    auto made = *initiator(options);
    auto context = made->begin();
    EXPECT_TRUE(context.ok()) << context.error().detail;
    ends.client = *std::move(context);
    ends.server = server()->begin();
    const Step first = ends.client->step({});
    EXPECT_EQ(first.major, Major::CONTINUE_NEEDED) << first.error.detail;
    const Step answer = ends.server->step(first.token.bytes());
    EXPECT_EQ(answer.major, Major::COMPLETE) << answer.error.detail;
    const Step last = ends.client->step(answer.token.bytes());
    EXPECT_EQ(last.major, Major::COMPLETE) << last.error.detail;
    EXPECT_TRUE(last.token.empty());
    return ends;
  }

  static inline Kdc* kdc = nullptr;
};

xdr::Stream stream(std::uint32_t length) {
  Block block = Block::allocate(length + 1);
  testing::fill_pattern({block.data(), length}, 3);
  xdr::Encoder encoder;
  encoder.u32(4711);
  encoder.opaque(1, Rope(std::move(block).freeze(length)));
  return std::move(encoder).finish();
}

TEST_F(Krb5, proves_the_client_to_the_server_with_one_exchange) {
  const Ends ends = establish();
  EXPECT_EQ(ends.server->peer(), "alice@EXAMPLE.ORG");
  EXPECT_EQ(ends.client->peer(), "nfs@server.example.org");
  EXPECT_GT(ends.server->lifetime(), 0u);
  EXPECT_GT(ends.client->lifetime(), 0u);
}

TEST_F(Krb5, signs_messages_in_pieces_as_one) {
  const Ends ends = establish();
  const std::string text = "a message in three pieces";
  const std::array pieces{bytes_of(text).first(2), bytes_of(text).subspan(2, 11),
                          bytes_of(text).subspan(13)};
  const Bytes whole = bytes_of(text);
  Mic mic;
  ASSERT_EQ(ends.client->get_mic(pieces, mic), Major::COMPLETE);
  EXPECT_GT(mic.size(), 16u);
  EXPECT_EQ(ends.server->verify_mic(Pieces(&whole, 1), mic.bytes()), Major::COMPLETE);
  EXPECT_EQ(ends.server->verify_mic(Pieces(pieces), mic.bytes()), Major::COMPLETE);
  const Bytes cut = whole.first(24);
  EXPECT_EQ(ends.server->verify_mic(Pieces(&cut, 1), mic.bytes()), Major::BAD_MIC);
  EXPECT_NE(ends.server->verify_mic(Pieces(&whole, 1), mic.bytes().first(mic.size() - 1)),
            Major::COMPLETE);
  EXPECT_NE(ends.server->verify_mic(Pieces(&whole, 1), {}), Major::COMPLETE);
}

TEST_F(Krb5, protects_arguments_and_results_of_any_length_both_ways) {
  const Ends ends = establish();
  const Sizes sizes = server()->sizes();
  for (const Service service : {Service::integrity, Service::privacy})
    for (const std::uint32_t length : {0u, 1u, 15u, 16u, 17u, 4096u, 1'000'003u})
      for (const bool back : {false, true}) {
        const xdr::Stream plain = stream(length);
        Context& from = back ? *ends.server : *ends.client;
        Context& to = back ? *ends.client : *ends.server;
        const auto made = protect(from, service, 9, plain);
        ASSERT_TRUE(made.ok());
        EXPECT_LE(made->size(), plain.size() + overhead_of(service, sizes));
        const Buffer wire = Buffer::copy_of(made->rope().flatten().bytes());
        const auto opened = unprotect(to, service, 9, wire);
        ASSERT_TRUE(opened.ok()) << length;
        EXPECT_TRUE(std::ranges::equal(opened->bytes(), plain.rope().flatten().bytes()));
        EXPECT_FALSE(unprotect(to, service, 8, wire).ok());
      }
}

TEST_F(Krb5, refuses_sealed_bytes_that_were_changed) {
  const Ends ends = establish();
  for (const Service service : {Service::integrity, Service::privacy}) {
    const auto made = protect(*ends.client, service, 9, stream(32));
    const Buffer wire = Buffer::copy_of(made->rope().flatten().bytes());
    for (std::size_t i = 0; i < wire.size(); ++i) {
      std::vector<std::byte> changed(wire.bytes().begin(), wire.bytes().end());
      changed[i] ^= std::byte{1};
      EXPECT_FALSE(unprotect(*ends.server, service, 9, Buffer::copy_of(changed)).ok()) << i;
    }
  }
}

TEST_F(Krb5, decrypts_in_place_what_nobody_else_holds) {
  const Ends ends = establish();
  const Bytes text = bytes_of("in place");
  Result<Buffer, Major> sealed = ends.client->wrap(Pieces(&text, 1));
  const std::byte* const at = sealed->data();
  const std::size_t size = sealed->size();
  const auto plain = ends.server->unwrap(*std::move(sealed));
  ASSERT_TRUE(plain.ok());
  EXPECT_TRUE(plain->data() >= at && plain->data() < at + size);
  EXPECT_EQ(text_of(plain->bytes()), "in place");
}

TEST_F(Krb5, takes_the_ticket_of_a_credential_cache) {
  const std::string ccache = "FILE:" + kdc->path("alice.cc");
  kdc->kinit(ccache);
  InitiatorOptions options;
  options.host = Kdc::kHost;
  options.ccache = ccache;
  EXPECT_EQ(establish(options).server->peer(), "alice@EXAMPLE.ORG");
}

TEST_F(Krb5, says_that_there_is_no_ticket) {
  InitiatorOptions options;
  options.host = Kdc::kHost;
  EXPECT_EQ(failure_of(options).reason, Reason::GssNoTicket) << failure_of(options).detail;
  options.ccache = "FILE:" + kdc->path("nothing.cc");
  EXPECT_EQ(failure_of(options).reason, Reason::GssNoTicket) << failure_of(options).detail;
  options.client_keytab = kdc->path("nothing.keytab");
  EXPECT_EQ(failure_of(options).reason, Reason::GssNoKeytab) << failure_of(options).detail;
}

TEST_F(Krb5, says_that_the_KDC_knows_no_such_server) {
  InitiatorOptions options = by_keytab();
  options.host = "other.example.org";
  EXPECT_EQ(failure_of(options).reason, Reason::GssServerUnknown) << failure_of(options).detail;
}

TEST_F(Krb5, says_that_the_realm_is_unknown) {
  InitiatorOptions options = by_keytab();
  options.host = "server.elsewhere.org";
  const Error error = failure_of(options);
  EXPECT_TRUE(error.reason == Reason::GssWrongRealm || error.reason == Reason::GssServerUnknown)
      << info(error.reason).name << " " << error.detail;
}

TEST_F(Krb5, says_that_there_is_no_keytab) {
  const auto nothing = acceptor({.keytab = kdc->path("nothing.keytab")});
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().reason, Reason::GssNoKeytab);
  const auto other = acceptor({.keytab = kdc->client_keytab()});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().reason, Reason::GssNoKeytab) << other.error().detail;
}

TEST_F(Krb5, says_that_the_servers_key_is_another_one) {
  kdc->kadmin("addprinc -randkey nfs/moved.example.org");
  kdc->kadmin("ktadd -k " + kdc->path("moved.keytab") + " nfs/moved.example.org");
  kdc->kadmin("cpw -randkey nfs/moved.example.org");
  InitiatorOptions options = by_keytab();
  options.host = "moved.example.org";
  const auto from = *initiator(options);
  auto context = *from->begin();
  const Step first = context->step({});
  const auto at = *acceptor({.keytab = kdc->path("moved.keytab")});
  const Step answer = at->begin()->step(first.token.bytes());
  EXPECT_TRUE(answer.token.empty());
  EXPECT_EQ(from->explain(answer.major, answer.minor).reason, Reason::GssServerKeyWrong)
      << answer.error.detail;
}

TEST_F(Krb5, says_that_a_token_came_before) {
  setenv("KRB5RCACHENAME", ("dfl:" + kdc->path("rcache")).c_str(), 1);
  setenv("KRB5RCACHEDIR", kdc->path("").c_str(), 1);
  const auto from = *initiator(by_keytab());
  auto context = *from->begin();
  const Step first = context->step({});
  const auto at = server();
  EXPECT_EQ(at->begin()->step(first.token.bytes()).major, Major::COMPLETE);
  const Step again = at->begin()->step(first.token.bytes());
  setenv("KRB5RCACHENAME", "none:", 1);
  EXPECT_NE(again.major, Major::COMPLETE);
  EXPECT_EQ(again.error.reason, Reason::GssTokenRefused) << again.error.detail;
  EXPECT_TRUE(from->explain(again.major, again.minor).repeated);
}

TEST_F(Krb5, refuses_tokens_that_are_none) {
  for (const std::string& token :
       {std::string(), std::string("nonsense"), std::string(60'000, 'x')}) {
    const Step step = server()->begin()->step(bytes_of(token));
    EXPECT_NE(step.major, Major::COMPLETE);
    EXPECT_NE(step.major, Major::CONTINUE_NEEDED);
    EXPECT_TRUE(step.token.empty());
    EXPECT_FALSE(step.error.detail.empty());
  }
}

}  // namespace
}  // namespace stag::gss::krb5
