// Clients and Files of one server, a time that only the test moves, and clients that behave.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "nfs/state/clients.h"
#include "nfs/state/files.h"

namespace stag::nfs::state::testing {

struct Client {
  ClientId id = 0;
  SessionId session{};
  LifePtr life;
};

struct StoredReply : Reply {
  explicit StoredReply(int of) : number(of) {}
  const int number;
};

class World {
 public:
  explicit World(std::uint32_t epoch = 1, const ClientLimits& client_limits = {},
                 const StateLimits& state_limits = {})
      : clients({.epoch = epoch, .lease = lease, .limits = client_limits}),
        files({.epoch = epoch, .key = {}, .limits = state_limits, .grace = grace}) {}

  static constexpr Duration lease = std::chrono::seconds(90);
  TimePoint now = TimePoint() + std::chrono::hours(1);
  std::shared_ptr<GracePeriod> grace = std::make_shared<GracePeriod>();
  Clients clients;
  Files files;

  static ChannelAttributes wanted(std::uint32_t slots = 64) {
    return {0, 1 << 20, 1 << 20, 2048, 16, slots};
  }
  static FileKey file(std::uint64_t number) {
    return {7, *vfs::Handle::from(std::as_bytes(std::span(&number, 1)))};
  }

  ExchangeIdResult exchange_id(std::string_view owner, int verifier = 1,
                               std::string_view principal = "root", bool update = false,
                               std::string_view address = "192.0.2.1") {
    ExchangeIdArgs args;
    args.co_ownerid = bytes_of(owner);
    args.co_verifier[0] = static_cast<std::byte>(verifier);
    args.principal = bytes_of(principal);
    args.address = address;
    args.update = update;
    return clients.exchange_id(args, now);
  }
  static CreateSessionArgs session_args(ClientId id, SequenceId sequence) {
    CreateSessionArgs args;
    args.clientid = id;
    args.sequence = sequence;
    args.principal = bytes_of("root");
    args.fore = wanted();
    args.back = {0, 4096, 4096, 0, 2, 16};
    return args;
  }
  CreateSessionResult create_session(ClientId id, SequenceId sequence) {
    return clients.create_session(session_args(id, sequence), now);
  }
  // With a session; it may still reclaim.
  Client fresh_client(std::string_view owner, std::string_view address = "192.0.2.1") {
    const ExchangeIdResult exchanged = exchange_id(owner, 1, "root", false, address);
    const CreateSessionResult session = create_session(exchanged.clientid, exchanged.sequenceid);
    EXPECT_EQ(session.status, Status::Ok);
    return {exchanged.clientid, session.sessionid, session.life};
  }
  Client client(std::string_view owner, std::string_view address = "192.0.2.1") {
    Client made = fresh_client(owner, address);
    if (made.life != nullptr) clients.reclaim_complete(*made.life);
    return made;
  }

  static SequenceArgs sequence_args(const SessionId& session, std::uint32_t slot,
                                    SequenceId number) {
    SequenceArgs args;
    args.sessionid = session;
    args.slotid = slot;
    args.sequenceid = number;
    args.operations = 2;
    args.request_size = 200;
    return args;
  }
  Sequenced sequence(const SessionId& session, std::uint32_t slot, SequenceId number,
                     std::uint64_t fingerprint = 0) {
    SequenceArgs args = sequence_args(session, slot, number);
    args.fingerprint = {0, fingerprint};
    return clients.sequence(args, now);
  }
  void finish(const Sequenced& running, ReplyPtr reply = nullptr) {
    clients.finished(running.slot, running.life, std::move(reply), now);
  }
  bool run(const Client& client, std::uint32_t slot, SequenceId number) {
    const Sequenced running = sequence(client.session, slot, number);
    if (running.kind != Sequenced::Kind::Run) return false;
    finish(running, std::make_shared<StoredReply>(static_cast<int>(number)));
    return true;
  }

  OpenResult open(const Client& client, std::uint64_t number, std::uint32_t access = kShareBoth,
                  std::uint32_t deny = 0, std::string_view owner = "owner") {
    return files.open({file(number), bytes_of(owner), access, deny, false}, client.life);
  }
  // The first lock of an owner.
  LockResult lock(const Client& client, std::uint64_t number, const Stateid& open, Range range,
                  bool exclusive, std::string_view owner = "locker") {
    return files.lock({file(number), range, exclusive, false, true, open, bytes_of(owner)},
                      client.life);
  }
  LockResult lock_more(const Client& client, std::uint64_t number, const Stateid& stateid,
                       Range range, bool exclusive) {
    return files.lock({file(number), range, exclusive, false, false, stateid, {}}, client.life);
  }
};

}  // namespace stag::nfs::state::testing
