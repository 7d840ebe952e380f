// The cases of RPC-over-RDMA version 1 (RFC 8166, 8797, 8167), against NFS version 4 at a port of
// RPC-over-RDMA. What needs COMPOUNDs uses version 4.0, which needs no session.
#pragma once

#include <memory>

#include "conform/rpcrdma/cases.h"

namespace stag::conform::rpcrdma {

struct SuiteOptions {
  Address server{};
  std::vector<std::string> path{};  // of the folder to work in, from the server's root
  rpc::Credentials credentials{};
  Duration timeout = std::chrono::seconds(10);
  std::string label{};  // unique: the name of the symbolic link that is made there
};

// `fabric` outlives it.
std::unique_ptr<conform::Suite> make_suite(fabric::Fabric& fabric, SuiteOptions options,
                                           CancelToken cancel);

}  // namespace stag::conform::rpcrdma
