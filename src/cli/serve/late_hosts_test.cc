#include "cli/serve/late_hosts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/serve/exports_file.h"

namespace stag::cli {
namespace {

class NoNetgroups final : public HostService {
 public:
  Result<std::string, std::string> check_netgroup(const std::string&) override {
    return std::string("there is no such netgroup");
  }
  bool is_mount_point(const std::string&) override { return true; }
};

ExportLine line_of(std::string_view text) {
  NoNetgroups hosts;
  auto file = parse_exports_file("exports", text, hosts);
  EXPECT_TRUE(file.ok()) << file.error();
  return file.ok() ? file->lines.at(0) : ExportLine();
}

HostLookup knows(HostAnswers answers) {
  return [answers = std::move(answers)](const std::string& host) -> HostAnswer {
    const auto found = answers.find(host);
    if (found != answers.end()) return found->second;
    return Failure{std::string("no such host")};
  };
}

using Texts = std::vector<std::string>;

const HostLookup kNobodyKnown = knows({});
const HostLookup kDeskIs8 = knows({{"desk", Texts{"192.0.2.8"}}});

// What a caller from this address may do; null: nothing.
std::optional<nfs::ExportOptions> terms_of(const ExportLine& line, const char* address) {
  const nfs::Export made{.id = 1, .spec = {line.path, nullptr, line.options, rules_of(line)}};
  rpc::Origin origin;
  origin.peer = {.host = address, .port = 700};
  const nfs::ExportOptions* options = made.terms_for(origin).options;
  return options == nullptr ? std::nullopt : std::optional(*options);
}
std::string rights_of(const ExportLine& line, const char* address) {
  const auto options = terms_of(line, address);
  if (!options) return "closed";
  return options->read_only ? "ro" : "rw";
}

TEST(LateHosts, are_told_with_why_and_leave_an_export_open_to_nobody_else) {
  ExportLine line = line_of("/srv nowhere(rw) @nobody(ro)");
  EXPECT_EQ(resolve_late(line, kNobodyKnown), Texts());
  EXPECT_EQ(unknown_clients(line),
            (Texts{"'nowhere': no such host", "'@nobody': there is no such netgroup"}));
  EXPECT_TRUE(has_late(line));
  EXPECT_EQ(rights_of(line_of("/srv nowhere(rw)"), "192.0.2.9"), "closed")
      << "an export without clients is open to all";
}

TEST(LateHosts, have_the_place_of_their_line_once_they_are_known) {
  ExportLine line = line_of("/srv nowhere(rw) desk(ro) gone(ro) *(ro)");
  EXPECT_EQ(resolve_late(line, kDeskIs8), Texts{"client 'desk': 192.0.2.8"});
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro");
  EXPECT_EQ(resolve_late(line, knows({{"nowhere", Texts{"192.0.2.9", "192.0.2.8"}}})),
            Texts{"client 'nowhere': 192.0.2.9, 192.0.2.8"});
  EXPECT_EQ(unknown_clients(line), Texts{"'gone': no such host"});
  EXPECT_TRUE(has_late(line));
  EXPECT_EQ(rights_of(line, "192.0.2.9"), "rw");
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "rw") << "the first that has the address counts";
}

TEST(LateHosts, do_not_take_the_place_of_a_client_that_stands_before_them) {
  ExportLine line = line_of("/srv desk(ro) nowhere(rw)");
  resolve_late(line, kDeskIs8);
  EXPECT_EQ(resolve_late(line, knows({{"nowhere", Texts{"192.0.2.8"}}})).size(), 1u);
  EXPECT_EQ(rules_of(line).size(), 1u);
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro");
  EXPECT_FALSE(has_late(line));
}

TEST(LateHosts, that_were_known_before_keep_their_addresses_and_are_asked_for_again) {
  ExportLine before = line_of("/srv desk(rw)");
  resolve_late(before, kDeskIs8);
  EXPECT_EQ(rights_of(before, "192.0.2.8"), "rw");
  // Read again with other options, while the name service is out.
  ExportLine line = line_of("/srv desk(ro) *(rw,no_root_squash)");
  EXPECT_EQ(resolve_late(line, kNobodyKnown), Texts());
  keep_addresses(line, before);
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro") << "neither locked out nor let in by '*'";
  EXPECT_EQ(rights_of(line, "192.0.2.9"), "rw") << "nor does he narrow others";
  EXPECT_TRUE(has_late(line));
  EXPECT_EQ(unknown_clients(line), Texts{"'desk': no such host; it stays 192.0.2.8"});
  // And once more.
  ExportLine again = line_of("/srv desk(ro) *(rw)");
  resolve_late(again, kNobodyKnown);
  keep_addresses(again, line);
  EXPECT_EQ(rights_of(again, "192.0.2.8"), "ro");
  EXPECT_EQ(resolve_late(again, knows({{"desk", Texts{"192.0.2.9"}}})),
            Texts{"client 'desk': 192.0.2.9"});
  EXPECT_EQ(rights_of(again, "192.0.2.9"), "ro");
  EXPECT_EQ(rights_of(again, "192.0.2.8"), "rw") << "its former address is another's";
  EXPECT_FALSE(has_late(again));
}

TEST(LateHosts, leave_to_others_what_they_took_from_them_while_they_had_their_address) {
  ExportLine line = line_of("/srv nowhere(rw) desk(ro)");
  resolve_late(line, kDeskIs8);
  keep_addresses(line, [] {
    ExportLine before = line_of("/srv nowhere(rw)");
    resolve_late(before, knows({{"nowhere", Texts{"192.0.2.8"}}}));
    return before;
  }());
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "rw");
  resolve_late(line, knows({{"nowhere", Texts{"192.0.2.9"}}}));
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro");
}

TEST(LateHosts, that_never_were_known_get_no_more_by_a_rule_for_many) {
  for (const char* many : {"*", "192.0.2.0/24"}) {
    ExportLine line =
        line_of("/srv nowhere(ro) 192.0.2.9(rw) " + std::string(many) + "(rw,no_root_squash)");
    EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro") << many;
    EXPECT_TRUE(terms_of(line, "192.0.2.8")->root_squash) << many;
    EXPECT_EQ(rights_of(line, "192.0.2.9"), "rw") << "he is named himself";
    resolve_late(line, knows({{"nowhere", Texts{"192.0.2.7"}}}));
    EXPECT_EQ(rights_of(line, "192.0.2.7"), "ro") << many;
    EXPECT_EQ(rights_of(line, "192.0.2.8"), "rw") << many;
    EXPECT_FALSE(terms_of(line, "192.0.2.8")->root_squash) << many;
  }
  EXPECT_EQ(rights_of(line_of("/srv nowhere(rw,no_root_squash) *(ro)"), "192.0.2.8"), "ro");
  EXPECT_EQ(rights_of(line_of("/srv nowhere(rw,sec=krb5) *(rw,sec=sys)"), "192.0.2.8"), "closed");
  EXPECT_EQ(terms_of(line_of("/srv nowhere(sec=krb5) *(sec=sys:krb5)"), "192.0.2.8")->flavors,
            std::vector{oncrpc::AuthFlavor::KRB5});
}

TEST(LateHosts, without_an_address_of_IP_are_late) {
  ExportLine line = line_of("/srv desk(rw)");
  EXPECT_EQ(resolve_late(line, knows({{"desk", Texts{"desk"}}})), Texts());
  EXPECT_TRUE(has_late(line));
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "closed");
}

}  // namespace
}  // namespace stag::cli
