// The command as it is where libcephfs-dev is missing, or with STAG_CEPH=OFF: this program has the
// one file that knows of that (cli/serve/ceph_export.cc) compiled so, and all others as they are.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/serve/ceph_export.h"
#include "cli/serve/export_line.h"
#include "cli/serve/options.h"

namespace stag::cli {
namespace {

TEST(WithoutCeph, help_offers_no_CephFS) {
  EXPECT_FALSE(serves_ceph());
  CLI::App app;
  Arguments arguments(app, {});
  ServeOptions options;
  options.declare(arguments);
  const std::string help = app.help();
  EXPECT_EQ(help.find("ceph:PATH"), std::string::npos) << help;
  EXPECT_EQ(help.find("CephFS"), std::string::npos) << help;
}

TEST(WithoutCeph, a_wrong_export_is_not_told_of_CephFS) {
  const auto line = parse_export("/name");
  ASSERT_FALSE(line.ok());
  EXPECT_EQ(line.error().find("ceph:"), std::string::npos) << line.error();
}

TEST(WithoutCeph, an_export_of_CephFS_is_refused_with_what_is_missing) {
  StoreWatch stores(std::chrono::seconds(1), 0);
  CephAttempts attempts;
  CephPlace place;
  place.path = "/projects";
  const auto opened = open_ceph(place, "/projects", 1, stores, attempts);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error(),
            "this program was built without CephFS; build it where libcephfs-dev is installed");
}

}  // namespace
}  // namespace stag::cli
