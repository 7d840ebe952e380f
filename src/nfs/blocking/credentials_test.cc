// The credentials of a caller, by what the URL says of the user.
#include <cstdlib>

#include "endpoint/kerberos.h"
#include "gss/krb5/krb5.h"
#include "rpc/gss/rpcsec_gss.h"
#include "testing/kdc.h"
#include "testing/nfs/blocking_fixture.h"

namespace stag::nfs::blocking {
namespace {

using testing::Kdc;

struct BlockingCredentials : BlockingFiles {
  // With a path of "data", and of a server whose name Kerberos knows.
  Outcome<Files> opened_as(const std::string& query) {
    auto made = endpoint::listen(server, {"127.0.0.1", 0}, {.transport = endpoint::Transport::Tcp});
    STAG_CHECK(made.ok());
    listener.emplace(*std::move(made));
    const std::string port = std::to_string(listener->address().port);
    return Files::open(*client::Url::parse("nfs://localhost:" + port + "/data?proto=tcp&" + query),
                       options);
  }
};

TEST_F(BlockingCredentials, are_AUTH_SYS_with_the_ids_that_the_URL_names) {
  Outcome<Files> files = opened_as("version=4&uid=1234&gid=77");
  ASSERT_TRUE(files) << files.error().sentence;
  const auto made = files->create("file");
  ASSERT_TRUE(made) << made.error().sentence;
  EXPECT_EQ(made->attributes.uid, 1234u);
  EXPECT_EQ(made->attributes.gid, 77u);
  EXPECT_TRUE(files->close(made->file));
}

TEST_F(BlockingCredentials, are_none_without_a_ticket_where_the_URL_asks_for_Kerberos) {
  setenv("KRB5_CONFIG", "/dev/null", 1);
  for (const char* name : {"KRB5CCNAME", "KRB5_CLIENT_KTNAME"}) setenv(name, "FILE:/dev/null", 1);
  for (const std::string flavor : {"krb5", "krb5i", "krb5p"})
    EXPECT_FALSE(opened_as("version=4&sec=" + flavor)) << "the export takes AUTH_SYS, too";
}

struct BlockingKerberos : BlockingCredentials {
  static void SetUpTestSuite() {
    if (!Kdc::available()) return;
    kdc = new Kdc;
    kdc->kadmin("addprinc -randkey nfs/localhost");
    kdc->kadmin("ktadd -k " + kdc->server_keytab() + " nfs/localhost");
    kdc->kinit(kdc->path("ccache"));
  }
  static void TearDownTestSuite() { delete std::exchange(kdc, nullptr); }
  void SetUp() override {
    if (kdc == nullptr) GTEST_SKIP() << "krb5-kdc, krb5-admin-server or krb5-user is not installed";
    rpc::GssServerOptions secure;
    secure.acceptor = *gss::krb5::acceptor({.keytab = kdc->server_keytab()});
    server.add(rpc::rpcsec_gss(secure));
  }
  void export_with(const std::string& flavor) {
    Exports exports;
    const auto secured = parse_export_options("sec=" + flavor);
    STAG_CHECK(exports.add(1, {"/data", std::make_shared<vfs::MemoryFileSystem>(), *secured}).ok());
    context.exports.replace(std::move(exports));
  }

  static inline Kdc* kdc = nullptr;
};

TEST_F(BlockingKerberos, is_what_the_URL_asks_for) {
  for (const std::string flavor : {"krb5", "krb5i", "krb5p"}) {
    export_with(flavor);
    Outcome<Files> files = opened_as("version=4&sec=" + flavor);
    ASSERT_TRUE(files) << flavor << ": " << files.error().sentence;
    EXPECT_TRUE(files->mkdir("dir"));
  }
}

TEST_F(BlockingKerberos, is_refused_when_the_URL_asks_for_another_kind) {
  export_with("krb5i");
  options.files.calls.credentials = *endpoint::kerberos("localhost", gss::Service::integrity);
  EXPECT_TRUE(opened_as("version=4&sec=krb5i"));
  for (const std::string query : {"sec=krb5", "sec=krb5p", "uid=1"}) {
    const Outcome<Files> files = opened_as(query);
    ASSERT_FALSE(files) << query;
    EXPECT_EQ(files.error().kind, client::Error::Kind::Url);
  }
}

}  // namespace
}  // namespace stag::nfs::blocking
