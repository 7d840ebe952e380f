#include "nfs/export/exports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "vfs/memory/memory.h"

namespace stag::nfs {
namespace {

rpc::Caller sys(std::uint32_t uid, std::uint32_t gid,
                std::initializer_list<std::uint32_t> gids = {}) {
  rpc::Caller caller;
  caller.flavor = oncrpc::AuthFlavor::AUTH_SYS;
  caller.uid = uid;
  caller.gid = gid;
  for (const std::uint32_t each : gids) caller.gids.push_back(each);
  return caller;
}

Export with(std::string_view options) {
  const auto parsed = parse_export_options(options);
  EXPECT_TRUE(parsed.ok()) << options;
  return Export{1, {"/x", nullptr, *parsed}};
}

// The credentials that the caller acts with on an export with these options.
vfs::Credentials acting(std::string_view options, const rpc::Caller& caller) {
  return acting_as(with(options).spec.options, caller);
}

rpc::Origin from(std::string host, std::uint16_t port = 1023) {
  rpc::Origin origin;
  origin.peer = {std::move(host), port};
  return origin;
}

TEST(ExportOptions, are_the_words_of_exports) {
  const auto parsed =
      parse_export_options("ro,no_root_squash,all_squash,anonuid=99,anongid=98,secure");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, (ExportOptions{true, false, true, 99, 98, true}));
  EXPECT_EQ(*parse_export_options(""), ExportOptions{});
  EXPECT_EQ(*parse_export_options("ro,rw,secure,insecure,all_squash,no_all_squash"),
            ExportOptions{});
}

TEST(ExportOptions, name_the_security_flavors_in_the_order_of_preference) {
  using enum oncrpc::AuthFlavor;
  EXPECT_EQ(ExportOptions{}.flavors, (std::vector{AUTH_SYS, AUTH_NONE}));
  EXPECT_EQ(parse_export_options("sec=none:sys")->flavors, (std::vector{AUTH_NONE, AUTH_SYS}));
  EXPECT_EQ(parse_export_options("sec=none,sec=sys")->flavors, (std::vector{AUTH_SYS}));
  EXPECT_EQ(parse_export_options("sec=krb5p:krb5i:krb5:sys:krb5i")->flavors,
            (std::vector{KRB5P, KRB5I, KRB5, AUTH_SYS}));
  EXPECT_EQ(flavor_name(KRB5I), "krb5i");
  EXPECT_EQ(flavor_name(RPCSEC_GSS), "");
}

TEST(ExportOptions, are_refused_when_unknown) {
  for (const char* text :
       {"readonly", "anonuid=", "anonuid=-1", "anonuid=4294967296", "anonuid=4294967295", "ro,,rw",
        "anongid=1x", "RO", "sec=", "sec=krb9"}) {
    const auto parsed = parse_export_options(text);
    EXPECT_FALSE(parsed.ok()) << text;
  }
  EXPECT_NE(parse_export_options("ro,bogus").error().message.find("'bogus'"), std::string::npos);
}

TEST(ExportSquash, turns_root_and_its_groups_into_nobody_by_default) {
  const vfs::Credentials who = acting("", sys(0, 0, {0, 5}));
  EXPECT_EQ(who.uid, 65534u);
  EXPECT_EQ(who.gid, 65534u);
  EXPECT_EQ(who.groups, (decltype(who.groups){65534, 5}));
  const vfs::Credentials user = acting("", sys(1000, 0, {10}));
  EXPECT_EQ(user.uid, 1000u);
  EXPECT_EQ(user.gid, 65534u);
}

TEST(ExportSquash, takes_the_groups_of_the_name_service_in_place_of_those_that_are_claimed) {
  rpc::Caller caller = sys(1000, 100, {5, 6});
  std::vector<std::uint32_t> many(20);
  std::iota(many.begin(), many.end(), 40);
  caller.groups = std::make_shared<const std::vector<std::uint32_t>>(many);
  const vfs::Credentials who = acting("", caller);
  EXPECT_EQ(who.gid, 100u);
  EXPECT_TRUE(std::ranges::equal(who.groups, many));
  EXPECT_EQ(who.groups.data(), caller.groups->data()) << "the list is shared";
  EXPECT_TRUE(acting("all_squash", caller).groups.empty());
  caller.groups = std::make_shared<const std::vector<std::uint32_t>>();
  EXPECT_TRUE(acting("", caller).groups.empty());
}

TEST(ExportSquash, turns_root_among_the_groups_of_the_name_service_into_nobody) {
  rpc::Caller caller = sys(1000, 100);
  caller.groups = std::make_shared<const std::vector<std::uint32_t>>(
      std::vector<std::uint32_t>{0, 5, vfs::kNoId});
  EXPECT_EQ(acting("", caller).groups, (vfs::Groups{65534, 5, 65534}));
  EXPECT_EQ(acting("no_root_squash", caller).groups, (vfs::Groups{0, 5, 65534}));
}

TEST(ExportSquash, leaves_root_alone_with_no_root_squash) {
  const vfs::Credentials who = acting("no_root_squash", sys(0, 0, {0}));
  EXPECT_EQ(who.uid, 0u);
  EXPECT_EQ(who.gid, 0u);
  EXPECT_EQ(who.groups, (decltype(who.groups){0}));
}

TEST(ExportSquash, takes_away_all_groups_with_all_squash) {
  for (const std::uint32_t uid : {0u, 1000u}) {
    const vfs::Credentials who =
        acting("all_squash,no_root_squash,anonuid=7,anongid=8", sys(uid, 20, {30}));
    EXPECT_EQ(who.uid, 7u);
    EXPECT_EQ(who.gid, 8u);
    EXPECT_TRUE(who.groups.empty());
  }
}

TEST(ExportSquash, makes_a_caller_without_credentials_anonymous) {
  const vfs::Credentials who = acting("no_root_squash,anonuid=7,anongid=8", {});
  EXPECT_EQ(who.uid, 7u);
  EXPECT_EQ(who.gid, 8u);
}

TEST(ExportSquash, never_lets_through_the_number_that_means_no_change) {
  const std::uint32_t none = 0xffffffff;
  const vfs::Credentials who = acting("no_root_squash", sys(none, none, {none, 5}));
  EXPECT_EQ(who.uid, 65534u);
  EXPECT_EQ(who.gid, 65534u);
  EXPECT_EQ(who.groups, (decltype(who.groups){65534, 5}));
}

TEST(Export, admits_reserved_ports_and_rdma_when_secure) {
  const Export secure = with("secure");
  EXPECT_NE(secure.terms_for(from("192.0.2.1", 1023)).options, nullptr);
  EXPECT_EQ(secure.terms_for(from("192.0.2.1", 1024)).options, nullptr);
  EXPECT_EQ(secure.terms_for(from("192.0.2.1", 0)).options, nullptr);
  EXPECT_NE(with("").terms_for(from("192.0.2.1", 1024)).options, nullptr);
  rpc::Origin rdma = from("192.0.2.1", 1024);
  rdma.transport = rpc::TransportKind::Rdma;
  EXPECT_NE(secure.terms_for(rdma).options, nullptr);
}

TEST(Export, is_open_by_other_transports_only_without_rdma) {
  rpc::Origin rdma = from("192.0.2.1");
  rdma.transport = rpc::TransportKind::Rdma;
  EXPECT_EQ(with("no_rdma").terms_for(rdma).options, nullptr);
  EXPECT_NE(with("no_rdma").terms_for(from("192.0.2.1")).options, nullptr);
  EXPECT_NE(with("no_rdma,rdma").terms_for(rdma).options, nullptr);
}

// The anonymous user's number tells which rule it was.
Export open_to(const std::vector<std::pair<const char*, std::uint32_t>>& rules) {
  Export made = with("");
  for (const auto& [match, uid] : rules) {
    ExportOptions options;
    options.anonymous_uid = uid;
    const auto rule = make_client_rule(match, options);
    EXPECT_TRUE(rule.ok()) << match;
    made.spec.clients.push_back(*rule);
  }
  return made;
}

std::uint32_t rule_for(const Export& asked, const char* host) {
  const ExportOptions* options = asked.terms_for(from(host)).options;
  return options == nullptr ? 0 : options->anonymous_uid;
}

TEST(Export, has_a_rule_for_a_client_whatever_its_port_and_transport) {
  Export asked = open_to({{"*", 1}, {"192.0.2.0/24", 2}, {"*.example.com", 3}});
  asked.spec.clients[1].options.secure = true;
  EXPECT_EQ(asked.terms_for(from("192.0.2.1", 1024)).options, nullptr);
  EXPECT_EQ(asked.rule_for(from("192.0.2.1", 1024)).rule, &asked.spec.clients[1]);
  const Export::RuleFound unknown = asked.rule_for(from("198.51.100.1"));
  EXPECT_EQ(unknown.rule, nullptr);
  EXPECT_TRUE(unknown.undecided) << "its name may be one of those";
  EXPECT_EQ(with("").rule_for(from("192.0.2.1")).rule, nullptr) << "all have the same options";
}

TEST(Export, is_open_on_the_terms_of_the_most_specific_client_that_matches) {
  const Export asked = open_to({{"192.0.2.0/24", 1},
                                {"192.0.2.128/25", 2},
                                {"192.0.2.200", 3},
                                {"192.0.0.0/255.255.0.0", 4},
                                {"2001:db8::/32", 5},
                                {"2001:db8:1::/48", 6}});
  EXPECT_EQ(rule_for(asked, "192.0.2.1"), 1u);
  EXPECT_EQ(rule_for(asked, "192.0.2.129"), 2u);
  EXPECT_EQ(rule_for(asked, "192.0.2.200"), 3u);
  EXPECT_EQ(rule_for(asked, "192.0.3.1"), 4u);
  EXPECT_EQ(rule_for(asked, "2001:db8:2::1"), 5u);
  EXPECT_EQ(rule_for(asked, "2001:db8:1::1"), 6u);
  EXPECT_EQ(rule_for(asked, "192.1.0.1"), 0u);
  EXPECT_EQ(rule_for(asked, "::1"), 0u);
  EXPECT_EQ(rule_for(asked, "not an address"), 0u);
}

TEST(Export, is_open_to_the_rest_where_a_star_says_so) {
  const Export asked = open_to({{"*", 1}, {"0.0.0.0/0", 2}, {"10.0.0.0/8", 3}});
  EXPECT_EQ(rule_for(asked, "10.1.2.3"), 3u);
  EXPECT_EQ(rule_for(asked, "192.0.2.1"), 2u);
  EXPECT_EQ(rule_for(asked, "2001:db8::1"), 1u);
  EXPECT_EQ(rule_for(asked, "a name"), 1u);
}

TEST(Export, is_open_on_the_terms_of_the_smallest_rank_before_the_longest_prefix) {
  Export asked = open_to({{"192.0.2.7", 1}, {"192.0.2.0/24", 2}, {"*", 3}});
  for (unsigned i = 0; i < 3; ++i) asked.spec.clients[i].rank = 3 - i;
  EXPECT_EQ(rule_for(asked, "192.0.2.7"), 3u);
  asked.spec.clients.pop_back();
  EXPECT_EQ(rule_for(asked, "192.0.2.7"), 2u);
  EXPECT_EQ(rule_for(asked, "192.0.3.7"), 0u);
}

TEST(ExportClientRules, are_networks_and_said_once_each) {
  for (const char* text : {"", "10.0.0.0/33", "@", "example", "10.0.0.0/8/8", "::1%lo"})
    EXPECT_FALSE(make_client_rule(text, {}).ok()) << text;
  Exports exports;
  ExportSpec spec{"/x", nullptr, {}};
  spec.clients = {*make_client_rule("10.0.0.0/8", {}), *make_client_rule("10.1.0.0/8", {})};
  const auto twice = exports.add(1, spec);
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().message.find("client '10.1.0.0/8' is given twice"), std::string::npos);
  spec.clients = {*make_client_rule("*", {}), *make_client_rule("*", {})};
  EXPECT_FALSE(exports.add(1, spec).ok());
}

TEST(Exports, refuse_clients_by_name_where_nobody_knows_names) {
  for (const char* match : {"*.example.com", "@trusted"}) {
    ExportSpec spec{"/data", nullptr, {}};
    spec.clients = {*make_client_rule(match, {})};
    Exports exports;
    const auto added = exports.add(1, std::move(spec));
    ASSERT_FALSE(added.ok()) << match;
    EXPECT_NE(added.error().message.find(match), std::string::npos);
  }
}

TEST(Exports, match_the_longest_whole_path) {
  Exports exports;
  for (const auto& [id, path] : {std::pair(1u, "/a"), std::pair(2u, "/a/b"), std::pair(3u, "//c/")})
    ASSERT_TRUE(exports.add(id, {std::string(path), nullptr, {}}).ok());
  const auto matched = [&](std::string_view path) {
    const auto match = exports.match(path);
    return match ? match->found->path() + ":" + std::string(match->rest) : "none";
  };
  EXPECT_EQ(matched("/a"), "/a:");
  EXPECT_EQ(matched("/a/x/y"), "/a:x/y");
  EXPECT_EQ(matched("/a/b"), "/a/b:");
  EXPECT_EQ(matched("/a/b/c"), "/a/b:c");
  EXPECT_EQ(matched("/a/bc"), "/a:bc");
  EXPECT_EQ(matched("/ab"), "none");
  EXPECT_EQ(matched("/c"), "/c:");
  EXPECT_EQ(matched("/"), "none");
  ASSERT_TRUE(exports.add(4, {"/", nullptr, {}}).ok());
  EXPECT_EQ(matched("/"), "/:");
  EXPECT_EQ(matched("/ab/c"), "/:ab/c");
  EXPECT_EQ(matched("/a/b"), "/a/b:");
}

TEST(Exports, refuse_names_that_are_no_absolute_path_or_taken) {
  Exports exports;
  ASSERT_TRUE(exports.add(1, {"/a", nullptr, {}}).ok());
  EXPECT_FALSE(exports.add(2, {"a", nullptr, {}}).ok());
  EXPECT_FALSE(exports.add(2, {"", nullptr, {}}).ok());
  EXPECT_FALSE(exports.add(2, {"/x/../y", nullptr, {}}).ok());
  EXPECT_FALSE(exports.add(2, {"/./y", nullptr, {}}).ok());
  EXPECT_FALSE(exports.add(2, {"/" + std::string(1024, 'x'), nullptr, {}}).ok());
  EXPECT_FALSE(exports.add(2, {"/a/", nullptr, {}}).ok());
  EXPECT_FALSE(exports.add(1, {"/b", nullptr, {}}).ok());
  EXPECT_EQ(exports.all().size(), 1u);
  EXPECT_EQ(exports.find(2), nullptr);
}

// With one export of this id and path, after others.
Exports after(const Exports& before, std::uint32_t id, std::string path) {
  Exports next;
  EXPECT_TRUE(next.add(id, {std::move(path), nullptr, {}}).ok());
  next.remember(before);
  return next;
}

TEST(Exports, know_the_paths_of_those_that_were_removed) {
  const Exports first = after({}, 1, "/a");
  EXPECT_EQ(first.find_removed(1), nullptr);
  EXPECT_EQ(*first.path_of(1), "/a");
  const Exports third = after(after(first, 2, "/b"), 3, "/c");
  EXPECT_EQ(third.find(1), nullptr);
  ASSERT_NE(third.find_removed(1), nullptr);
  EXPECT_EQ(third.find_removed(1)->store, first.find(1)->store);
  EXPECT_EQ(*third.path_of(1), "/a");
  EXPECT_EQ(*third.path_of(2), "/b");
  EXPECT_EQ(third.path_of(4), nullptr);
  const Exports again = after(third, 1, "/a");
  EXPECT_EQ(again.find_removed(1), nullptr);
  EXPECT_EQ(*again.path_of(1), "/a");
}

TEST(Exports, keep_no_file_system_when_removed_and_remember_a_thousand_at_most) {
  auto files = std::make_shared<vfs::MemoryFileSystem>();
  const std::weak_ptr<vfs::FileSystem> alive = files;
  Exports exports;
  ASSERT_TRUE(exports.add(1, {"/a", std::move(files), {}}).ok());
  exports = after(exports, 2, "/2");
  EXPECT_TRUE(alive.expired());
  for (std::uint32_t id = 3; id < 3 + Exports::kMostRemoved; ++id)
    exports = after(exports, id, "/" + std::to_string(id));
  EXPECT_EQ(exports.removed().size(), Exports::kMostRemoved);
  EXPECT_EQ(exports.path_of(1), nullptr) << "the first one";
  EXPECT_NE(exports.path_of(2), nullptr);
}

TEST(Exports, serve_a_file_while_its_export_has_its_store) {
  Exports exports;
  const auto files = std::make_shared<vfs::MemoryFileSystem>();
  ASSERT_TRUE(exports.add(1, {"/a", files, {}}).ok());
  const state::FileKey file{exports.find(1)->store, {}, 1};
  EXPECT_TRUE(exports.serves(file));
  EXPECT_FALSE(exports.serves({file.store, {}, 2}));
  EXPECT_FALSE(exports.serves({file.store + 1, {}, 1})) << "another disk, with the same path";
}

TEST(Exports, are_nested_where_the_path_of_one_is_below_that_of_another) {
  const auto nested = [](std::initializer_list<const char*> paths) {
    Exports exports;
    std::uint32_t id = 0;
    for (const char* path : paths) EXPECT_TRUE(exports.add(++id, {path, nullptr, {}}).ok()) << path;
    return exports.nested();
  };
  EXPECT_FALSE(nested({}));
  EXPECT_FALSE(nested({"/"}));
  EXPECT_FALSE(nested({"/srv/a", "/srv/b", "/srv/ab"}));
  EXPECT_TRUE(nested({"/srv", "/srv/a/b"}));
  EXPECT_TRUE(nested({"/srv/a/b", "/other", "/srv"}));
  EXPECT_TRUE(nested({"/data", "/"}));
}

}  // namespace
}  // namespace stag::nfs
