#include "cli/serve/exports_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cli/serve/late_hosts.h"

namespace stag::cli {
namespace {

using oncrpc::AuthFlavor;

class FakeHosts final : public HostService {
 public:
  Result<std::string, std::string> check_netgroup(const std::string& netgroup) override {
    if (netgroup == "everybody") return Failure{std::string("an entry for every host")};
    return std::string(netgroup == "trusted" ? "" : "there is no such netgroup");
  }
  Result<bool, std::string> is_mount_point(const std::string& folder) override {
    if (folder == "/silent") return Failure{std::string("it does not answer")};
    return folder == "/mounted";
  }
};

ExportsFile parsed(std::string_view text) {
  FakeHosts hosts;
  auto file = parse_exports_files({{"exports", std::string(text)}}, hosts);
  EXPECT_TRUE(file.ok()) << file.error();
  return file.ok() ? *std::move(file) : ExportsFile();
}
std::string refused(std::string_view text) {
  FakeHosts hosts;
  const auto file = parse_exports_files({{"exports", std::string(text)}}, hosts);
  EXPECT_FALSE(file.ok()) << text;
  return file.ok() ? "" : file.error();
}

TEST(ExportsFile, has_a_folder_and_clients_with_their_options) {
  const ExportsFile file =
      parsed("/srv/data 192.0.2.0/24(rw,sync,no_subtree_check) build(rw,anonuid=-2)\n");
  ASSERT_EQ(file.lines.size(), 1u);
  const ExportLine& line = file.lines[0];
  EXPECT_EQ(line.path, "/srv/data");
  EXPECT_EQ(line.folder, "/srv/data");
  ASSERT_EQ(line.clients.size(), 2u);
  EXPECT_EQ(line.clients[0].match, "build");
  EXPECT_TRUE(line.hosts.contains("build"));
  EXPECT_EQ(line.clients[0].options.anonymous_uid, 4294967294u);
  EXPECT_EQ(line.clients[1].match, "192.0.2.0/24");
  EXPECT_FALSE(line.clients[1].options.read_only);
  EXPECT_TRUE(file.remarks.empty());
}

TEST(ExportsFile, has_the_defaults_of_exports_5) {
  const ExportsFile file = parsed("/srv desk");
  const nfs::ExportOptions& options = file.lines[0].clients[0].options;
  EXPECT_TRUE(options.read_only);
  EXPECT_TRUE(options.secure);
  EXPECT_TRUE(options.root_squash);
  EXPECT_FALSE(options.all_squash);
  EXPECT_EQ(options.flavors, std::vector{AuthFlavor::AUTH_SYS});
}

TEST(ExportsFile, has_defaults_behind_a_dash_for_the_clients_that_follow) {
  const ExportsFile file = parsed("/srv desk -rw,insecure 192.0.2.9 192.0.2.10(ro)");
  const auto& clients = file.lines[0].clients;
  ASSERT_EQ(clients.size(), 3u);
  EXPECT_TRUE(clients[0].options.read_only);
  EXPECT_FALSE(clients[1].options.read_only);
  EXPECT_FALSE(clients[1].options.secure);
  EXPECT_TRUE(clients[2].options.read_only);
  EXPECT_FALSE(clients[2].options.secure);
}

TEST(ExportsFile, has_comments_quotes_escapes_and_lines_that_go_on) {
  const ExportsFile file = parsed(
      "# a comment \"with a quote\n"
      "\n"
      "\"/srv/my files\" \\\n"
      "   desk(rw) # and another\n"
      "/srv/your\\040files\tdesk\r\n"
      "/srv/#odd desk");
  ASSERT_EQ(file.lines.size(), 3u);
  EXPECT_EQ(file.lines[0].folder, "/srv/my files");
  EXPECT_FALSE(file.lines[0].clients[0].options.read_only);
  EXPECT_EQ(file.lines[1].folder, "/srv/your files");
  EXPECT_EQ(file.lines[2].folder, "/srv/#odd");
}

TEST(ExportsFile, ends_options_with_a_blank_a_comment_or_the_line) {
  for (const char* behind : {"", " ", "\t", "\r\n", "\n", "# a comment", "\\\n"})
    EXPECT_EQ(parsed("/srv desk(rw)" + std::string(behind)).lines.at(0).clients.size(), 1u)
        << behind;
}

TEST(ExportsFile, names_a_folder_on_several_lines) {
  const ExportsFile file = parsed("/srv *(ro)\n/other desk\n/srv/ desk(rw)\n");
  ASSERT_EQ(file.lines.size(), 2u);
  ASSERT_EQ(file.lines[0].clients.size(), 2u);
  EXPECT_EQ(file.lines[0].clients[0].match, "desk");
  EXPECT_FALSE(file.lines[0].clients[1].network);
}

TEST(ExportsFile, takes_netgroups_and_patterns_of_names_behind_addresses) {
  const ExportsFile file = parsed("/srv *(ro) @trusted(rw) *.example.com(rw) host?(ro) desk(ro)");
  const auto& clients = file.lines[0].clients;
  ASSERT_EQ(clients.size(), 5u);
  EXPECT_EQ(clients[0].match, "desk");
  EXPECT_FALSE(clients[0].by_name);
  for (const auto& [at, match] : {std::pair(1, "*.example.com"), {2, "host?"}, {3, "@trusted"}}) {
    EXPECT_EQ(clients[at].match, match);
    EXPECT_TRUE(clients[at].by_name);
  }
  EXPECT_EQ(clients[4].match, "*");
  EXPECT_TRUE(file.remarks.empty());
  EXPECT_NE(refused("/srv @everybody(rw)").find("an entry for every host"), std::string::npos);
}

TEST(ExportsFile, takes_hosts_without_asking_for_them_and_netgroups_that_nobody_knows_yet) {
  const ExportLine line = parsed("/srv nowhere(rw) @nobody(ro) nowhere(ro)").lines.at(0);
  ASSERT_EQ(line.clients.size(), 2u) << "an export without clients is open to all";
  EXPECT_EQ(line.hosts.size(), 1u);
  EXPECT_TRUE(line.hosts.at("nowhere").addresses.empty());
  ASSERT_EQ(line.unknown.size(), 1u);
  EXPECT_EQ(line.unknown[0].match, "@nobody");
  EXPECT_EQ(line.unknown[0].why, "there is no such netgroup");
}

TEST(ExportsFile, looks_for_a_client_by_class_and_then_in_the_order_of_the_line) {
  const auto read_only = [](std::string_view text, const char* host) {
    ExportLine line = parsed(text).lines.at(0);
    if (line.hosts.contains("desk")) line.hosts["desk"] = {{"192.0.2.8"}, ""};
    const nfs::Export made{.id = 1, .spec = {line.path, nullptr, line.options, rules_of(line)}};
    rpc::Origin origin;
    origin.peer = {.host = host, .port = 700};
    const nfs::ExportOptions* options = made.terms_for(origin).options;
    return options == nullptr || options->read_only;
  };
  EXPECT_TRUE(read_only("/d desk*(rw) 192.0.2.0/24(ro)", "192.0.2.8")) << "networks first";
  EXPECT_TRUE(read_only("/d *(rw) desk*(ro)", "192.0.2.8")) << "names before everybody";
  EXPECT_FALSE(read_only("/d 192.0.2.0/24(ro) desk(rw)", "192.0.2.8")) << "hosts before them";
  EXPECT_TRUE(read_only("/d 192.0.2.0/24(ro) 192.0.2.0/30(rw)", "192.0.2.1"));
  EXPECT_FALSE(read_only("/d 192.0.2.0/30(rw) 192.0.2.0/24(ro)", "192.0.2.1"));
  EXPECT_FALSE(read_only("/d 0.0.0.0/0(rw)\n/d 192.0.2.0/24(ro)", "192.0.2.1"));
}

TEST(ExportsFile, remarks_on_folders_for_everybody) {
  EXPECT_EQ(parsed("/srv").remarks.size(), 1u);
  const ExportsFile trap = parsed("/srv desk (rw)");
  ASSERT_EQ(trap.lines[0].clients.size(), 2u);
  EXPECT_TRUE(trap.lines[0].clients[0].options.read_only);
  EXPECT_FALSE(trap.lines[0].clients[1].options.read_only);
  ASSERT_EQ(trap.remarks.size(), 1u);
  EXPECT_NE(trap.remarks[0].find("a blank before '('"), std::string::npos);
}

TEST(ExportsFile, remarks_on_what_is_not_done) {
  for (const char* word :
       {"async", "subtree_check", "crossmnt", "nohide", "no_acl", "insecure_locks", "pnfs",
        "security_label", "nordirplus", "replicas=/a@b", "fsid=0", "fsid=root"}) {
    const ExportsFile file = parsed("\n/srv desk(" + std::string(word) + ")");
    ASSERT_EQ(file.remarks.size(), 1u) << word;
    EXPECT_TRUE(file.remarks[0].starts_with("exports:2: ")) << file.remarks[0];
    EXPECT_NE(file.remarks[0].find("is not done"), std::string::npos) << word;
  }
  EXPECT_TRUE(parsed("/srv desk(sync,wdelay,hide,acl,secure_locks,no_pnfs)").remarks.empty());
}

TEST(ExportsFile, refuses_what_would_admit_more_than_it_says) {
  EXPECT_NE(refused("/srv *.example.com/24(rw)").find("neither a host name"), std::string::npos);
  EXPECT_NE(refused("/srv desk(xprtsec=tls:mtls)").find("RPC-with-TLS"), std::string::npos);
  EXPECT_NE(refused("/srv desk(rw,colour)").find("'colour' is not known"), std::string::npos);
  EXPECT_NE(refused("srv desk").find("is no folder"), std::string::npos);
  EXPECT_NE(refused("/srv desk(rw").find("parenthesis does not end"), std::string::npos);
  for (const char* joined : {"desk(ro)(rw,no_root_squash)", "desk(rw,,)(ro)", "desk(rw)build(ro)",
                             "desk(rw)*", "desk(rw)\"\"", "desk(rw)\\x"})
    EXPECT_NE(refused("/srv " + std::string(joined)).find("a blank is missing after ')'"),
              std::string::npos)
        << joined;
  EXPECT_NE(refused("\"/srv desk").find("quote does not end"), std::string::npos);
}

TEST(ExportsFile, leaves_out_clients_that_would_be_referred_elsewhere_and_them_alone) {
  const ExportsFile file = parsed("/srv desk(rw,refer=/a@b) build(rw)\n/away *(refer=/a@b)\n");
  ASSERT_EQ(file.lines.size(), 1u);
  ASSERT_EQ(file.lines[0].clients.size(), 1u);
  EXPECT_EQ(file.lines[0].clients[0].match, "build");
  ASSERT_EQ(file.remarks.size(), 2u);
  EXPECT_NE(file.remarks[0].find("/srv is not exported to desk by this entry"), std::string::npos)
      << "another one may be for desk, too";
  // Nothing is waited for.
  EXPECT_FALSE(parsed("/away *(refer=/a@b)").unmounted);
}

TEST(ExportsFile, has_options_that_are_for_the_flavors_before_them) {
  using enum AuthFlavor;
  const auto options_of = [](std::string_view words) {
    return parsed("/srv desk(" + std::string(words) + ")").lines.at(0).clients.at(0).options;
  };
  const nfs::ExportOptions differ =
      options_of("sec=krb5p:krb5,rw,no_root_squash,sec=sys,ro,root_squash");
  EXPECT_EQ(differ.flavors, (std::vector{KRB5P, KRB5, AUTH_SYS}));
  for (const AuthFlavor kerberos : {KRB5P, KRB5}) {
    EXPECT_FALSE(differ.of(kerberos).read_only);
    EXPECT_FALSE(differ.of(kerberos).root_squash);
    EXPECT_EQ(differ.of(kerberos).flavors, differ.flavors);
  }
  EXPECT_TRUE(differ.of(AUTH_SYS).read_only);
  EXPECT_TRUE(differ.of(AUTH_SYS).root_squash);
  // One that is not taken may do what all may.
  EXPECT_TRUE(differ.of(KRB5I).read_only);
  // What stands before the first sec= is for all, and a flavor may be named again.
  const nfs::ExportOptions again = options_of("rw,all_squash,sec=sys:krb5,ro,sec=krb5,rw");
  EXPECT_TRUE(again.of(AUTH_SYS).read_only);
  EXPECT_FALSE(again.of(KRB5).read_only);
  EXPECT_TRUE(again.of(AUTH_SYS).all_squash && again.of(KRB5).all_squash);
  // A later flavor begins with what was said before it, as exportfs has it.
  EXPECT_FALSE(options_of("sec=krb5,rw,sec=sys").of(AUTH_SYS).read_only);
  EXPECT_TRUE(options_of("sec=krb5,rw,sec=sys").by_flavor.empty());
  EXPECT_EQ(options_of("sec=krb5,rw,sec=sys,ro,anonuid=7").of(KRB5).anonymous_uid, 7u);
}

// Both are looked at before the flavor: what is forbidden with one flavor is not admitted because
// of another one.
TEST(ExportsFile, wants_a_reserved_port_and_no_RDMA_of_all_flavors_if_of_one) {
  for (const char* words : {"sec=sys,secure,sec=krb5,insecure", "sec=krb5,insecure,sec=sys,secure",
                            "sec=sys,sec=krb5,insecure"}) {
    const ExportsFile file = parsed("/srv desk(" + std::string(words) + ")");
    const nfs::ExportOptions& options = file.lines.at(0).clients.at(0).options;
    EXPECT_TRUE(options.secure) << words;
    EXPECT_TRUE(options.of(AuthFlavor::KRB5).secure) << words;
    EXPECT_TRUE(options.by_flavor.empty()) << words;
    ASSERT_EQ(file.remarks.size(), 1u) << words;
    EXPECT_NE(file.remarks[0].find("secure does not differ by flavor"), std::string::npos);
  }
  const ExportsFile rdma = parsed("/srv desk(sec=sys,no_rdma,sec=krb5,rdma)");
  EXPECT_FALSE(rdma.lines.at(0).clients.at(0).options.rdma);
  EXPECT_EQ(rdma.remarks.size(), 1u);
  const ExportsFile insecure = parsed("/srv desk(insecure,sec=sys,ro,sec=krb5,rw)");
  EXPECT_FALSE(insecure.lines.at(0).clients.at(0).options.secure);
  EXPECT_EQ(insecure.remarks.size(), 0u);
}

TEST(ExportsFile, joins_flavors_and_takes_the_former_way_to_write_them) {
  using enum AuthFlavor;
  const auto flavors = [](std::string_view text) {
    return parsed(text).lines[0].clients[0].options.flavors;
  };
  EXPECT_EQ(flavors("/srv desk(sec=krb5,sec=sys,rw)"), (std::vector{KRB5, AUTH_SYS}));
  EXPECT_EQ(flavors("/srv desk(sec=krb5p:krb5i)"), (std::vector{KRB5P, KRB5I}));
  EXPECT_EQ(flavors("/srv gss/krb5i(rw)"), std::vector{KRB5I});
  EXPECT_EQ(flavors("/srv desk(xprtsec=none:tls)"), std::vector{AUTH_SYS});
}

TEST(ExportsFile, takes_every_flavor_that_is_written_the_former_way_with_its_options) {
  using enum AuthFlavor;
  const ExportsFile three = parsed("/srv gss/krb5(ro) gss/krb5i(rw) gss/krb5p(rw,all_squash)");
  ASSERT_EQ(three.lines[0].clients.size(), 1u);
  const nfs::ExportOptions& options = three.lines[0].clients[0].options;
  EXPECT_EQ(options.flavors, (std::vector{KRB5, KRB5I, KRB5P}));
  EXPECT_TRUE(options.of(KRB5).read_only);
  EXPECT_FALSE(options.of(KRB5I).read_only);
  EXPECT_FALSE(options.of(KRB5P).read_only);
  EXPECT_TRUE(options.of(KRB5P).all_squash);
  EXPECT_FALSE(options.of(KRB5I).all_squash);
  EXPECT_TRUE(options.read_only && options.all_squash) << "what every flavor may do";
  EXPECT_TRUE(three.remarks.empty());
  const auto same = parsed("/srv gss/krb5(rw) gss/krb5i(rw)").lines[0].clients[0].options;
  EXPECT_EQ(same.flavors, (std::vector{KRB5, KRB5I}));
  EXPECT_TRUE(same.by_flavor.empty());
  // Whichever stands first.
  for (const char* text : {"/srv *(ro) gss/krb5(rw,anonuid=7)", "/srv gss/krb5(rw,anonuid=7) *(ro)",
                           "/srv *(ro)\n/srv gss/krb5(rw,anonuid=7)"}) {
    const ExportsFile file = parsed(text);
    ASSERT_EQ(file.lines[0].clients.size(), 1u) << text;
    const nfs::ExportOptions& both = file.lines[0].clients[0].options;
    EXPECT_EQ(both.flavors, (std::vector{AUTH_SYS, KRB5})) << text;
    EXPECT_TRUE(both.of(AUTH_SYS).read_only) << text;
    EXPECT_FALSE(both.of(KRB5).read_only) << text;
    EXPECT_EQ(both.of(KRB5).anonymous_uid, 7u) << text;
    EXPECT_EQ(both.of(AUTH_SYS).anonymous_uid, 65534u) << text;
    EXPECT_TRUE(file.remarks.empty()) << text;
  }
  const ExportsFile port = parsed("/srv *(ro,secure) gss/krb5(rw,insecure)");
  EXPECT_TRUE(port.lines[0].clients[0].options.of(KRB5).secure);
  EXPECT_EQ(port.remarks.size(), 1u);
}

TEST(ExportsFile, says_which_clients_an_entry_does_not_change) {
  const auto remarks = [](std::string_view text) { return parsed(text).remarks; };
  for (const char* text : {"/srv 192.0.2.1(ro)\n/srv 192.0.2.1(rw)", "/srv desk(ro)\n/srv desk(rw)",
                           "/srv *(ro)\n/srv *(rw)", "/srv gss/krb5(ro)\n/srv gss/krb5(rw)",
                           "/srv *(ro,sec=sys)\n/srv gss/krb5(rw)"}) {
    const auto said = remarks(text);
    ASSERT_EQ(said.size(), 1u) << text;
    EXPECT_TRUE(said[0].starts_with("exports:2: /srv is not exported to ")) << said[0];
  }
  EXPECT_EQ(parsed("/srv *(ro,sec=sys) gss/krb5(rw)").lines[0].clients[0].options.flavors,
            std::vector{AuthFlavor::AUTH_SYS})
      << "sec= says which flavors there are";
  EXPECT_TRUE(remarks("/srv desk(ro)\n/srv desk(ro)").empty());
}

TEST(ExportsFile, takes_a_number_or_a_UUID_as_fsid) {
  EXPECT_EQ(parsed("/srv desk(fsid=7)").lines[0].file_system_id, 7u);
  EXPECT_EQ(parsed("/srv desk(fsid=01234567-89ab-cdef-0123-456789abcdef)").lines[0].file_system_id,
            0x0123456789abcdefu);
  EXPECT_FALSE(parsed("/srv desk(fsid=root)").lines[0].file_system_id);
  EXPECT_NE(refused("/srv desk(fsid=1) build(fsid=2)").find("two different fsid"),
            std::string::npos);
}

TEST(ExportsFile, is_as_one_with_those_beside_it) {
  FakeHosts hosts;
  const auto both = parse_exports_files(
      {{"exports", "/srv 192.0.2.0/24(ro)"}, {"more", "/srv 192.0.2.0/30(rw)\n/other *(rw)"}},
      hosts);
  ASSERT_TRUE(both.ok()) << both.error();
  ASSERT_EQ(both->lines.size(), 2u);
  ASSERT_EQ(both->lines[0].clients.size(), 2u);
  EXPECT_EQ(both->lines[0].clients[0].match, "192.0.2.0/24") << "the first in order counts";
  EXPECT_EQ(both->lines[1].where, "more:2: ");
  const auto wrong = parse_exports_files({{"exports", "/srv *"}, {"more", "\n/x *(frob)"}}, hosts);
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(wrong.error().starts_with("more:2: ")) << wrong.error();
}

TEST(ExportsFile, exports_a_mount_point_only_while_it_is_one) {
  EXPECT_EQ(parsed("/mounted desk(mp)").lines.size(), 1u);
  EXPECT_EQ(parsed("/srv desk(mountpoint=/mounted)").lines.size(), 1u);
  const ExportsFile without = parsed("/srv desk(mp)");
  EXPECT_TRUE(without.lines.empty());
  ASSERT_EQ(without.remarks.size(), 1u);
  EXPECT_NE(without.remarks[0].find("nothing is mounted at /srv"), std::string::npos);
  EXPECT_TRUE(without.unmounted);
  EXPECT_FALSE(parsed("/srv desk(mp)\n/other desk").unmounted);
  EXPECT_FALSE(parsed("# nothing").unmounted);
}

TEST(ExportsFile, has_an_export_in_doubt_where_nobody_knows_whether_it_is_mounted) {
  EXPECT_EQ(parsed("/mounted desk(mp)").lines[0].doubt, "");
  const ExportsFile silent = parsed("/srv build(ro) desk(mp=/silent)");
  ASSERT_EQ(silent.lines.size(), 1u);
  EXPECT_EQ(silent.lines[0].clients.size(), 2u);
  EXPECT_EQ(silent.lines[0].doubt,
            "whether anything is mounted at /silent is not known: it does not answer");
  EXPECT_EQ(silent.remarks.size(), 1u);
}

}  // namespace
}  // namespace stag::cli
