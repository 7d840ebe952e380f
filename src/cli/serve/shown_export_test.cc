#include "cli/serve/shown_export.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

TEST(ShownExport, has_all_options_in_the_words_of_exports) {
  EXPECT_EQ(words_of(*nfs::parse_export_options("")),
            "rw,root_squash,no_all_squash,anonuid=65534,anongid=65534,insecure,sec=sys:none");
  EXPECT_EQ(words_of(*nfs::parse_export_options(
                "ro,no_root_squash,all_squash,secure,no_rdma,anonuid=7,anongid=8,sec=krb5p:krb5i")),
            "ro,no_root_squash,all_squash,anonuid=7,anongid=8,secure,no_rdma,sec=krb5p:krb5i");
}

// Read again, they are what they were.
TEST(ShownExport, has_words_that_mean_the_same_options) {
  for (const char* const words : {"", "ro,secure", "all_squash,anonuid=3", "no_rdma,sec=krb5"}) {
    const auto options = *nfs::parse_export_options(words);
    EXPECT_EQ(*nfs::parse_export_options(words_of(options)), options) << words;
  }
}

TEST(ShownExport, has_what_each_flavor_may_do_where_that_differs) {
  nfs::ExportOptions options = *nfs::parse_export_options("ro,secure,sec=krb5p:sys");
  nfs::ExportOptions by_kerberos = options;
  by_kerberos.read_only = false;
  options.by_flavor = {by_kerberos, options};
  EXPECT_EQ(words_of(options),
            "secure,sec=krb5p,rw,root_squash,no_all_squash,anonuid=65534,anongid=65534,"
            "sec=sys,ro,root_squash,no_all_squash,anonuid=65534,anongid=65534");
}

TEST(ShownExport, says_what_is_exported_and_where_that_is_written) {
  ShownExport folder = shown(*parse_export("/data=/srv/data,fsid=7,offload,nfs_only,mp=/srv"));
  EXPECT_EQ(folder.path, "/data");
  EXPECT_EQ(folder.store, "/srv/data");
  EXPECT_EQ(folder.options, "fsid=7,offload,nfs_only,mp=/srv");
  EXPECT_EQ(folder.where, "--export /data");
  folder = shown(*parse_export("/scratch=memory"));
  EXPECT_EQ(folder.store, "memory");
  EXPECT_EQ(folder.options, "");
}

}  // namespace
}  // namespace stag::cli
