#include "cli/copy/copy_between.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using nfs::client::Url;

Url url(const char* text) {
  return *Url::parse(text);
}

TEST(CopyBetween, is_asked_of_servers_of_version_4_2) {
  const Url good = url("nfs://a/x?version=4.2"), other = url("nfs://b/x?version=4.2&proto=tcp");
  EXPECT_TRUE(may_copy_between(good, other));
  for (const char* bad : {"nfs://b/x?version=4.1", "nfs://b/x?version=4", "nfs://b/x?version=3"}) {
    EXPECT_FALSE(may_copy_between(good, url(bad))) << bad;
    EXPECT_FALSE(may_copy_between(url(bad), good)) << bad;
  }
}

TEST(CopyBetween, is_not_asked_for_where_the_user_wants_Kerberos) {
  const Url plain = url("nfs://a/x?version=4.2");
  for (const char* safe : {"nfs://b/x?version=4.2&sec=krb5", "nfs://b/x?version=4.2&sec=krb5i",
                           "nfs://b/x?version=4.2&sec=krb5p"}) {
    EXPECT_FALSE(may_copy_between(plain, url(safe))) << safe;
    EXPECT_FALSE(may_copy_between(url(safe), plain)) << safe;
    EXPECT_FALSE(may_copy_between(url(safe), url(safe))) << safe;
  }
}

TEST(CopyBetween, is_worth_it_for_long_files_without_holes) {
  CopyObject file;
  file.size = file.used = 4 << 20;
  EXPECT_TRUE(is_worth_asking(file));
  file.used -= 4096;
  EXPECT_FALSE(is_worth_asking(file));
  file.size = file.used;
  EXPECT_FALSE(is_worth_asking(file));
}

}  // namespace
}  // namespace stag::cli
