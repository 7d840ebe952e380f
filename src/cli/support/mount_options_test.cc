#include "cli/support/mount_options.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using Words = std::vector<std::string>;

TEST(MountOptions, what_is_for_mount_and_systemd_alone_is_left_out) {
  const auto words = mount_words({"rw,noauto,users,_netdev,nofail,x-systemd.automount,defaults"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->passed_on, Words{});
}

TEST(MountOptions, what_mount_has_for_every_file_system_is_taken_also_where_it_means_nothing) {
  const auto words = mount_words(
      {"relatime,norelatime,strictatime,nostrictatime,lazytime,nolazytime,diratime,nodiratime",
       "iversion,noiversion,mand,nomand,silent,loud,auto,user=joe,X-mount.mkdir,comment=ours"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->passed_on, Words{});
}

TEST(MountOptions, a_server_is_tried_again_for_a_number_of_minutes) {
  EXPECT_EQ(mount_words({"ro"})->retry, std::nullopt);
  EXPECT_EQ(mount_words({"ro,retry=0"})->retry, 0u);
  EXPECT_EQ(mount_words({"retry=10000"})->retry, 10'000u);
  for (const char* wrong : {"retry=", "retry=-1", "retry=10001", "retry=2m"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
}

TEST(MountOptions, what_FUSE_knows_is_passed_on) {
  const auto words = mount_words({"ro,allow_other", "", "nosuid"});
  ASSERT_TRUE(words);
  EXPECT_EQ(words->passed_on, (Words{"ro", "allow_other", "nosuid", "default_permissions"}))
      << "others have the rights that modes give them, not those of who mounts";
  EXPECT_FALSE(words->direct);
}

TEST(MountOptions, the_time_for_which_attributes_are_used_is_a_number_of_seconds) {
  EXPECT_EQ(mount_words({"actimeo=0"})->valid, 0);
  EXPECT_EQ(mount_words({"direct,actimeo=2.5"})->valid, 2.5);
  EXPECT_EQ(mount_words({""})->valid, 1);
  for (const char* wrong : {"actimeo=", "actimeo=x", "actimeo=1s", "actimeo=-1", "actimeo=1e9"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
}

TEST(MountOptions, connections_are_one_to_sixteen) {
  EXPECT_EQ(mount_words({"ro"})->connections, std::nullopt);
  EXPECT_EQ(mount_words({"ro,nconnect=4"})->connections, 4u);
  for (const char* wrong : {"nconnect=", "nconnect=0", "nconnect=17", "nconnect=4x"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
}

TEST(MountOptions, loops_are_one_to_sixteen) {
  EXPECT_EQ(mount_words({"ro"})->loops, std::nullopt);
  EXPECT_EQ(mount_words({"ro,loops=4"})->loops, 4u);
  for (const char* wrong : {"loops=", "loops=0", "loops=17", "loops=4x"})
    EXPECT_NE(mount_words({wrong}).error().find("from 1 to 16"), std::string::npos) << wrong;
}

TEST(MountOptions, those_of_the_URL_are_taken_as_mount_nfs_has_them) {
  const auto url = [](const char* list, const char* of) {
    const auto words = mount_words({list});
    if (!words) return words.error();
    EXPECT_EQ(words->passed_on, Words{}) << list;
    const auto whole = url_with(*words, of);
    return whole ? *whole : whole.error();
  };
  EXPECT_EQ(url("rw,hard,_netdev", "nfs://h/x"), "nfs://h/x");
  EXPECT_EQ(url("vers=4.2", "nfs://h/x"), "nfs://h/x?version=4.2");
  EXPECT_EQ(url("nfsvers=3,proto=tcp", "nfs://h/x?rsize=4096"),
            "nfs://h/x?rsize=4096&proto=tcp&version=3");
  EXPECT_EQ(url("v4.1,rdma", "nfs://h/x"), "nfs://h/x?proto=rdma&version=4.1");
  EXPECT_EQ(url("vers=3,vers=4", "nfs://h/x"), "nfs://h/x?version=4") << "the last counts";
  EXPECT_EQ(url("sec=krb5p,rsize=65536,wsize=32768,mountport=20048", "nfs://h/x"),
            "nfs://h/x?mountport=20048&rsize=65536&sec=krb5p&wsize=32768");
  EXPECT_EQ(url("port=2050", "nfs://h/x"), "nfs://h:2050/x");
  EXPECT_EQ(url("port=2050", "nfs://h?version=3"), "nfs://h:2050?version=3");
  EXPECT_EQ(url("port=2050,proto=tcp", "nfs://[::1]/x"), "nfs://[::1]:2050/x?proto=tcp");
  EXPECT_EQ(url("port=0", "nfs://h/x"), "nfs://h/x?port=rpcbind");
  EXPECT_EQ(url("port=2050,port=0", "nfs://h/x"), "nfs://h/x?port=rpcbind");
  EXPECT_EQ(url("port=0,port=2050", "nfs://h/x"), "nfs://h:2050/x");
  EXPECT_EQ(url("vers=3", "/no/url"), "/no/url");
  EXPECT_EQ(url("vers=3", "nfs://h/x?version=4"),
            "'-o version=3': in the URL, 'version': it is given twice");
  EXPECT_EQ(url("port=1", "nfs://h:2/x"), "'-o port=1': the URL says where the port is");
  EXPECT_EQ(url("port=1", "nfs://h/x?port=rpcbind"), url("port=1", "nfs://h:2/x"));
}

TEST(MountOptions, what_is_no_value_of_the_URL_is_refused) {
  for (const char* wrong : {"vers=5", "vers=", "proto=udp", "sec=none", "rsize=big", "port=x",
                            "port=65536", "mountport=0", "nfsvers=4.3"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
  EXPECT_EQ(mount_words({"vers=5"}).error(),
            "'-o vers=5': in the URL, version: NFS version '5' is not in this build; use "
            "version=4, 4.2, 4.1, 4.0, 3 or 2");
}

TEST(MountOptions, those_of_mount_nfs_that_are_others_here_name_them) {
  const std::pair<const char*, const char*> kWords[] = {{"soft", "timeout=SECONDS"},
                                                        {"timeo=600", "timeout=SECONDS"},
                                                        {"retrans=2", "timeout=SECONDS"},
                                                        {"noac", "actimeo=0"},
                                                        {"acregmax=60", "actimeo="},
                                                        {"bg", "retry=MINUTES"},
                                                        {"minorversion=1", "vers=4.1"},
                                                        {"clientaddr=10.0.0.1", "callback=ADDRESS"},
                                                        {"udp", "proto=tcp"},
                                                        {"nolock", "version 4"},
                                                        {"uid=1000", "?uid=N in the URL"}};
  for (const auto& [word, here] : kWords) {
    const auto words = mount_words({word});
    ASSERT_FALSE(words) << word;
    EXPECT_NE(words.error().find(word), std::string::npos) << words.error();
    EXPECT_NE(words.error().find(here), std::string::npos) << words.error();
  }
}

TEST(MountOptions, a_call_fails_after_a_number_of_seconds) {
  EXPECT_EQ(mount_words({"ro"})->timeout, std::nullopt);
  EXPECT_EQ(mount_words({"timeout=30"})->timeout, 30u);
  for (const char* wrong : {"timeout=", "timeout=0", "timeout=1.5", "timeout=2000000"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
}

TEST(MountOptions, what_the_kernel_reads_ahead_is_a_size) {
  EXPECT_EQ(mount_words({"ro"})->read_ahead, 1u << 20);
  EXPECT_EQ(mount_words({"readahead=4M"})->read_ahead, 4u << 20);
  EXPECT_EQ(mount_words({"ro,readahead=0"})->read_ahead, 0u);
  for (const char* wrong : {"readahead=", "readahead=x", "readahead=-1", "readahead=65M"})
    EXPECT_FALSE(mount_words({wrong})) << wrong;
}

TEST(MountHelper, is_called_by_mount_in_its_own_way) {
  const auto words = from_mount_helper(
      {"mount.stag", "nfs://server/data", "/mnt", "-n", "-o", "ro,_netdev", "-t", "stag", "-v"});
  EXPECT_EQ(words, (Words{"stag", "mount", "nfs://server/data", "/mnt", "-o", "ro,_netdev"}));
  EXPECT_EQ(from_mount_helper({"mount.stag", "nfs://server/data", "/mnt", "-fnv"}), std::nullopt);
  EXPECT_EQ(from_mount_helper({"mount.stag", "-o"}), (Words{"stag", "mount"}));
}

}  // namespace
}  // namespace stag::cli
