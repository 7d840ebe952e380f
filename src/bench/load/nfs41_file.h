// Nfs41File: a file that is open on a server of NFS version 4.1, with the client ID and the session
// that this takes. A requester to measure with, not a client: it reclaims nothing, answers no
// callback, and renews its lease only by its calls.
//
// An operation is one COMPOUND of SEQUENCE, PUTFH and the operation, in a slot of its own, and
// takes nothing from the heap.
//
// Thread: the loop of the Channel.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/eventual.h"
#include "base/result.h"
#include "base/task.h"
#include "rpc/channel.h"
#include "rpc/credentials.h"

namespace stag::bench {

class Nfs41File {
 public:
  // The operations that may be in flight, where the server grants as many slots.
  static constexpr std::uint32_t kSlots = 64;

  Nfs41File();
  ~Nfs41File();

  // Once, before anything else: makes a client and a session and opens the file `name` of the root
  // directory for reading and writing. `channel` outlives this. Fails with a sentence.
  Task<Result<Ok, std::string>> open(rpc::Channel& channel, rpc::Credentials credentials,
                                     std::string name);

  // False: trouble() says why. Reading or writing fewer bytes than asked for is a failure.
  Eventual<bool> getattr();
  Task<bool> read(std::uint64_t offset, MutableBytes memory);
  Task<bool> write(std::uint64_t offset, Bytes data);
  const std::string& trouble() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stag::bench
