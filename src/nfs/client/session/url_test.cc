#include "nfs/client/session/url.h"

#include <gtest/gtest.h>

#include "testing/proves.h"

namespace stag::nfs::client {
namespace {

Url parsed(std::string_view text) {
  const Outcome<Url> url = Url::parse(text);
  if (!url) ADD_FAILURE() << text << ": " << url.error().sentence;
  return url ? *url : Url{};
}

std::string complaint(std::string_view text) {
  const Outcome<Url> url = Url::parse(text);
  if (url) {
    ADD_FAILURE() << text << " was taken";
    return {};
  }
  EXPECT_EQ(url.error().kind, Error::Kind::Url);
  return url.error().sentence;
}

TEST(Url, takes_every_part) {
  const Url url = parsed(
      "nfs://server:4049/export/dir?version=3&proto=tcp&fabric=verbs&mountport=635&rsize=65536&"
      "wsize=4096&sec=sys");
  EXPECT_EQ(url.host, "server");
  EXPECT_EQ(url.port, 4049);
  EXPECT_EQ(url.path, "/export/dir");
  EXPECT_EQ(url.protocol, Url::Protocol::Tcp);
  EXPECT_EQ(url.fabric, Url::Fabric::Verbs);
  EXPECT_EQ(url.mount_port, 635);
  EXPECT_EQ(url.read_size, 65536u);
  EXPECT_EQ(url.write_size, 4096u);
}

TEST(Url, means_RDMA_on_its_own_port_unless_told_otherwise) {
  const Url url = parsed("nfs://server/export");
  EXPECT_EQ(url.protocol, Url::Protocol::Rdma);
  EXPECT_EQ(url.fabric, std::nullopt);
  EXPECT_EQ(url.nfs_address(), (Address{"server", 20049}));
  EXPECT_EQ(url.mount_address(), (Address{"server", 2049}));
  EXPECT_EQ(parsed("nfs://server/export?proto=tcp").nfs_address().port, 2049);
}

TEST(Url, finds_MOUNT_by_mountport_then_on_the_TCP_port_of_NFS) {
  EXPECT_EQ(parsed("nfs://s:99/e?proto=tcp").mount_address().port, 99);
  EXPECT_EQ(parsed("nfs://s:99/e?proto=tcp&mountport=7").mount_address().port, 7);
  EXPECT_EQ(parsed("nfs://s:99/e").mount_address().port, 2049);
}

TEST(Url, takes_the_path_byte_for_byte_up_to_the_question_mark) {
  EXPECT_EQ(parsed("nfs://h/a%20b/%3F%25#&=;\xff//c/").path, "/a b/?%#&=;\xff//c/");
  EXPECT_EQ(parsed("nfs://h/%e4%C3").path, "/\xe4\xc3");
  EXPECT_EQ(parsed("nfs://h").path, "/");
  EXPECT_EQ(parsed("nfs://h?proto=tcp").path, "/");
}

TEST(Url, takes_an_IPv6_address_in_brackets) {
  EXPECT_EQ(parsed("nfs://[fe80::1]:7/x").nfs_address(), (Address{"fe80::1", 7}));
  EXPECT_EQ(parsed("nfs://[::1]/x").nfs_address(), (Address{"::1", 20049}));
}

TEST(Url, names_a_version_of_NFS_and_of_version_4_perhaps_a_minor_one) {
  EXPECT_FALSE(parsed("nfs://h/x").version.has_value());
  EXPECT_EQ(parsed("nfs://h/x?version=2").version, 2u);
  EXPECT_EQ(parsed("nfs://h/x?version=4").version, 4u);
  EXPECT_FALSE(parsed("nfs://h/x?version=4").minor.has_value());
  EXPECT_EQ(parsed("nfs://h/x?version=4.1").minor, 1u);
  EXPECT_EQ(parsed("nfs://h/x?version=4.2").version, 4u);
}

TEST(Url, names_a_user_and_a_group_by_number) {
  EXPECT_EQ(parsed("nfs://h/x?uid=0&gid=1000").uid, 0u);
  EXPECT_EQ(parsed("nfs://h/x?uid=0&gid=1000").gid, 1000u);
  EXPECT_FALSE(parsed("nfs://h/x").uid);
  for (const char* text : {"nfs://h/x?uid=-1", "nfs://h/x?uid=4294967295", "nfs://h/x?gid=wheel",
                           "nfs://h/x?uid=5&sec=krb5"})
    EXPECT_FALSE(Url::parse(text).ok()) << text;
}

TEST(Url, has_sizes_with_units) {
  EXPECT_EQ(parsed("nfs://h/x?rsize=64K&wsize=1M").read_size, 65536u);
  EXPECT_EQ(parsed("nfs://h/x?rsize=64K&wsize=1M").write_size, 1u << 20);
  EXPECT_EQ(parsed("nfs://h/x?rsize=64KiB&wsize=0.5M").read_size, 65536u);
  EXPECT_EQ(parsed("nfs://h/x?rsize=64KiB&wsize=0.5M").write_size, 1u << 19);
  EXPECT_EQ(parsed("nfs://h/x?rsize=64KB").read_size, 64'000u);
  EXPECT_FALSE(Url::parse("nfs://h/x?rsize=K").ok());
  EXPECT_FALSE(Url::parse("nfs://h/x?rsize=4096M").ok());
}

TEST(Url, is_distinguished_from_a_local_path) {
  EXPECT_TRUE(Url::looks_like("nfs://h/x"));
  EXPECT_TRUE(Url::looks_like("NFS://h/x"));
  EXPECT_FALSE(Url::looks_like("nfs:/h/x"));
  EXPECT_FALSE(Url::looks_like("/nfs://h"));
  EXPECT_FALSE(Url::looks_like(""));
}

TEST(Url, is_written_so_that_it_can_be_read_again) {
  const Url url = parsed("nfs://[::1]/a%20b%3f%25\xe4");
  EXPECT_EQ(to_string(url), "nfs://[::1]:20049/a%20b%3F%25%E4");
  EXPECT_EQ(parsed(to_string(url)).path, url.path);
}

TEST(Url, takes_the_named_user_at_its_word_unless_told_to_prove_it) {
  EXPECT_EQ(parsed("nfs://h/x").security, Url::Security::Sys);
  EXPECT_EQ(parsed("nfs://h/x?sec=sys").security, Url::Security::Sys);
  EXPECT_EQ(parsed("nfs://h/x?sec=krb5").security, Url::Security::Krb5);
  EXPECT_EQ(parsed("nfs://h/x?sec=krb5i").security, Url::Security::Krb5i);
  EXPECT_EQ(parsed("nfs://h/x?sec=krb5p").security, Url::Security::Krb5p);
}

TEST(Url, says_how_callbacks_come) {
  EXPECT_FALSE(parsed("nfs://h/x").callback);
  EXPECT_FALSE(parsed("nfs://h/x").callbacks_by_tcp);
  EXPECT_TRUE(parsed("nfs://h/x?callback=tcp").callbacks_by_tcp);
  EXPECT_FALSE(parsed("nfs://h/x?callback=tcp").callback);
  EXPECT_EQ(parsed("nfs://h/x?callback=192.0.2.7").callback, (Address{"192.0.2.7", 0}));
  EXPECT_EQ(parsed("nfs://h/x?callback=192.0.2.7:700").callback, (Address{"192.0.2.7", 700}));
  EXPECT_EQ(parsed("nfs://h/x?callback=[::1]:700").callback, (Address{"::1", 700}));
  EXPECT_EQ(parsed("nfs://h/x?callback=[::1]").callback, (Address{"::1", 0}));
  for (const char* text : {"", "host", "::1", "[::1", "[::1]7", "192.0.2.7:", "192.0.2.7:x", "udp"})
    EXPECT_FALSE(Url::parse("nfs://h/x?callback=" + std::string(text)).ok()) << text;
}

TEST(Url, says_how_many_connections_share_the_calls) {
  EXPECT_EQ(parsed("nfs://h/x").connections, 1u);
  EXPECT_EQ(parsed("nfs://h/x?connections=16").connections, 16u);
}

// Of every version: UDP is for MOUNT, NLM and rpcbind only.
TEST(Url, does_not_name_UDP_for_files) {
  PROVES("R8267-6.7.1-d");
  for (const std::string version : {"", "&version=4.1", "&version=4.2"})
    EXPECT_NE(complaint("nfs://h/x?proto=udp" + version).find("use rdma or tcp"),
              std::string::npos);
}

TEST(Url, names_the_part_that_is_wrong) {
  const std::pair<std::string_view, std::string_view> mistakes[] = {
      {"http://h/x", "is no NFS URL"},
      {"nfs:///export", "the host: it is missing"},
      {"nfs://me@h/x", "user names have no place"},
      {"nfs://::1/x", "stands in brackets"},
      {"nfs://[::1/x", "']' is missing"},
      {"nfs://[::1]9/x", "only a port may follow"},
      {"nfs://h:/x", "'' is no port"},
      {"nfs://h:0/x", "'0' is no port"},
      {"nfs://h:65536/x", "'65536' is no port"},
      {"nfs://h:20x/x", "'20x' is no port"},
      {"nfs://h/a%2", "two hexadecimal digits"},
      {"nfs://h/a%zz", "two hexadecimal digits"},
      {"nfs://h/a%00", "zero byte"},
      {"nfs://h/x?version=4.3", "version '4.3' is not in this build"},
      {"nfs://h/x?proto=udp", "use rdma or tcp"},
      {"nfs://h/x?fabric=opa", "use iwarp, verbs or auto"},
      {"nfs://h/x?sec=krb4", "use sys, krb5, krb5i or krb5p"},
      {"nfs://h/x?mountport=-1", "'-1' is no port"},
      {"nfs://h/x?port=2049", "behind the host"},
      {"nfs://h:2049/x?port=rpcbind", "the host has one already"},
      {"nfs://h/x?rpcbindport=0", "'0' is no port"},
      {"nfs://h/x?rsize=0", "'0' is no size"},
      {"nfs://h/x?rsize=2GiB", "'2GiB' is no size"},
      {"nfs://h/x?wsize=1X", "'1X' is no size"},
      {"nfs://h/x?connections=17", "'17' is no number from 1 to 16"},
      {"nfs://h/x?rsize=5&rsize=5", "given twice"},
      {"nfs://h/x?colour=red", "'colour': no such option"},
      {"nfs://h/x?proto", "name=value"},
  };
  for (const auto& [text, part] : mistakes)
    EXPECT_NE(complaint(text).find(part), std::string::npos) << text << ": " << complaint(text);
}

}  // namespace
}  // namespace stag::nfs::client
