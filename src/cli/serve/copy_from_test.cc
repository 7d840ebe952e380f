#include "cli/serve/copy_from.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/serve/late_hosts.h"

namespace stag::cli {
namespace {

using Texts = std::vector<std::string>;

// A name service that may know other addresses of a host from one moment to the next.
struct ChangingNames {
  HostLookup lookup() {
    return [this](const std::string& host) -> HostAnswer {
      const auto found = known.find(host);
      if (found == known.end()) return Failure{std::string("no such host")};
      return found->second;
    };
  }
  std::map<std::string, Texts> known;
};

ExportLine line_of_host(const std::string& host) {
  ExportLine line;
  line.clients.push_back(host_rule(host, {}));
  line.hosts[host];
  return line;
}

TEST(CopyFrom, asks_for_its_hosts_again_and_keeps_the_addresses_of_those_that_nobody_knows_now) {
  ChangingNames names{{{"store", {"192.0.2.1"}}}};
  CopyFromHosts hosts(line_of_host("store"), names.lookup());
  EXPECT_TRUE(hosts.admits("192.0.2.1"));
  names.known["store"] = {"192.0.2.2"};
  hosts.ask_again({});
  EXPECT_TRUE(hosts.admits("192.0.2.2"));
  EXPECT_FALSE(hosts.admits("192.0.2.1")) << "another machine may have that address now";
  names.known.clear();
  hosts.ask_again({});
  EXPECT_TRUE(hosts.admits("192.0.2.2"));
  EXPECT_EQ(hosts.late(), std::set<std::string>{"store"});
  hosts.take({{"store", Texts{"192.0.2.3"}}});
  EXPECT_TRUE(hosts.admits("192.0.2.3"));
  EXPECT_FALSE(hosts.admits("192.0.2.2"));
}

TEST(CopyFrom, takes_others_on_at_once_and_keeps_what_is_known_of_those_that_stay) {
  ChangingNames names{{{"store", {"192.0.2.1"}}, {"other", {"192.0.2.2"}}}};
  CopyFromHosts hosts({}, names.lookup());
  EXPECT_FALSE(hosts.any());
  hosts.replace(line_of_host("store"));
  EXPECT_TRUE(hosts.any());
  EXPECT_FALSE(hosts.admits("192.0.2.1")) << "nobody has asked for it";
  hosts.ask_again({});
  EXPECT_TRUE(hosts.admits("192.0.2.1"));
  ExportLine both = line_of_host("store");
  both.clients.push_back(host_rule("other", {}));
  both.hosts["other"];
  hosts.replace(both);
  EXPECT_TRUE(hosts.admits("192.0.2.1"));
  hosts.ask_again({});
  EXPECT_TRUE(hosts.admits("192.0.2.2"));
  hosts.replace(line_of_host("other"));
  EXPECT_FALSE(hosts.admits("192.0.2.1")) << "before any name is asked for again";
  hosts.replace({});
  EXPECT_FALSE(hosts.any() || hosts.admits("192.0.2.2"));
}

TEST(CopyFrom, admits_no_host_when_it_is_empty) {
  ChangingNames names;
  CopyFromHosts hosts({}, names.lookup());
  EXPECT_FALSE(hosts.admits("192.0.2.1"));
  EXPECT_TRUE(hosts.late().empty());
}

}  // namespace
}  // namespace stag::cli
