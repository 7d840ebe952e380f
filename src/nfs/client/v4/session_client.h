// SessionClient: one client of a server of NFS version 4, which all FileSystems of a mount share:
// it makes and keeps what nfs/session says there must be, gives each COMPOUND a slot, and repeats
// what the server could not do yet or had lost the session of.
//
// Version 4.0 has no session: its COMPOUNDs go as they are, and those that open make a client ID
// first; opens and locks are numbered by their owners (session_client_v40.cc).
//
// The time limit of an operation counts what it waits for before it is sent: a slot, the turn of an
// owner, a connection to be bound, recovery. It begins anew when the server answers anything: of
// one that is silent all operations end when the first one does, and one that is slow is waited
// for.
//
// A call that has no answer (cancelled, timed out, refused by the transport) leaves its slot in
// doubt; whoever takes that slot next settles it first (RFC 8267 section 6.6).
//
// The session is made, bound to connections and ended with the machine credential, which is that of
// the options that the client was made with. Where it has integrity the server is asked to take it
// from nobody else (RFC 8881 section 2.10.8.3; binding.cc).
//
// While opens are held it renews the lease, and so hears of a restart of the server in time to
// claim them again (held.cc, nfs/session/opens.h).
//
// Thread: the Channel's loop. The Channel outlives it; close() is awaited before the Channel's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/task_group.h"
#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/options.h"
#include "nfs/client/protocol/protocol.h"
#include "nfs/client/v4/callback_service.h"
#include "nfs/client/v4/callback_service_v40.h"
#include "nfs/client/v4/delegations.h"
#include "nfs/client/v4/exchange.h"
#include "nfs/client/v4/lock_turns.h"
#include "nfs/client/v4/offloads.h"
#include "nfs/client/v4/operations.h"
#include "nfs/client/v4/owners_v40.h"
#include "nfs/client/v4/places.h"
#include "nfs/client/v4/wait_list.h"
#include "nfs/session/client_v40.h"
#include "nfs/session/opens.h"
#include "nfs/session/session.h"
#include "rpc/client.h"

namespace stag::nfs::client {
class JukeboxRetry;
}  // namespace stag::nfs::client

namespace stag::nfs::session {

// Null where an Opener is asked for: with the credentials that the client was made with.
struct Opener {
  rpc::Credentials credentials;
};

}  // namespace stag::nfs::session

namespace stag::nfs::client::nfs4 {

// Services for what a server asks of its client, by version; null: there is none, and nothing is
// delegated.
struct Callbacks {
  CallbackService* sessions = nullptr;      // of 4.1 and 4.2
  CallbackServiceV40* listening = nullptr;  // of 4.0, where the client listens
  // A connection of its own for those of `sessions`, which outlives the client; null: they come on
  // the connection of the session.
  rpc::Channel* back = nullptr;
};

class SessionClient final : private Recalled {
 public:
  // `callbacks` outlive this.
  SessionClient(rpc::Channel& channel, const ProtocolOptions& options, std::uint32_t minor,
                Callbacks callbacks = {});
  ~SessionClient();
  SessionClient(const SessionClient&) = delete;
  SessionClient& operator=(const SessionClient&) = delete;

  // Runs a COMPOUND and yields its results, which are those of a success. `request` and what it
  // refers to outlive the Task.
  Task<Outcome<Reply>> run(OperationContext context, Request& request,
                           const ProtocolOptions& options);
  class Run;  // run.h
  // Makes client ID and session, as run() does where there are none. With
  // NFS4ERR_MINOR_VERS_MISMATCH, minor_refused() is true after the failure.
  Task<Outcome<Ok>> establish(OperationContext context, const ProtocolOptions& options);
  bool minor_refused() const { return minor_refused_; }

  // Opens that are held, with their locks. hold() takes one that the server has granted under the
  // name of fresh_number().
  session::Opens& opens() { return opens_; }
  void hold(session::Opens::Id id, const Handle& file, std::uint32_t access,
            const v4::stateid4& stateid, std::shared_ptr<const session::Opener> opener);
  std::uint64_t fresh_number() { return next_number_++; }
  // OPEN was refused, or lost.
  void on_not_opened(session::Opens::Id id) { owners_.release(id); }
  // There is no lock there any more, whatever the server says.
  void on_unlock(session::Opens::Id id, const session::Opens::LockOwner& owner,
                 const state::Range& range);
  // The user that opens files with these credentials.
  std::shared_ptr<const session::Opener> opener_of(const rpc::Credentials& credentials) const;
  // Owners of locks, and until nothing of this one is in doubt.
  LockTurns& lock_turns() { return lock_turns_; }
  Task<Outcome<Ok>> locks_settled(OperationContext context, session::Opens::LockOwner owner,
                                  const ProtocolOptions& options);
  // Of version 4.0, which opens files by name.
  Places& places() { return places_; }
  // Gives locks and open back. An open whose CLOSE had no answer is forgotten, or kept for another
  // CLOSE, as is one for which memory ran out here.
  enum class Unheard : std::uint8_t { Forgotten, Kept };
  Task<Outcome<Ok>> close_open(OperationContext context, File file, const ProtocolOptions& options,
                               Unheard unheard = Unheard::Forgotten);

  // Delegations (delegating.cc). Whether one is wanted with an open, and what
  // OPEN gave.
  Delegations& delegations() { return delegations_; }
  bool wants_delegations() const;
  // Whether the lease has run out: what is delegated says nothing about the file then.
  bool lapsed() const;
  // Whether these are the credentials that the client was made with: what the server delegates, it
  // delegates to their user.
  bool is_own(const rpc::Credentials& credentials) const;
  void take_delegation(const File& file, const Attributes& attributes, std::uint64_t as_of,
                       std::uint64_t change, const v4::open_delegation4& given);
  // Of an OPEN that asked for none.
  void decline_delegation(const Handle& file, const v4::open_delegation4& given);
  // In the background: what a delegation promises about this file holds no more.
  void give_back_of(const Handle& file);
  void set_flush(Protocol::Flush flush) { flush_ = std::move(flush); }

  // Copies that the server goes on with, and whether it can tell of their end.
  Offloads& offloads() { return offloads_; }
  bool hears_of_copies() const;

  // A connection that calls go by.
  struct Connection {
    rpc::Channel* channel = nullptr;  // outlives this
    bool called_back = true;          // the callbacks that come by it are served
  };
  // Whether `other`, which the Channel's calls may go by from now on, leads to the same server as
  // `first`, by which they went so far.
  Task<bool> join(rpc::Channel& first, Connection other, ProtocolOptions options);
  // Gives opens, session and client ID back; no call is in progress.
  Task<void> close();

  std::uint32_t minor() const { return minor_; }
  // Of session and lease; before establish() nothing is granted.
  const session::Session& session() const { return session_; }
  session::Session& session() { return session_; }
  rpc::Channel& channel() const { return rpc_.channel(); }
  // Of an exclusive creation (RFC 8881 18.16.3): unlike that of any other.
  v4::verifier4 fresh_verifier();

 private:
  using Turn = session::Slots::Turn;
  using Fate = session::Fate;
  // What came of a Request that was sent; its results are in it.
  struct Attempt {
    Fate fate = Fate::Broken;
    v4::nfsstat4 status = v4::NFS4_OK;
  };

  // A turn that somebody has. One whose call ends in an exception, for want of memory, is settled
  // as one whose answer was lost; the slot would be taken for ever.
  class HeldTurn {
   public:
    HeldTurn() = default;
    HeldTurn(SessionClient& client, const Turn& turn) : client_(&client), turn_(turn) {}
    HeldTurn(HeldTurn&& other) noexcept
        : client_(std::exchange(other.client_, nullptr)), turn_(other.turn_) {}
    HeldTurn& operator=(HeldTurn&&) = delete;
    ~HeldTurn();
    bool has_turn() const { return client_ != nullptr; }
    Turn& turn() { return turn_; }
    // Its number is accounted for.
    void release() { client_ = nullptr; }

   private:
    SessionClient* client_ = nullptr;
    Turn turn_;
  };

  // Whether it is the answer to this operation.
  static bool counts(const Outcome<Attempt>& came, const Request& request);
  HeldTurn turn_at_once(Request& request);
  void note_run(const Request& request, bool changes, bool answered);
  Task<Outcome<Attempt>> attempt(OperationContext context, Request& request,
                                 const ProtocolOptions& options);
  Task<Outcome<Attempt>> try_again(Attempt tried, OperationContext context, Request& request,
                                   const ProtocolOptions& options);
  // Without a session.
  Task<Outcome<Attempt>> send(OperationContext context, Request& request, rpc::CallOptions call);
  // In a turn that is certain. send_in() begins with the exchange, send_again_in() is for a turn
  // whose call came to Fate::Unbound or Fate::Busy.
  Exchange exchange_in(const Turn& turn, Request& request, const rpc::CallOptions& call) {
    const v4::SEQUENCE4args sequence = session_.sequence(turn, request.runs_once_only());
    return Exchange(rpc_, minor_, &sequence, request, call);
  }
  Outcome<Attempt> ended(const OperationContext& context, HeldTurn& held, Request& request,
                         Exchange& exchange, Result<rpc::ReplyMessage, rpc::CallError>& reply);
  Task<Outcome<Attempt>> send_in(HeldTurn held, OperationContext context, Request& request,
                                 const ProtocolOptions& options);
  Task<Outcome<Attempt>> send_again_in(Fate fate, HeldTurn held, OperationContext context,
                                       Request& request, const ProtocolOptions& options);
  Failure<Error> leave_busy(HeldTurn& held, OperationContext context, Request& request,
                            const ProtocolOptions& options);
  // Of one operation, at kAlone, that needs no session.
  static constexpr std::size_t kAlone = 1;
  Task<Outcome<Attempt>> alone(OperationContext context, Request& request, rpc::CallOptions call);
  // The same by one of the connections.
  Task<Outcome<Attempt>> alone_by(rpc::Channel& connection, OperationContext context,
                                  Request& request, rpc::CallOptions call);
  Outcome<Attempt> attempt_of(const OperationContext& context, const Request& request,
                              const std::optional<rpc::CallError>& fault);
  // The time limit (time_limit.cc).
  class TimeLimit;
  void begin_to_wait(OperationContext& context) const;
  TimePoint end_of(const OperationContext& context, const ProtocolOptions& options) const;
  rpc::CallOptions call_options(const OperationContext& context,
                                const ProtocolOptions& options) const;
  rpc::CallOptions call_options(const OperationContext& context, const Request& request,
                                const ProtocolOptions& options) const;
  // Until it is woken, `done` is pulled, or it is `latest`, and may look again. An error: it was
  // cancelled, or its time is over.
  Task<Outcome<Ok>> wait_in(WaitList& list, OperationContext context,
                            const ProtocolOptions& options, CancelToken done = {},
                            TimePoint latest = TimePoint::max());
  void note_results(const Turn& turn, const Request& request, Outcome<Attempt>& came,
                    TimePoint sent);
  void wake_waiting();
  void forget_sizes(const Request& request, bool answered);

  // The connection and the session (binding.cc).
  rpc::CallOptions machine_call(OperationContext context, const ProtocolOptions& options) const;
  Task<bool> joins_v40(rpc::Channel& other, ProtocolOptions options);
  rpc::Channel& connected(bool called_back) const;
  Task<Outcome<Attempt>> bind_each(OperationContext context, Request& request,
                                   rpc::CallOptions call);
  Task<Outcome<Fate>> bind_once(OperationContext context, const ProtocolOptions& options);
  Task<Outcome<Fate>> bind_connection(OperationContext context, const ProtocolOptions& options);
  // What the server said; nullopt: nothing.
  Task<std::optional<v4::nfsstat4>> destroy_session(v4::sessionid4 sessionid);
  Task<void> destroy_left();
  Task<Outcome<Fate>> bind_left(Turn turn, OperationContext context,
                                const ProtocolOptions& options);
  // After Fate::Unbound. Go: the call goes again in its turn.
  Task<Outcome<Fate>> bound_for(Turn turn, OperationContext context,
                                const ProtocolOptions& options);

  // A turn that is certain; with another fate than Go there is none yet.
  struct Taken {
    Fate fate = Fate::Go;
    HeldTurn turn{};
  };
  Task<Outcome<Taken>> take_turn(OperationContext context, const ProtocolOptions& options);
  // What a slot in doubt turns out to be, in the background (turns.cc).
  struct Settling;
  class OwnSettling;
  std::shared_ptr<Settling> begin_settling(OperationContext context, const ProtocolOptions& options,
                                           bool first);
  Task<void> settle(HeldTurn held, OperationContext context, ProtocolOptions options,
                    std::shared_ptr<Settling> settling);
  void end_settled(HeldTurn held, bool certain);
  // What came of a turn in doubt; with Fate::Go, whether the server had executed its call.
  struct Settled {
    Fate fate = Fate::Later;
    bool executed = false;
  };
  Task<Outcome<Settled>> settled(OperationContext context, HeldTurn& held,
                                 const ProtocolOptions& options, Settling* settling = nullptr);

  // What was given up and may be granted all the same (taking_back.cc): an OPEN, whose owner is
  // `id`, or a LOCK.
  struct GivenUp {
    std::uint32_t incarnation = 0;
    bool granted = false;  // to the call before, whatever came of this one
    Handle at{};
    std::optional<v4::OPEN4args> open{};
    session::Opens::Id id = 0;
    std::optional<Request::ByOpen> lock{};
    std::shared_ptr<const session::Opener> opener{};
  };
  std::optional<GivenUp> given_up(Request& request, const Error& error) const;
  bool begin_taking_back(HeldTurn& held, Request& request, const Error& error) noexcept;
  Task<void> take_back(HeldTurn held, GivenUp given);
  ProtocolOptions taking_back_options(const session::Opener* opener);
  Task<bool> is_granted(HeldTurn held, const GivenUp& given);
  Task<Outcome<Reply>> ask_again(Request& request, const GivenUp& given);
  Task<void> take_back_open(HeldTurn held, const GivenUp& given);
  Task<void> take_back_lock(HeldTurn held, const GivenUp& given);
  Task<void> restore_lock(const GivenUp& given, session::Opens::Lock lock);

  // Version 4.0 (session_client_v40.cc): an operation that is numbered, and with which numbers.
  struct Numbers {
    std::size_t place = 0;
    std::optional<v4::seqid4> open{};
    std::optional<v4::seqid4> locks{};
  };
  class Unanswered;
  Task<Outcome<Attempt>> send_v40(OperationContext context, Request& request,
                                  const ProtocolOptions& options);
  Task<Outcome<Attempt>> attempt_v40(OperationContext context, Request& request,
                                     const ProtocolOptions& options);
  Task<Outcome<Attempt>> attempt_in_turn(OperationContext context, Request& request,
                                         const ProtocolOptions& options);
  Task<Outcome<Ok>> begin_turn(OwnersV40::Turn& turn, OwnersV40::Ref owner,
                               OperationContext context, const ProtocolOptions& options);
  void settle_owners(Request& request);
  Task<Outcome<Attempt>> send_numbered(OperationContext context, Request& request,
                                       OwnersV40::Pair owners, const ProtocolOptions& options,
                                       session::ClientV40::Of of);
  Task<Outcome<Attempt>> confirm(OperationContext context, Request& request, OwnersV40::Ref owner,
                                 Attempt opened, const ProtocolOptions& options,
                                 session::ClientV40::Of of);
  Task<Outcome<Ok>> find_first_lock(OperationContext context, Request& request,
                                    OwnersV40::Pair owners, const ProtocolOptions& options);
  Task<Outcome<bool>> has_newer_stateid(OperationContext context, Request& request,
                                        const ProtocolOptions& options);
  OwnersV40::Pair owners_of(Request& request);
  Numbers number(Request& request, const OwnersV40::Pair& owners);
  static session::OwnerSequence::Verdict judge(const Request& request,
                                               const OwnersV40::Pair& owners,
                                               const Numbers& numbers);
  void settle_lock_owner(session::Opens::LockOwner owner);
  Task<void> release_lock_owner(std::string name);
  Task<void> renew_v40(const ProtocolOptions& options);
  Task<void> restore_callbacks_v40(const ProtocolOptions& options);

  v4::clientid4 clientid() const;
  bool fill_in(Request& request);
  void fill_in_owner(Request& request);
  // False when what the operation is by is lost.
  bool fill_in_stateid(Request& request) const;
  bool fill_in_data(Request& request, const Request::ByOpen& by) const;
  bool fill_in_lock(v4::LOCK4args& args, const Request::ByOpen& by) const;
  void note_lock(Request& request);
  void note_lost_lock(Request& request);
  static v4::stateid4 sent_stateid(Request& request);
  // What the server asks for.
  v4::nfsstat4 recall(const v4::stateid4& stateid) override;
  void recall_any(std::uint32_t keep) override;
  std::optional<Delegations::Now> written(const v4::nfs_fh4& file) override;
  void recall_slots(v4::slotid4 highest) override;
  bool awaits(const v4::CB_SEQUENCE4args& callback) const override {
    return session_.awaits(callback);
  }
  v4::nfsstat4 copy_ended(const v4::CB_OFFLOAD4args& args) override {
    return offloads_.on_end(args);
  }
  // In the background. False: there is no memory for it yet.
  bool begin_return(const Delegations::Return& delegation) noexcept;
  Task<void> give_back(Delegations::Return delegation);
  Task<bool> flushed(const Delegations::Return& delegation, TimePoint recalled);
  Task<bool> returned(const Delegations::Return& delegation, TimePoint recalled);
  Task<bool> closed_if_idle(const File& file);
  void note_renewal_v40(TimePoint sent);
  void give_back_all();
  void give_back_due();
  bool is_cut_off() const;
  Task<bool> come_back();
  Task<bool> close_all();
  Task<bool> give_back_clientid();
  Task<void> say_goodbye();
  Task<Outcome<Ok>> unlock_all(OperationContext context, File file, const ProtocolOptions& options);
  ProtocolOptions background_options();
  // Of the last SEQUENCE: whether the server still reaches this client, and has revoked nothing.
  void note_flags();
  // In the background, unless it runs already: `work` sets the flag.
  void begin_once(bool& underway, Task<void> (SessionClient::*work)()) noexcept;
  Task<void> restore_back_channel();
  Task<void> bind_back_connection();
  Task<void> bind_back_once(v4::sessionid4 sessionid);
  // What the server has revoked (revoked.cc).
  Task<void> find_revoked();
  Task<Outcome<Ok>> test_opens(const ProtocolOptions& options);
  Task<Outcome<Ok>> test_delegations(const ProtocolOptions& options);
  Task<Outcome<std::vector<v4::nfsstat4>>> test(std::vector<v4::stateid4> stateids,
                                                const ProtocolOptions& options);
  // Renewals of the lease, as long as opens are held. What there was no memory for begins again
  // with the next call.
  void renew_later() noexcept;
  void on_renewal_due();
  Task<void> renewed();
  void begin_again();
  // Recovery (recovery.cc): steps until the server knows this client and its session, and nothing
  // is to be claimed any more.
  struct Recovery;
  bool ready() const {
    return minor_ == 0 ? ready_v40() : session_.step() == session::Step::Ready && opens_.settled();
  }
  bool is_known() const;
  bool ready_for(const Request& request) const;
  Task<Outcome<Ok>> recover(OperationContext context, const ProtocolOptions& options,
                            const Request* request = nullptr);
  std::shared_ptr<Recovery> begin_recovery(OperationContext context,
                                           const ProtocolOptions& options);
  Task<void> recover_for_all(OperationContext context, ProtocolOptions options,
                             std::shared_ptr<Recovery> recovery);
  Task<Outcome<Ok>> take_steps(OperationContext context, const ProtocolOptions& options);
  Task<void> step_to(Outcome<Attempt>& came, OperationContext context,
                     const ProtocolOptions& options);
  Task<Outcome<Attempt>> take_step(OperationContext context, const ProtocolOptions& options);
  Task<Outcome<Attempt>> complete_reclaim(OperationContext context, const ProtocolOptions& options);
  static void ask_for_lease(Request& request, Values& lease);
  void note_lease(const Values& lease);
  Task<Outcome<Attempt>> confirm_client_v40(OperationContext context,
                                            const ProtocolOptions& options);
  Task<Outcome<Attempt>> take_step_v40(OperationContext context, const ProtocolOptions& options);
  void begin_claiming(std::uint32_t incarnation);
  // What is claimed (claiming.cc): before RECLAIM_COMPLETE, or after it.
  enum class Which : std::uint8_t { Reclaims, Reopens };
  struct Claiming;
  session::Opens::Due due(Which which) const;
  std::size_t claims_at_once(Which which) const;
  Task<Outcome<Attempt>> take_claims(Which which, OperationContext context,
                                     const ProtocolOptions& options);
  Task<bool> await_due(Claiming& all);
  Task<void> claim_each(Claiming& all);
  Task<void> claim_one(Claiming& all, session::Opens::Claim claim);
  void claim_more(Claiming& all) noexcept;
  void look_at_claims() noexcept;
  Task<Outcome<Attempt>> take_claim(OperationContext context, session::Opens::Claim claim,
                                    const ProtocolOptions& options);
  Outcome<Attempt> claim_failed(const session::Opens::Claim& claim, const Error& error,
                                const ProtocolOptions& of_holder, const ProtocolOptions& options);
  Request request_of(const session::Opens::Claim& claim) const;
  // With the credentials of whoever holds what is claimed.
  ProtocolOptions options_of(const session::Opens::Claim& claim,
                             const ProtocolOptions& options) const;
  // Recovery of version 4.0 (recovery_v40.cc).
  bool ready_v40() const;
  Task<Outcome<Attempt>> take_claim_v40(OperationContext context, session::Opens::Claim claim,
                                        const ProtocolOptions& options);
  std::optional<Request> request_of_v40(const session::Opens::Claim& claim);
  Task<void> close_wrong(OperationContext context, session::Opens::Id open, v4::nfs_fh4 file,
                         v4::stateid4 stateid, const ProtocolOptions& options);
  Task<Outcome<Ok>> go_on(Fate fate, v4::nfsstat4 status, OperationContext context,
                          JukeboxRetry& retry);

  rpc::Client rpc_;
  std::vector<Connection> connections_;  // where the Channel has several, all that joined
  const std::uint32_t minor_;
  ProtocolOptions own_;  // of what belongs to no operation
  const rpc::Credentials machine_;
  session::Session session_;
  session::ClientV40 client_v40_;
  session::Opens opens_;
  OwnersV40 owners_;
  LockTurns lock_turns_;
  Places places_;
  Delegations delegations_;
  Offloads offloads_;
  Protocol::Flush flush_;
  CallbackService* const callbacks_;
  CallbackServiceV40* const listening_;
  rpc::Channel* const back_;
  TimePoint heard_{};        // the last answer of the server
  TimePoint renewed_v40_{};  // as Session::renewed_
  bool reached_ = true;      // by callbacks, as far as the server says
  bool restoring_ = false;   // the way by which callbacks come
  bool finding_ = false;     // what was revoked
  bool destroying_ = false;  // sessions that were left behind
  bool binding_ = false;
  WaitList bound_;
  std::uint32_t claimed_from_ = 0;  // the incarnation of the client that the opens belong to
  std::optional<TimePoint> put_off_since_{};  // claims whose holder cannot be asked for
  bool recovering_ = false;
  TimePoint recovering_since_{};
  TimePoint recovered_to_{};      // the last step, or claim, that was done
  bool put_off_ = false;          // recovery pauses before it asks the server again
  Claiming* claiming_ = nullptr;  // of the recovery that is in progress
  bool ending_ = false;           // it claims nothing any more
  bool minor_refused_ = false;
  std::uint64_t next_number_;  // of owners of opens, and of verifiers; begins at random
  WaitList recovered_;
  WaitList waiting_;          // for a free slot
  std::size_t settling_ = 0;  // slots in doubt, each for a call that waits
  CancelSource stop_;         // what goes on by itself
  TaskGroup background_;
  bool renewal_set_ = false;  // renewal_ is to fire
  bool renewing_ = false;
  Timer renewal_;
};

}  // namespace stag::nfs::client::nfs4
