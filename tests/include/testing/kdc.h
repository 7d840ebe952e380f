// A Kerberos realm of this process: a KDC on a loopback port, with a server's keytab and a
// client's, and the environment that leads MIT's library to it. Needs Debian's krb5-kdc,
// krb5-admin-server and krb5-user.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/check.h"

namespace stag::testing {

class Kdc {
 public:
  static constexpr const char* kRealm = "EXAMPLE.ORG";
  static constexpr const char* kHost = "server.example.org";

  // Whether the programs are installed.
  static bool available() {
    return std::filesystem::exists("/usr/sbin/krb5kdc") &&
           std::filesystem::exists("/usr/sbin/kadmin.local") &&
           std::filesystem::exists("/usr/bin/kinit");
  }

  Kdc() {
    char pattern[] = "/tmp/stag-kdc-XXXXXX";
    folder_ = mkdtemp(pattern);
    const std::string port = std::to_string(free_port());
    write("krb5.conf",
          "[libdefaults]\n default_realm = EXAMPLE.ORG\n dns_lookup_kdc = false\n"
          " dns_lookup_realm = false\n dns_canonicalize_hostname = false\n rdns = false\n"
          "[realms]\n EXAMPLE.ORG = {\n  kdc = 127.0.0.1:" +
              port +
              "\n }\n"
              "[domain_realm]\n .example.org = EXAMPLE.ORG\n .elsewhere.org = ELSEWHERE.ORG\n");
    write("kdc.conf", "[kdcdefaults]\n kdc_listen = 127.0.0.1:" + port +
                          "\n kdc_tcp_listen = 127.0.0.1:" + port +
                          "\n[realms]\n EXAMPLE.ORG = {\n  database_name = " + path("db") +
                          "\n  key_stash_file = " + path("stash") + "\n  acl_file = " +
                          path("acl") + "\n }\n[logging]\n kdc = FILE:" + path("kdc.log") + "\n");
    setenv("KRB5_CONFIG", path("krb5.conf").c_str(), 1);
    setenv("KRB5_KDC_PROFILE", path("kdc.conf").c_str(), 1);
    setenv("KRB5CCNAME", ("FILE:" + path("ccache")).c_str(), 1);
    setenv("KRB5_KTNAME", ("FILE:" + path("none.keytab")).c_str(), 1);
    setenv("KRB5_CLIENT_KTNAME", ("FILE:" + path("none.keytab")).c_str(), 1);
    setenv("KRB5RCACHENAME", "none:", 1);
    run("/usr/sbin/kdb5_util create -s -P master");
    kadmin("addprinc -randkey nfs/" + std::string(kHost));
    kadmin("ktadd -k " + path("server.keytab") + " nfs/" + kHost);
    kadmin("addprinc -randkey alice");
    kadmin("ktadd -k " + path("client.keytab") + " alice");
    // It returns when it listens, goes on by itself, and then writes who it is.
    run("/usr/sbin/krb5kdc -P " + path("kdc.pid"));
    while (!(std::ifstream(path("kdc.pid")) >> pid_)) std::this_thread::yield();
  }
  Kdc(const Kdc&) = delete;
  Kdc& operator=(const Kdc&) = delete;
  ~Kdc() {
    if (pid_ > 1) kill(pid_, SIGTERM);
    std::filesystem::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string server_keytab() const { return path("server.keytab"); }
  std::string client_keytab() const { return path("client.keytab"); }
  void kadmin(const std::string& query) const { run("/usr/sbin/kadmin.local -q '" + query + "'"); }
  // A ticket for alice in `ccache`.
  void kinit(const std::string& ccache, const std::string& options = "") const {
    run("/usr/bin/kinit -k -t " + client_keytab() + " -c " + ccache + " " + options + " alice");
  }

 private:
  static std::uint16_t free_port() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    STAG_CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0);
    STAG_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    close(fd);
    return ntohs(address.sin_port);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  void run(const std::string& command) const {
    const std::string whole = command + " >> " + path("log") + " 2>&1";
    STAG_CHECK(std::system(whole.c_str()) == 0);
  }

  std::string folder_;
  pid_t pid_ = 0;
};

}  // namespace stag::testing
