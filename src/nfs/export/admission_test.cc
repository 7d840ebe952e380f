// What every protocol stands on: which Calls reach which objects. The Calls here are those of a
// program of the test's own, whose argument is a file handle.
#include "nfs/export/admission.h"

#include <gtest/gtest.h>

#include "nfs/proto/nfs3.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/claimed_kerberos.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "vfs/memory/memory.h"

namespace stag::nfs {
namespace {

class AdmissionTest : public ::testing::Test {
 protected:
  using Carrier = v3::NFSPROC3_GETATTR;

  AdmissionTest() {
    rpc::Program program(Carrier::program, Carrier::version);
    program.add<Carrier>([this](rpc::CallContext& call, v3::GETATTR3args args) {
      return resolve(call, std::move(args));
    });
    rpc_server_.add(std::move(program));
    rpc_server_.add(std::make_unique<testing::ClaimedKerberosAuthenticator>());
    serve({{"/data", store_, options_of("rw")}});
  }

  static ExportOptions options_of(std::string_view words) { return *parse_export_options(words); }

  void serve(std::vector<ExportSpec> specs) {
    Exports exports;
    for (ExportSpec& spec : specs) {
      const std::uint32_t id = context_.handles.export_id(spec.path);
      ASSERT_TRUE(exports.add(id, std::move(spec)).ok());
    }
    context_.exports.replace(std::move(exports));
  }

  FileHandles::Sealed root_of(std::string_view path) const {
    return context_.handles.seal(context_.handles.export_id(path), store_->root());
  }

  // What the admission of a Call with this handle and these credentials says.
  Result<ExportObject, Refusal> admitted(
      Bytes handle, const rpc::Credentials& who = rpc::Credentials::sys("test", 7, 8)) {
    v3::GETATTR3args args;
    STAG_CHECK(args.object.data.assign(handle));
    rpc::Client client(channel_, {}, who);
    STAG_CHECK(loop_.run(client.call<Carrier>(args))->ok());
    return *std::exchange(admitted_, std::nullopt);
  }

  testing::ManualLoop loop_;
  std::shared_ptr<vfs::MemoryFileSystem> store_ = std::make_shared<vfs::MemoryFileSystem>();
  ServerContext context_{ServerState::ephemeral(1)};
  Admission::Security security_ = Admission::Security::Checked;
  rpc::Server rpc_server_;
  testing::LoopbackChannel channel_{loop_, rpc_server_};

 private:
  Task<v3::GETATTR3res> resolve(rpc::CallContext& call, v3::GETATTR3args args) {
    admitted_ = Admission(context_, call).resolve(args.object.data.bytes(), security_);
    co_return v3::GETATTR3res{};
  }

  std::optional<Result<ExportObject, Refusal>> admitted_;
};

TEST_F(AdmissionTest, finds_the_object_of_a_handle_and_whom_the_caller_acts_as) {
  const auto object = admitted(root_of("/data").bytes());
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(object->handle, store_->root());
  EXPECT_EQ(&object->store(), store_.get());
  EXPECT_EQ(object->credentials.uid, 7u);
  EXPECT_EQ(object->credentials.gid, 8u);
}

TEST_F(AdmissionTest, takes_handles_of_the_form_of_version_2) {
  const auto sealed = context_.handles.seal2(context_.handles.export_id("/data"), store_->root());
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(admitted(*sealed)->handle, store_->root());
}

TEST_F(AdmissionTest, knows_a_forged_handle_from_one_of_an_export_that_is_gone) {
  FileHandles::Sealed forged = root_of("/data");
  forged.data[7] ^= std::byte{1};
  EXPECT_EQ(admitted(forged.bytes()).error(), Refusal::BadHandle);
  EXPECT_EQ(admitted(root_of("/gone").bytes()).error(), Refusal::ExportGone);
}

TEST_F(AdmissionTest, keeps_out_addresses_and_ports_that_the_export_is_not_open_to) {
  ExportSpec here{"/here", store_, {}};
  here.clients = {*make_client_rule("198.51.100.0/24", {})};
  serve({here, {"/secure", store_, options_of("secure")}});
  EXPECT_EQ(admitted(root_of("/here").bytes()).error(), Refusal::NotAdmitted);
  EXPECT_TRUE(admitted(root_of("/secure").bytes()).ok());
  channel_.origin().peer = {"198.51.100.9", 40000};
  EXPECT_TRUE(admitted(root_of("/here").bytes()).ok());
  EXPECT_EQ(admitted(root_of("/secure").bytes()).error(), Refusal::NotAdmitted);
}

TEST_F(AdmissionTest, has_the_options_of_the_flavor_of_the_call) {
  ExportOptions differ = options_of("sec=none:sys,ro,all_squash");
  differ.by_flavor = {differ, options_of("sec=none:sys,rw")};
  serve({{"/differ", store_, differ}});
  const auto by_sys = admitted(root_of("/differ").bytes());
  EXPECT_FALSE(by_sys->read_only());
  EXPECT_EQ(by_sys->credentials.uid, 7u);
  const auto by_none = admitted(root_of("/differ").bytes(), {});
  EXPECT_TRUE(by_none->read_only());
  EXPECT_EQ(by_none->credentials.uid, 65534u);
}

TEST_F(AdmissionTest, wants_a_security_flavor_that_the_export_takes) {
  serve({{"/sys", store_, options_of("sec=sys")}, {"/any", store_, options_of("sec=sys:none")}});
  EXPECT_TRUE(admitted(root_of("/sys").bytes()).ok());
  EXPECT_EQ(admitted(root_of("/sys").bytes(), {}).error(), Refusal::WrongSecurity);
  EXPECT_EQ(admitted(root_of("/any").bytes(), {})->credentials.uid, 65534u);
}

// Clients mount and lock with AUTH_SYS, whatever they use for NFS.
TEST_F(AdmissionTest, has_AUTH_SYS_beside_AUTH_NONE_act_as_the_anonymous_user) {
  serve({{"/none", store_, options_of("sec=none,anonuid=5,no_root_squash")},
         {"/both", store_, options_of("sec=krb5:none,no_root_squash")}});
  EXPECT_EQ(admitted(root_of("/none").bytes()).error(), Refusal::WrongSecurity);
  security_ = Admission::Security::BesideNfs;
  EXPECT_EQ(admitted(root_of("/none").bytes())->credentials.uid, 5u);
  EXPECT_EQ(admitted(root_of("/both").bytes())->credentials.uid, 7u);
}

class Undecided final : public rpc::Authenticator {
 public:
  oncrpc::AuthFlavor flavor() const override { return oncrpc::AuthFlavor::AUTH_SYS; }
  bool authenticate_at_once(const oncrpc::CallHeader&, const rpc::IncomingCall&,
                            rpc::Authentication& to) override {
    to.caller.flavor = flavor();
    to.caller.groups_undecided = true;
    return true;
  }
};

TEST_F(AdmissionTest, puts_off_whose_groups_are_not_known_unless_they_do_not_matter) {
  rpc_server_.add(std::make_unique<Undecided>());
  serve({{"/data", store_, options_of("rw")},
         {"/all", store_, options_of("all_squash")},
         {"/kerberos", store_, options_of("sec=krb5")}});
  EXPECT_EQ(admitted(root_of("/data").bytes()).error(), Refusal::Undecided);
  EXPECT_TRUE(admitted(root_of("/all").bytes()).ok());
  EXPECT_EQ(admitted(root_of("/kerberos").bytes()).error(), Refusal::WrongSecurity);
}

TEST_F(AdmissionTest, knows_each_service_of_Kerberos_as_a_flavor) {
  using enum oncrpc::AuthFlavor;
  serve({{"/i", store_, options_of("sec=krb5i")}});
  const auto as = [&](oncrpc::AuthFlavor flavor) {
    return admitted(root_of("/i").bytes(), testing::claimed_kerberos(flavor, 7, 8));
  };
  EXPECT_EQ(as(KRB5I)->credentials.uid, 7u);
  EXPECT_EQ(as(KRB5).error(), Refusal::WrongSecurity);
  EXPECT_EQ(as(KRB5P).error(), Refusal::WrongSecurity);
  EXPECT_EQ(admitted(root_of("/i").bytes()).error(), Refusal::WrongSecurity);
}

TEST_F(AdmissionTest, squashes_who_Kerberos_has_proven_as_anybody_else) {
  using enum oncrpc::AuthFlavor;
  serve({{"/k", store_, options_of("sec=krb5,anonuid=99,anongid=98")},
         {"/root", store_, options_of("sec=krb5,no_root_squash,anonuid=99,anongid=98")}});
  const auto uid = [&](std::string_view path, std::uint32_t claimed) {
    const auto who = testing::claimed_kerberos(KRB5, claimed, claimed);
    return admitted(root_of(path).bytes(), who)->credentials.uid;
  };
  EXPECT_EQ(uid("/k", 7), 7u);
  EXPECT_EQ(uid("/k", 0), 99u);
  EXPECT_EQ(uid("/root", 0), 0u);
  // A principal whom nobody knows.
  EXPECT_EQ(uid("/root", vfs::kNoId), 99u);
}

TEST_F(AdmissionTest, keeps_two_objects_of_different_exports_apart_even_on_one_store) {
  serve({{"/a", store_, {}}, {"/b", store_, {}}, {"/ro", store_, options_of("ro")}});
  const auto a = admitted(root_of("/a").bytes());
  const auto b = admitted(root_of("/b").bytes());
  const auto read_only = admitted(root_of("/ro").bytes());
  EXPECT_EQ(refused_together(*a, *a), std::nullopt);
  EXPECT_EQ(refused_together(*a, *b), vfs::Status::CrossDevice);
  EXPECT_EQ(refused_together(*read_only, *read_only), vfs::Status::ReadOnly);
}

}  // namespace
}  // namespace stag::nfs
