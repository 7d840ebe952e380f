// A name service that has no answer until a test lets it have one: the name of every client is
// "host.example.com" then.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nfs/export/client_names.h"
#include "nfs/export/server_context.h"
#include "testing/held_executor.h"
#include "vfs/vfs.h"

namespace stag::testing {

class SilentNames final : public nfs::HostNameService,
                          public std::enable_shared_from_this<SilentNames> {
 public:
  Texts names_of(const std::string& address) override {
    address_ = address;
    if (!answers) return Failure{NoAnswer{}};
    return std::vector<std::string>{"host.example.com"};
  }
  Texts addresses_of(const std::string&) override { return std::vector{address_}; }
  Result<std::string, NoAnswer> domain() override { return std::string(); }
  Result<bool, NoAnswer> is_member(const std::string&, const std::string&) override {
    return false;
  }
  Result<bool, NoAnswer> has_netgroup(const std::string&) override { return false; }

  // /data of a server is open to hosts of example.com from now on, and to nobody else.
  void open_to_names(nfs::ServerContext& context, std::shared_ptr<vfs::FileSystem> store) {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::ExportSpec spec{"/data", std::move(store), {}};
    spec.clients = {*nfs::make_client_rule("*.example.com", open)};
    spec.clients[0].names = std::make_shared<nfs::ClientNames>(
        shared_from_this(), std::make_shared<HeldExecutor>(true));
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, std::move(spec)).ok());
    context.exports.replace(std::move(exports));
  }

  bool answers = false;

 private:
  std::string address_;
};

}  // namespace stag::testing
