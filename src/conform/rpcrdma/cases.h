// Cases of RPC-over-RDMA: messages with a mistake and what they may be answered with (Probe), and
// conversations (functions).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conform/conform.h"
#include "conform/rpcrdma/peer.h"
#include "rpc/credentials.h"

namespace stag::conform::rpcrdma {

using Words = std::vector<std::uint32_t>;

// What the cases of a run share.
struct Context {
  fabric::Fabric& fabric;
  Address server;
  Duration timeout;
  CancelToken cancel;
  rpc::Credentials credentials;
  std::vector<std::string> path;  // of the folder to work in, from the root of version 4.0
  std::string link;               // the name of a symbolic link there; empty: none could be made
  std::uint32_t xid = 0x5a000000;

  std::uint32_t next_xid() { return ++xid; }
};

// What a message may be answered with.
enum class Expect : std::uint8_t {
  ErrVers,   // RDMA_ERROR with ERR_VERS and a range that has 1 in it
  ErrChunk,  // RDMA_ERROR with ERR_CHUNK
  Dropped,   // nothing, and the connection lives
  Lost,      // the connection ends
  Success,   // an RPC Reply, accepted with SUCCESS
  Rejected,  // an RPC Reply with another status, whichever
  // An RPC Reply with this status (RFC 5531 9).
  ProgUnavail,
  ProgMismatch,  // with a range that has version 4, and not kUnservedVersion
  ProcUnavail,
  GarbageArgs,
};

// Of the NFS program.
inline constexpr std::uint32_t kUnservedVersion = 99;

struct Probe {
  // The message, and the words behind it that are cut off: bytes.
  std::function<Words(std::uint32_t xid)> words{};
  std::uint32_t cut_to = 0;  // bytes of the message; 0: all of it
  std::vector<Expect> expect{};
};

struct RdmaCase {
  std::string group{};
  std::string name{};
  std::string section{};       // "8166 4.5.2"
  std::string requirements{};  // "R8166-4.5.2-b"
  Probe probe{};
  std::function<Task<Verdict>(Context&)> run{};  // instead of `probe`
  bool needs_link = false;
  bool dangerous = false;
};
using RdmaCases = std::vector<RdmaCase>;

RdmaCases header_cases();
RdmaCases chunk_list_cases();
RdmaCases connection_cases();
RdmaCases credit_cases();
RdmaCases message_cases();
RdmaCases write_chunk_cases();
RdmaCases read_chunk_cases();
RdmaCases reverse_cases();
RdmaCases callback_cases();

Task<Verdict> perform(const Probe& probe, Context& context);

}  // namespace stag::conform::rpcrdma
