// Client: one client of NFSv4 as a case uses it: a client ID, and from minor version 1 on a session
// whose slot 0 carries one COMPOUND at a time. It repairs nothing: what comes is what a case sees.
//
// Thread: the Channel's loop. The Channel outlives it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "conform/conform.h"
#include "conform/nfs4/callbacks.h"
#include "nfs/proto/nfs4.h"
#include "rpc/client.h"

namespace stag::conform::nfs4 {

using Op = v4::nfs_argop4;
using OpResult = v4::nfs_resop4;
using Operations = std::vector<Op>;

Op op(v4::nfs_opnum4 number);
// The arguments of an operation: op(OP_PUTFH, &Op::opputfh, {handle}).
template <class Args>
Op op(v4::nfs_opnum4 number, Args& (Op::*arguments)(), std::type_identity_t<Args> value) {
  Op made = op(number);
  (made.*arguments)() = std::move(value);
  return made;
}
// "LOOKUP".
std::string name_of(v4::nfs_opnum4 number);
// "NFS4ERR_NOENT"; a number that has no name as a number.
std::string name_of(v4::nfsstat4 status);

// What came for a COMPOUND.
struct Reply {
  std::optional<rpc::CallError> error{};  // there are no results
  std::string foreign{};                  // they are not those of this COMPOUND: why not
  v4::COMPOUND4res results{v4::NFS4ERR_SERVERFAULT, {}, {}};

  // RFC 5531: the server could not decode the arguments.
  bool garbage() const;
  // Nothing came within the time.
  bool silent() const;
  bool answered() const { return !error && foreign.empty(); }
  bool ok() const { return answered() && results.status == v4::NFS4_OK; }
  // In words: "NFS4ERR_NOENT", "no answer: ...".
  std::string text() const;
};

struct ClientOptions {
  std::uint32_t minor = 1;
  std::string owner{};  // of the client ID; unique
  rpc::Credentials credentials{};
  Duration timeout = std::chrono::seconds(10);  // of one COMPOUND
  CancelToken cancel{};
  // Answers the requests of the server on the connections of the Channel; and whether the
  // session's connection carries those (minor version 1 on).
  Callbacks* callbacks = nullptr;
  bool called_back = false;
  // Makes a place where a client of version 4.0 is called back; none: it cannot be.
  MakeCallbackPlace make_place{};
  // The place that a server is told of; null: none.
  CallbackPlace* place = nullptr;
  // Told now and then, by cases that wait for a lease to run out, how long that may still take.
  std::function<void(std::chrono::seconds left)> on_wait{};
};

// Changes the encoded arguments of a COMPOUND.
using Alteration = std::function<void(std::vector<std::byte>&)>;

class Client {
 public:
  Client(rpc::Channel& channel, ClientOptions options);

  // As they are, with nothing before them.
  Task<Reply> bare(std::vector<Op> operations, const rpc::Credentials* credentials = nullptr);
  Task<Reply> compound(v4::COMPOUND4args args, const rpc::Credentials* credentials = nullptr);
  // The bytes behind the RPC header.
  Task<Reply> raw(std::vector<std::byte> arguments);

  // Makes a new client ID and a session; a sentence why that failed, or nothing.
  Task<std::string> establish();
  // Another session of the client ID is the one that is used from now on.
  void adopt(const v4::CREATE_SESSION4resok& session);
  // OK if the client ID and the session still live.
  Task<Reply> renew();
  Task<bool> alive();
  // Gives them back.
  Task<void> leave();

  // With a SEQUENCE before them, whose result is taken off when it is NFS4_OK.
  Task<Reply> run(std::vector<Op> operations, const rpc::Credentials* credentials = nullptr);
  // The same with other bytes than those of its arguments.
  Task<Reply> run_altered(const std::vector<Op>& operations, Alteration alter);

  // SEQUENCE of the next COMPOUND in the session.
  v4::SEQUENCE4args sequence() const;
  // To be called with what came for a COMPOUND that began with sequence().
  void note(const Reply& reply);
  v4::CREATE_SESSION4args session_args() const;
  v4::EXCHANGE_ID4args owner_args() const;
  v4::SETCLIENTID4args owner_args_v40() const;

  std::uint32_t minor() const { return options_.minor; }
  const ClientOptions& options() const { return options_; }
  v4::clientid4 clientid() const { return clientid_; }
  const v4::CREATE_SESSION4resok& session() const { return session_; }
  rpc::Channel& channel() const { return channel_; }

 private:
  rpc::CallOptions call_options(const rpc::Credentials* credentials) const;
  Task<std::string> establish_v40();
  Task<std::string> establish_session();
  // Whether the server let go of the client ID.
  Task<bool> destroyed();
  void take_off_sequence(Reply& reply);

  rpc::Channel& channel_;
  ClientOptions options_;
  rpc::Client rpc_;
  v4::verifier4 verifier_{};
  v4::clientid4 clientid_ = 0;
  v4::sequenceid4 create_sequence_ = 0;
  v4::CREATE_SESSION4resok session_{};
  v4::sequenceid4 sequenceid_ = 1;  // of slot 0
};

}  // namespace stag::conform::nfs4
