// Very many connections of one client that have made a call each and then do nothing.
#pragma once

#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "bench/load/sample.h"
#include "endpoint/connector.h"
#include "endpoint/loops.h"

namespace stag::bench {

class Crowd {
 public:
  // An RPC-over-RDMA port that serves NFS.
  explicit Crowd(Address server);
  ~Crowd();
  Crowd(const Crowd&) = delete;

  // Blocks until `count` more connections are up and each has had an answer. Fails with a sentence.
  Result<Ok, std::string> grow(std::size_t count);
  // Nanoseconds of a NULL call on connection `index`; 0 when it failed.
  std::uint64_t knock(std::size_t index);

 private:
  Task<void> join(std::size_t index);
  Task<Ok> join_all(std::size_t from);
  Task<Ok> close();
  Task<bool> ping(rpc::Channel& channel);

  const Address server_;
  endpoint::Loops loops_;
  std::unique_ptr<rpc::Connector> connector_;
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  std::string trouble_;
};

// Of the memory that the process has, in bytes.
std::uint64_t resident_bytes_of(pid_t pid);

}  // namespace stag::bench
