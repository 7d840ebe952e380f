// nfs/session: what a client of NFSv4.1 and 4.2 has to keep in step with its server: client ID,
// session, slots and lease (RFC 8881 sections 2.4, 2.10, 8.3; RFC 8267 section 6.6). A state
// machine: calls, statuses, losses and the time go in; what to send next, and what becomes of a
// call, come out. It owns no connection, loop or clock.
//
//   step() says what must be sent before any call: EXCHANGE_ID, then CREATE_SESSION, then
//   RECLAIM_COMPLETE inside the session. Whatever a server loses leads back to one of them:
//
//     BADSESSION, DEADSESSION, a slot out of step -> CREATE_SESSION
//     STALE_CLIENTID                              -> EXCHANGE_ID
//     CONN_NOT_BOUND_TO_SESSION                   -> BIND_CONN_TO_SESSION, then the same again
//     DELAY, SEQ_MISORDERED of a retry            -> the same again in the same slot with the same
//                                                    number, after a pause
//
// RFC 8881 2.10.6.2: a server says DELAY also of a retry whose first transmission it is still at,
// and some say SEQ_MISORDERED then. Another request with that number would be taken for the first
// one, and get its results.
//
// State protection: a client whose calls are protected by integrity asks the server to keep
// sessions and client ID to the credential that made them, its machine credential (SP4_MACH_CRED,
// RFC 8881 2.10.8.3), and does without where the server does not grant that.
//
// A server that loses everything again and again without answering one call is Unsteady after
// kMostRecoveries: whoever has the time asks again after a pause.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "nfs/session/slots.h"

namespace stag::nfs::session {

enum class Step : std::uint8_t { ExchangeId, CreateSession, ReclaimComplete, Ready };

// What becomes of a call, or of a step.
enum class Fate : std::uint8_t {
  Go,        // it worked: the results behind SEQUENCE count
  Again,     // nothing was executed: once more, when step() is Ready
  Later,     // the same, after a pause
  Unbound,   // nothing was executed: the same in the same turn, when the connection is bound
  Busy,      // it may be in progress: the same in the same turn, after a pause
  Gone,      // it was executed, and its results are not to be had any more
  Unsteady,  // the same as Again or Later, once too often: after a pause, or not at all
  Refused,   // nothing was executed, and will not be: the status stands
  Broken,    // the server contradicts itself or the protocol
};

struct Identity {
  std::string owner;         // co_ownerid: unique among all clients of the server
  v4::verifier4 verifier{};  // of this incarnation
  std::uint32_t slots = Slots::kMost;
  bool called_back = false;            // the connection of CREATE_SESSION takes callbacks
  bool called_back_elsewhere = false;  // another connection does, which is bound to the session
  // The steps, and BIND_CONN_TO_SESSION, go with RPCSEC_GSS and integrity: SP4_MACH_CRED is asked.
  bool machine_credential = false;
  std::uint32_t message_max = (1u << 20) + (8u << 10);  // bytes of a COMPOUND and of its results
};

class Session {
 public:
  static constexpr Duration kShortestLease = std::chrono::seconds(1);
  static constexpr Duration kLongestLease = std::chrono::minutes(5);

  // Operations of the longest COMPOUND that a client of this library sends.
  static constexpr std::uint32_t kOperations = 12;
  // Of the smallest messages that a client can work with.
  static constexpr std::uint32_t kLeastMessage = 4096;
  static constexpr std::uint32_t kMostRecoveries = 8;
  static constexpr std::size_t kMostLeft = 16;
  // Results of an operation that must not run twice are kept by the server up to this size.
  static constexpr std::uint32_t kCachedMax = 4096;

  explicit Session(Identity identity) : identity_(std::move(identity)) { left_.reserve(kMostLeft); }

  Step step() const { return step_; }
  // The arguments of the steps.
  v4::EXCHANGE_ID4args exchange_id() const;
  v4::CREATE_SESSION4args create_session() const;
  Fate on_exchange_id(const v4::EXCHANGE_ID4res& results);
  Fate on_create_session(const v4::CREATE_SESSION4res& results);
  Fate on_reclaim_complete(v4::nfsstat4 status);
  // Whether the server protects the state by the machine credential.
  bool is_protected() const { return protected_; }

  // For a connection that the session does not know, in both directions (RFC 8881 18.34).
  v4::BIND_CONN_TO_SESSION4args bind_connection() const;
  // Of a call that was sent for the session `of`.
  Fate on_bind_connection(const v4::sessionid4& of, const v4::BIND_CONN_TO_SESSION4res& results);

  // A slot for a call; nullopt: all are in use.
  std::optional<Slots::Turn> take() {
    std::optional<Slots::Turn> turn = slots_.take();
    if (turn && !turn->doubtful) turn->reclaimed = reclaimed();
    return turn;
  }
  // What goes in front of the call, or stands alone for a doubtful turn. `keep`: the server keeps
  // the results for a retransmission. Also for a turn of a session that was left.
  v4::SEQUENCE4args sequence(const Slots::Turn& turn, bool keep) const;
  // Whether its session is there, if only to end the call.
  bool knows(const Slots::Turn& turn) const { return slots_.current(turn) || left_of(turn); }
  // Of a call that was sent then: the turn ends, but with Fate::Unbound and Fate::Busy.
  Fate on_sequence(const Slots::Turn& turn, const v4::SEQUENCE4res& results, TimePoint sent);
  // Of the lone SEQUENCE of a doubtful turn: with Fate::Go the turn goes on with a number that is
  // certain, with any other fate but Unbound and Later it ends.
  Fate on_settling(Slots::Turn& turn, const v4::SEQUENCE4res& results, TimePoint sent);
  // It ends without another call.
  void on_settled(const Slots::Turn& turn) { end(turn, Slots::Number::Unused); }
  // No answer came, or none that can be read: the turn ends.
  void on_loss(const Slots::Turn& turn) { end(turn, Slots::Number::Doubtful); }

  // RFC 8881 8.3: whether a SEQUENCE is due so that the lease does not run out. Only a client that
  // holds opens or locks needs it: without them a lapsed lease costs a new session.
  bool renewal_due(TimePoint now) const { return now - renewed_ >= lease_ / 3; }
  // Whether it has run out: others may have been given what this client holds.
  bool lapsed(TimePoint now) const { return now - renewed_ >= lease_; }
  // What the server says, within bounds: with none a renewal would follow the other without a
  // pause, and an end that waits for a third of it would wait for ever.
  void set_lease(Duration lease) { lease_ = std::clamp(lease, kShortestLease, kLongestLease); }
  Duration lease() const { return lease_; }
  // How often a client ID was made, or its server restarted; opens and locks belong to one of them.
  std::uint32_t incarnation() const { return incarnation_; }

  v4::clientid4 clientid() const { return clientid_; }
  const v4::sessionid4& sessionid() const { return sessionid_; }
  bool has_session() const { return step_ == Step::Ready || step_ == Step::ReclaimComplete; }
  bool has_clientid() const { return step_ != Step::ExchangeId; }
  const v4::channel_attrs4& limits() const { return fore_; }
  // Whether the connection that was bound last carries callbacks.
  bool has_back_channel() const { return back_slots_ > 0 && back_bound_; }
  // The session is of no use any more, though the server knows it: there shall be another one.
  void replace() { static_cast<void>(leave()); }
  // Sessions that were left so: to be destroyed, as a server makes so many for a client and no
  // more. nullopt: there is none.
  std::optional<v4::sessionid4> left_behind() const;
  bool has_left() const { return !left_.empty(); }
  // One that is to be destroyed now. A call of it that is in progress, and loses its connection,
  // has its results from it or not at all: before it has ended the session is not destroyed, unless
  // there may be room for another one only then.
  std::optional<v4::sessionid4> left_idle() const;
  void on_destroyed(const v4::sessionid4& session) {
    std::erase_if(left_, [&session](const Left& left) { return left.session == session; });
  }
  // The others are asked for first.
  void on_kept(const v4::sessionid4& session);
  // Slots of the back channel; 0: there is none.
  std::uint32_t back_slots() const { return back_slots_; }
  // SEQ4_STATUS_* of the last SEQUENCE.
  std::uint32_t status_flags() const { return status_flags_; }
  // Whether a call of this session that the callback refers to has no answer yet (RFC
  // 8881 2.10.6.3).
  bool awaits(const v4::CB_SEQUENCE4args& callback) const;
  // CB_RECALL_SLOT (RFC 8881 20.8).
  void on_recall_slot(v4::slotid4 highest) { slots_.aim_at(highest); }
  const Slots& slots() const { return slots_; }

 private:
  struct Left {
    v4::sessionid4 session{};
    std::uint32_t table = 0;  // of its turns
    Slots::Set calls = 0;     // that have not ended, of a table that is not the current one
  };

  void end(const Slots::Turn& turn, Slots::Number number);
  void end_left(const Slots::Turn& turn);
  bool has_calls(const Left& left) const;
  // Null: it is not of one that was left.
  const Left* left_of(const Slots::Turn& turn) const;
  Fate on_sequence_left(const Slots::Turn& turn, v4::nfsstat4 status);
  Fate go_back(Step step);
  Fate leave();
  Fate refused(const Slots::Turn& turn, v4::nfsstat4 status);
  bool belongs(const Slots::Turn& turn, const v4::SEQUENCE4resok& results) const;
  // The incarnation, where all its opens and locks are reclaimed; else 0.
  std::uint32_t reclaimed() const { return complete_ ? incarnation_ : 0; }
  void note(const Slots::Turn& turn, const v4::SEQUENCE4resok& results, TimePoint sent);

  Identity identity_;
  bool protected_ = false;
  Step step_ = Step::ExchangeId;
  std::uint32_t recoveries_ = 0;  // since a call was answered
  std::uint32_t incarnation_ = 0;
  v4::clientid4 clientid_ = 0;
  v4::sequenceid4 create_sequence_ = 0;
  bool complete_ = false;  // RECLAIM_COMPLETE was done for this client ID
  v4::sessionid4 sessionid_{};
  std::vector<Left> left_;  // the newest kMostLeft
  v4::channel_attrs4 fore_{};
  std::uint32_t back_slots_ = 0;
  bool back_bound_ = false;
  std::uint32_t status_flags_ = 0;
  Slots slots_;
  Duration lease_ = std::chrono::seconds(90);
  // When the last SEQUENCE was sent that the server took: the lease began anew then, or later.
  TimePoint renewed_{};
};

}  // namespace stag::nfs::session
