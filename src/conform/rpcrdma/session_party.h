// SessionParty: a client of NFS version 4.1 on one connection, message by message, that can be
// called in the reverse direction (RFC 8881 2.10.3, RFC 8167).
//
// Thread: the fabric's loop. The Context outlives it; it is ended before it is destroyed: leave().
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conform/rpcrdma/talk.h"

namespace stag::conform::rpcrdma {

// What the server has called.
struct ServerCall {
  std::uint32_t xid = 0;
  std::optional<v4::CB_COMPOUND4args> compound{};  // nullopt: CB_NULL
  std::string complaint{};                         // about its header, or nothing

  // The arguments of CB_RECALL behind CB_SEQUENCE, else null.
  const v4::CB_RECALL4args* recall() const;
};

class SessionParty {
 public:
  SessionParty(Context& context, std::string owner) : context_(context), owner_(std::move(owner)) {}

  // Connects, and makes a session; with `callback_slots` the server may call on this connection, as
  // many Calls at once. A sentence about what failed, or nothing.
  Task<std::string> establish(std::uint32_t callback_slots);
  // The credits of answers to the server's Calls.
  void grant(std::uint32_t credits) { granted_ = credits; }
  // Ends the connection, and what was called on it is forgotten.
  Task<void> disconnect();
  // A new one, on which the session goes on without callbacks. A sentence about what failed, or
  // nothing.
  Task<std::string> reconnect();
  // Whether the server said that it calls on this connection.
  bool is_called() const { return called_; }

  using Operations = std::vector<v4::nfs_argop4>;
  struct Sent {
    std::uint32_t xid = 0;
    v4::COMPOUND4args args{};
  };
  // Behind a SEQUENCE.
  Sent send(Operations operations);
  // The results, without SEQUENCE's; what the server calls meanwhile is kept. NFS4ERR_SERVERFAULT
  // without results: none came, or others than those of the Call.
  Task<v4::COMPOUND4res> results_of(Sent sent);
  Task<v4::COMPOUND4res> run(Operations operations);
  // The next Call of the server; nullopt: none came within the time.
  Task<std::optional<ServerCall>> next_call();
  // Those that have come and nobody has taken.
  std::vector<ServerCall> take_calls();
  // A CB_COMPOUND succeeds in all that it asks for.
  void answer(const ServerCall& call) { answer(call, call.xid); }
  void answer(const ServerCall& call, std::uint32_t xid);
  // RDMA_ERROR.
  void refuse(const ServerCall& call, wire::rpc_rdma_errcode code);
  // Whether a NULL call is answered.
  Task<bool> alive();
  // Gives session and client ID back, and ends the connection.
  Task<void> leave();

  v4::clientid4 clientid() const { return clientid_; }

 private:
  static constexpr int kMessages = 64;

  Sent send_bare(Operations operations);
  Task<v4::COMPOUND4res> bare(Operations operations);
  Task<Answer> answer_to(std::uint32_t xid);
  void keep(const Answer& message);
  std::string complaint_about(const Answer& message, const oncrpc::CallHeader& call);

  Context& context_;
  const std::string owner_;
  std::unique_ptr<Peer> peer_;
  v4::clientid4 clientid_ = 0;
  v4::sessionid4 session_{};
  std::uint32_t sequenceid_ = 0;
  bool called_ = false;
  std::uint32_t granted_ = 4;
  std::deque<ServerCall> calls_;
  std::set<std::uint32_t> xids_;  // of what the server has called
};

}  // namespace stag::conform::rpcrdma
