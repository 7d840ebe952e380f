// A name service in which every address is that of "host.example.com".
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "nfs/export/client_names.h"
#include "nfs/export/exports.h"

namespace stag::testing {

class OneName final : public nfs::HostNameService {
 public:
  Texts names_of(const std::string& address) override {
    address_ = address;
    return std::vector<std::string>{"host.example.com"};
  }
  Texts addresses_of(const std::string&) override { return std::vector{address_}; }
  Result<std::string, NoAnswer> domain() override { return std::string(); }
  Result<bool, NoAnswer> is_member(const std::string&, const std::string&) override {
    return false;
  }
  Result<bool, NoAnswer> has_netgroup(const std::string&) override { return false; }

 private:
  std::string address_;
};

// Open to that host, whose name `worker` asks for.
inline nfs::ClientRule rule_by_name(const nfs::ExportOptions& options,
                                    std::shared_ptr<Executor> worker) {
  nfs::ClientRule rule = *nfs::make_client_rule("*.example.com", options);
  rule.names = std::make_shared<nfs::ClientNames>(std::make_shared<OneName>(), std::move(worker));
  return rule;
}

}  // namespace stag::testing
