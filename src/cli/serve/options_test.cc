#include "cli/serve/options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/serve/ceph_export.h"

namespace stag::cli {
namespace {

std::string help_of(ServeOptions options) {
  CLI::App app;
  Arguments arguments(app, {});
  options.declare(arguments);
  return app.help();
}

bool offers_cephfs(const std::string& help) {
  return help.find("CephFS") != std::string::npos || help.find("ceph:PATH") != std::string::npos;
}

TEST(ServeOptions, offer_CephFS_only_where_this_program_has_it) {
  EXPECT_TRUE(offers_cephfs(help_of(ServeOptions(true))));
  const std::string without = help_of(ServeOptions(false));
  EXPECT_FALSE(offers_cephfs(without)) << without;
  EXPECT_NE(without.find("/name=DIR|memory[,OPTION]..."), std::string::npos) << without;
  EXPECT_EQ(offers_cephfs(help_of(ServeOptions())), serves_ceph());
}

// Else those of one session, in a store that hangs, would keep from a connection what comes for
// others.
TEST(ServeOptions, let_a_connection_over_TCP_have_more_calls_than_a_session_has_slots) {
  for (const char* slots : {"8", "64", "1024"}) {
    ServeOptions options;
    CLI::App app;
    Arguments arguments(app, {});
    options.declare(arguments);
    app.parse(std::string("--export /m=memory --nfs4-slots ") + slots);
    rpc::tcp::ServerOptions tcp;
    const std::size_t usual = tcp.max_calls;
    options.nfs4_limits.apply(tcp);
    EXPECT_GT(tcp.max_calls, std::stoul(slots));
    EXPECT_GE(tcp.max_calls, usual);
  }
}

}  // namespace
}  // namespace stag::cli
