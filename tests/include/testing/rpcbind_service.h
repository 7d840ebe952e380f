// An rpcbind in memory, which behaves as Debian's does: one address for each program, version and
// netid, GETADDR by the transport that the question came by, and UNSET by the owner only.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "rpc/server.h"
#include "rpcbind/rpcbind.h"
#include "rpcbind/universal_address.h"

namespace stag::testing {

class RpcbindService {
 public:
  using Entries = std::vector<rpcbind::rpcb>;

  // The calling user; UNSET takes only what this one registered.
  std::string caller = "me";

  void put(std::uint32_t program, std::uint32_t version, std::string netid, std::string address,
           std::string owner = "somebody") {
    rpcbind::rpcb entry;
    entry.r_prog = program;
    entry.r_vers = version;
    entry.r_netid = std::move(netid);
    entry.r_addr = std::move(address);
    entry.r_owner = std::move(owner);
    entries_.push_back(std::move(entry));
  }
  // "100003 3 rdma 0.0.0.0.78.81", in the order of registration.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const rpcbind::rpcb& e : entries_)
      all.push_back(std::to_string(e.r_prog) + " " + std::to_string(e.r_vers) + " " + e.r_netid +
                    " " + e.r_addr);
    return all;
  }

  void serve_version_4(rpc::Server& server) {
    server.add<rpcbind::RPCBPROC_SET>(
        [this](rpc::CallContext&, rpcbind::rpcb entry) { return answer(set(std::move(entry))); });
    server.add<rpcbind::RPCBPROC_UNSET>(
        [this](rpc::CallContext&, rpcbind::rpcb entry) { return answer(unset(entry)); });
    server.add<rpcbind::RPCBPROC_GETADDR>(
        [this](rpc::CallContext& call, rpcbind::rpcb entry) { return answer(find(call, entry)); });
    server.add<rpcbind::RPCBPROC_DUMP>(
        [this](rpc::CallContext&, xdr::Void) { return answer(dump()); });
  }
  void serve_version_3(rpc::Server& server, bool with_list = true) {
    server.add<rpcbind::RPCB3PROC_GETADDR>(
        [this](rpc::CallContext& call, rpcbind::rpcb entry) { return answer(find(call, entry)); });
    if (!with_list) return;
    server.add<rpcbind::RPCB3PROC_DUMP>(
        [this](rpc::CallContext&, xdr::Void) { return answer(dump()); });
  }
  void serve_version_2(rpc::Server& server) {
    server.add<rpcbind::PMAPPROC_GETPORT>(
        [this](rpc::CallContext&, rpcbind::mapping asked) { return answer(port_of(asked)); });
  }

 private:
  template <class T>
  static Task<T> answer(T value) {
    co_return value;
  }
  static bool same_place(const rpcbind::rpcb& a, const rpcbind::rpcb& b) {
    return a.r_prog == b.r_prog && a.r_vers == b.r_vers && a.r_netid == b.r_netid;
  }
  bool set(rpcbind::rpcb entry) {
    for (const rpcbind::rpcb& there : entries_)
      if (same_place(there, entry)) return there.r_addr == entry.r_addr;
    entry.r_owner = caller;
    entries_.push_back(std::move(entry));
    return true;
  }
  bool unset(const rpcbind::rpcb& entry) {
    return std::erase_if(entries_, [&](const rpcbind::rpcb& there) {
             return same_place(there, entry) && there.r_owner == caller;
           }) > 0;
  }
  std::string find(rpc::CallContext& call, const rpcbind::rpcb& asked) {
    for (const rpcbind::rpcb& there : entries_)
      if (there.r_prog == asked.r_prog && there.r_netid == call.origin().netid) return there.r_addr;
    return {};
  }
  rpcbind::rpcblist_ptr dump() const {
    rpcbind::rpcblist_ptr list;
    for (const rpcbind::rpcb& there : entries_) list.push_back({there});
    return list;
  }
  std::uint32_t port_of(const rpcbind::mapping& asked) const {
    const std::string_view netid = asked.prot == rpcbind::IPPROTO_TCP ? "tcp" : "udp";
    for (const rpcbind::rpcb& there : entries_)
      if (there.r_prog == asked.prog && there.r_vers == asked.vers && there.r_netid == netid)
        return rpcbind::from_universal(there.r_addr)->port;
    return 0;
  }

  Entries entries_;
};

}  // namespace stag::testing
