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

}  // namespace
}  // namespace stag::cli
