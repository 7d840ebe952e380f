// What Clients has to answer, from a list of facts without any index: client IDs, sessions and
// leases, in a time that only the test moves. Beside the real thing, so that each step is compared.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "testing/nfs/state_world.h"

namespace stag::nfs::state::testing {

inline constexpr Duration kLease = World::lease;
inline constexpr Duration kCourtesy = std::chrono::hours(24);
inline constexpr std::uint32_t kSessionsOfClient = 2;

struct ClientStep {
  enum What {
    ExchangeId,
    Update,  // EXCHANGE_ID with EXCHGID4_FLAG_UPD_CONFIRMED_REC_A
    CreateSession,
    DestroySession,
    DestroyClientid,
    Sequence,
    Finish,
    SetClientid,
    Confirm,
    Renew,
    Hold,
    Drop,
    Pass,
    Expire,
    End,
  } what = ExchangeId;
  int owner = 0, verifier = 0, principal = 0;
  // Of the two records that an owner may have, the one to name; and whether it is one without
  // sessions (version 4.0).
  bool confirmed = true, v40 = false;
  // CreateSession and Sequence: beyond the number that came last. Confirm: 0 is the newest
  // verifier, 1 the one that is confirmed, 2 one that was never given. End: 1 only who lapsed.
  std::uint32_t which = 0;
  Duration time{};
};

// What RFC 8881 18.35.4 and 18.36.4 and RFC 7530 16.33.5 call a client record.
struct ClientFacts {
  struct Session {
    SessionId id{};
    SequenceId last = 0;  // of its only slot
    bool used = false, running = false;
    ReplyPtr reply;
  };
  ClientId id = 0;
  int owner = 0, verifier = 0, principal = 0;
  bool v40 = false, confirmed = false;
  LifePtr life;
  TimePoint renewed;
  bool lapsed = false;
  std::uint32_t running = 0, states = 0;
  SequenceId sequence = 0;       // of the CREATE_SESSION that came last
  Status answered = Status::Ok;  // to it
  SessionId created{};           // by it
  std::list<Session> sessions;
  Verifier confirm{};  // of version 4.0
  CallbackPathPtr path;
  std::optional<Verifier> change;  // the callback becomes `changed` with this one
  CallbackPathPtr changed;

  bool has_state() const { return !sessions.empty() || states != 0; }
};

// The real thing and the facts, side by side.
class ClientPair {
 public:
  ClientPair(Clients& clients, TimePoint& now)
      : clients_(clients), now_(now), prefix_(std::to_string(++pairs_) + " ") {}
  ~ClientPair() {
    while (!running_.empty()) finish();
    while (!records_.empty()) {
      EXPECT_EQ(clients_.end(records_.front().id, false), records_.front().life);
      remove(records_.front());
    }
  }

  void perform(const ClientStep& step) {
    switch (step.what) {
      case ClientStep::ExchangeId:
      case ClientStep::Update:
        return exchange_id(step);
      case ClientStep::CreateSession:
        return create_session(step);
      case ClientStep::DestroySession:
        return destroy_session(step);
      case ClientStep::DestroyClientid:
        return destroy_clientid(step);
      case ClientStep::Sequence:
        return sequence(step);
      case ClientStep::Finish:
        return finish();
      case ClientStep::SetClientid:
        return set_clientid(step);
      case ClientStep::Confirm:
        return confirm(step);
      case ClientStep::Renew:
        return renew(step);
      case ClientStep::Hold:
      case ClientStep::Drop:
        return hold(step);
      case ClientStep::Pass:
        now_ += step.time;
        return;
      case ClientStep::Expire:
        return expire();
      case ClientStep::End:
        return end(step);
    }
  }

  // All that can be asked of each of them.
  void compare() {
    for (const ClientFacts& record : records_) {
      EXPECT_EQ(clients_.life(record.id), record.life);
      const auto info = clients_.info(record.id, now_);
      ASSERT_TRUE(info.has_value());
      EXPECT_EQ(info->confirmed, record.confirmed);
      EXPECT_EQ(info->principal, principal(record.principal));
      EXPECT_EQ(info->sessions, record.sessions.size());
      EXPECT_EQ(info->states, record.states);
      EXPECT_EQ(info->phase == Life::Phase::Lapsed, record.lapsed);
      const auto paths = clients_.callback_paths(record.id);
      ASSERT_EQ(paths.size(), record.v40 && record.confirmed ? 1u : 0u);
      if (!paths.empty()) {
        EXPECT_EQ(paths[0].second, record.path);
      }
      EXPECT_EQ(info->idle, now_ - record.renewed);
    }
    EXPECT_EQ(clients_.life(gone_), nullptr);
    EXPECT_TRUE(clients_.callback_paths(gone_).empty());
  }
  void compare_number() { EXPECT_EQ(clients_.list(now_).size(), records_.size()); }

 private:
  struct Running {
    Sequenced request;
    ClientId client = 0;
    int number = 0;
  };

  std::string owner(int number) const { return prefix_ + std::to_string(number); }
  static std::string principal(int number) { return "principal " + std::to_string(number); }
  static Verifier verifier(int number) { return {static_cast<std::byte>(number + 1)}; }

  ClientFacts* find(int owner, bool v40, bool confirmed) {
    for (ClientFacts& record : records_)
      if (record.owner == owner && record.v40 == v40 && record.confirmed == confirmed)
        return &record;
    return nullptr;
  }
  ClientFacts* named(const ClientStep& step) { return find(step.owner, step.v40, step.confirmed); }
  ClientFacts* find(ClientId id) {
    for (ClientFacts& record : records_)
      if (record.id == id) return &record;
    return nullptr;
  }
  // One that was there, when the one that was named is not.
  ClientId id_of(const ClientFacts* record) const { return record == nullptr ? gone_ : record->id; }

  // RFC 8881 8.3: not as long as a request runs.
  bool lease_is_over(const ClientFacts& record) const {
    return record.lapsed || (record.running == 0 && now_ - record.renewed > kLease);
  }
  bool in_use(const ClientFacts& record) const {
    return record.has_state() && !lease_is_over(record);
  }

  ClientFacts& add(const ClientStep& step, bool v40, ClientId id) {
    EXPECT_TRUE(ids_.insert(id).second) << "a client ID is new";
    ClientFacts& record = records_.emplace_back();
    record.id = id;
    record.owner = step.owner;
    record.verifier = step.verifier;
    record.principal = step.principal;
    record.v40 = v40;
    record.renewed = now_;
    record.life = clients_.life(id);
    return record;
  }
  void remove(ClientFacts& record) {
    EXPECT_TRUE(record.life->ended());
    gone_ = record.id;
    if (!record.sessions.empty()) gone_session_ = record.sessions.back().id;
    records_.remove_if([&](const ClientFacts& one) { return &one == &record; });
  }
  // Its life is what the step says that it ended; null: none.
  void replaced(ClientFacts* record, const LifePtr& ended) {
    EXPECT_EQ(ended, record == nullptr ? nullptr : record->life);
    if (record != nullptr) remove(*record);
  }
  template <class T>
  static void same(const T& is, const T& expected) {
    EXPECT_EQ(is, expected);
  }
  void renewed(ClientFacts& record) {
    record.renewed = now_;
    record.lapsed = false;
  }

  // The cases of RFC 8881 18.35.4, by their numbers.
  void exchange_id(const ClientStep& step) {
    const std::string name = owner(step.owner), by = principal(step.principal);
    ExchangeIdArgs args;
    args.co_ownerid = bytes_of(name);
    args.co_verifier = verifier(step.verifier);
    args.principal = bytes_of(by);
    args.address = "192.0.2.1";
    args.update = step.what == ClientStep::Update;
    const ExchangeIdResult result = clients_.exchange_id(args, now_);
    ClientFacts* const confirmed = find(step.owner, false, true);
    ClientFacts* const unconfirmed = find(step.owner, false, false);
    if (args.update) return updated(step, confirmed, result);
    const bool collides = confirmed != nullptr && confirmed->principal != step.principal;
    if (collides && in_use(*confirmed)) return same(result.status, Status::ClidInuse);
    EXPECT_EQ(result.status, Status::Ok);
    if (unconfirmed != nullptr) remove(*unconfirmed);  // 4
    if (!collides && confirmed != nullptr && confirmed->verifier == step.verifier)
      return known(*confirmed, result);                      // 2
    replaced(collides ? confirmed : nullptr, result.ended);  // 3
    EXPECT_FALSE(result.confirmed);
    EXPECT_EQ(result.sequenceid, 1u);
    add(step, false, result.clientid);  // 1, 3, 4, 5
  }
  void updated(const ClientStep& step, const ClientFacts* confirmed,
               const ExchangeIdResult& result) {
    const Status status = confirmed == nullptr                     ? Status::Noent    // 7
                          : confirmed->verifier != step.verifier   ? Status::NotSame  // 8
                          : confirmed->principal != step.principal ? Status::Perm     // 9
                                                                   : Status::Ok;      // 6
    EXPECT_EQ(result.status, status);
    if (status == Status::Ok) known(*confirmed, result);
  }
  static void known(const ClientFacts& record, const ExchangeIdResult& result) {
    EXPECT_EQ(result.clientid, record.id);
    EXPECT_TRUE(result.confirmed);
    EXPECT_EQ(result.sequenceid, record.sequence + 1);
    EXPECT_EQ(result.ended, nullptr);
  }

  void create_session(const ClientStep& step) {
    ClientFacts* const record = named(step);
    const std::string by = principal(step.principal);
    const SequenceId last = record == nullptr ? 0 : record->sequence;
    CreateSessionArgs args = World::session_args(id_of(record), last + step.which);
    args.principal = bytes_of(by);
    args.fore = World::wanted(1);
    const CreateSessionResult result = clients_.create_session(args, now_);
    const Status status = judged(record, step);
    EXPECT_EQ(result.status, status);
    if (status == Status::Nospc) {
      record->sequence = args.sequence;
      record->answered = status;
    }
    if (status != Status::Ok) return;
    EXPECT_EQ(result.sequence, args.sequence);
    EXPECT_EQ(result.life, record->life);
    EXPECT_EQ(result.replay, step.which == 0);
    if (step.which == 0) return same(result.sessionid, record->created);
    EXPECT_EQ(result.confirmed, !record->confirmed);
    replaced(record->confirmed ? nullptr : find(step.owner, false, true), result.ended);
    record->confirmed = true;
    record->sequence = args.sequence;
    record->answered = Status::Ok;
    record->created = result.sessionid;
    EXPECT_TRUE(sessions_.insert(result.sessionid).second) << "a session ID is new";
    record->sessions.emplace_back().id = result.sessionid;
    renewed(*record);
  }
  static Status judged(const ClientFacts* record, const ClientStep& step) {
    if (record == nullptr || record->v40) return Status::StaleClientid;
    if (record->principal != step.principal) return Status::ClidInuse;
    if (step.which > 1 || (step.which == 0 && record->sequence == 0)) return Status::SeqMisordered;
    if (step.which == 0) return record->answered;
    return record->sessions.size() == kSessionsOfClient ? Status::Nospc : Status::Ok;
  }

  void destroy_session(const ClientStep& step) {
    ClientFacts* const record = named(step);
    const bool there = record != nullptr && !record->sessions.empty();
    const SessionId id = there ? record->sessions.front().id : gone_session_;
    EXPECT_EQ(clients_.destroy_session(id, kNoConnection), there ? Status::Ok : Status::BadSession);
    if (!there) return;
    gone_session_ = id;
    record->sessions.pop_front();
  }

  void destroy_clientid(const ClientStep& step) {
    ClientFacts* const record = named(step);
    LifePtr ended;
    const Status status = clients_.destroy_clientid(id_of(record), ended);
    if (record == nullptr || record->v40) return same(status, Status::StaleClientid);
    if (record->has_state() && !record->lapsed) return same(status, Status::ClientidBusy);
    EXPECT_EQ(status, Status::Ok);
    replaced(record, ended);
  }

  void sequence(const ClientStep& step) {
    ClientFacts* const record = named(step);
    const bool there = record != nullptr && !record->sessions.empty();
    SequenceArgs args;
    args.sessionid = there ? record->sessions.back().id : gone_session_;
    args.sequenceid = (there ? record->sessions.back().last : 0) + step.which;
    args.operations = 2;
    args.request_size = 200;
    const Sequenced result = clients_.sequence(args, now_);
    if (!there) return refused(result, Status::BadSession);
    ClientFacts::Session& session = record->sessions.back();
    if (step.which > 1 || (step.which == 1 && session.running) ||
        (step.which == 0 && !session.used))
      return refused(result, Status::SeqMisordered);
    if (session.running) {
      renewed(*record);
      return same(result.kind, Sequenced::Kind::Wait);
    }
    EXPECT_EQ(result.kind, step.which == 1 ? Sequenced::Kind::Run : Sequenced::Kind::Replay);
    EXPECT_EQ(result.life, record->life);
    renewed(*record);
    if (step.which == 0) return same(result.reply, session.reply);
    session.last = args.sequenceid;
    session.used = session.running = true;
    ++record->running;
    running_.push_back({result, record->id});
  }
  static void refused(const Sequenced& result, Status status) {
    EXPECT_EQ(result.kind, Sequenced::Kind::Refuse);
    EXPECT_EQ(result.status, status);
  }

  // The request that has run for longest; its client, or its session, may be gone.
  void finish() {
    if (running_.empty()) return;
    const Running one = std::move(running_.front());
    running_.pop_front();
    const ReplyPtr reply = std::make_shared<StoredReply>(0);
    clients_.finished(one.request.slot, one.request.life, reply, now_);
    ClientFacts* const record = find(one.client);
    if (record == nullptr) return;
    --record->running;
    renewed(*record);
    for (ClientFacts::Session& session : record->sessions)
      if (session.id == one.request.slot.sessionid) {
        session.running = false;
        session.reply = reply;
      }
  }

  // RFC 7530 16.33.5. A client that holds nothing, or lets the lease run out, keeps no other
  // out.
  void set_clientid(const ClientStep& step) {
    const std::string name = owner(step.owner), by = principal(step.principal);
    SetClientIdArgs args;
    args.id = bytes_of(name);
    args.verifier = verifier(step.verifier);
    args.principal = bytes_of(by);
    args.address = "192.0.2.1";
    args.callback_path = std::make_shared<CallbackPath>();
    const SetClientIdResult result = clients_.set_clientid(args, now_);
    ClientFacts* const confirmed = find(step.owner, true, true);
    ClientFacts* const unconfirmed = find(step.owner, true, false);
    const bool collides = confirmed != nullptr && confirmed->principal != step.principal;
    if (collides && in_use(*confirmed)) return same(result.status, Status::ClidInuse);
    EXPECT_EQ(result.status, Status::Ok);
    EXPECT_TRUE(confirms_.insert(result.confirm).second) << "a verifier is new";
    if (unconfirmed != nullptr) remove(*unconfirmed);
    if (!collides && confirmed != nullptr && confirmed->verifier == step.verifier) {
      EXPECT_EQ(result.clientid, confirmed->id);
      EXPECT_EQ(result.ended, nullptr);
      confirmed->change = result.confirm;
      confirmed->changed = args.callback_path;
      return;
    }
    replaced(collides ? confirmed : nullptr, result.ended);
    ClientFacts& made = add(step, true, result.clientid);
    made.confirm = result.confirm;
    made.path = args.callback_path;
  }

  // RFC 7530 16.34.5.
  void confirm(const ClientStep& step) {
    ClientFacts* const record = named(step);
    Verifier given{std::byte{0xee}};
    if (record != nullptr && step.which == 0) given = record->change.value_or(record->confirm);
    if (record != nullptr && step.which == 1) given = record->confirm;
    const std::string by = principal(step.principal);
    const ConfirmResult result =
        clients_.confirm_clientid(id_of(record), given, bytes_of(by), now_);
    const Status status = record == nullptr || !record->v40     ? Status::StaleClientid
                          : record->principal != step.principal ? Status::ClidInuse
                          : step.which == 2                     ? Status::StaleClientid
                                                                : Status::Ok;
    EXPECT_EQ(result.status, status);
    if (status != Status::Ok) return;
    if (record->change == given) {
      record->confirm = given;
      record->path = record->changed;
      record->change.reset();
    }
    replaced(record->confirmed ? nullptr : find(step.owner, true, true), result.ended);
    if (!std::exchange(record->confirmed, true)) renewed(*record);
  }

  void renew(const ClientStep& step) {
    ClientFacts* const record = named(step);
    const RenewResult result = clients_.renew_lease(id_of(record), now_);
    const bool may = record != nullptr && record->v40 && record->confirmed;
    const bool was_there = record == nullptr && gone_ != kNobody;
    EXPECT_EQ(result.status, may         ? Status::Ok
                             : was_there ? Status::Expired
                                         : Status::StaleClientid);
    EXPECT_EQ(result.life, may ? record->life : nullptr);
    if (may) renewed(*record);
  }

  // As Files counts what a client has.
  void hold(const ClientStep& step) {
    ClientFacts* const record = named(step);
    if (record == nullptr || (step.what == ClientStep::Drop && record->states == 0)) return;
    record->states += step.what == ClientStep::Hold ? 1u : ~0u;
    record->life->states = record->states;
  }

  void expire() {
    const std::vector<LifePtr> result = clients_.expire(now_);
    std::set<LifePtr> expected;
    for (auto at = records_.begin(); at != records_.end();) {
      ClientFacts& record = *at++;
      if (!lease_is_over(record)) continue;
      if (record.states == 0) {
        if (record.confirmed) expected.insert(record.life);
        remove(record);
        continue;
      }
      record.lapsed = true;
      if (now_ - record.renewed > kLease + kCourtesy) expected.insert(record.life);
    }
    EXPECT_EQ(std::set(result.begin(), result.end()), expected);
    EXPECT_EQ(result.size(), expected.size());
  }

  void end(const ClientStep& step) {
    ClientFacts* record = named(step);
    const bool lapsed_only = step.which == 1;
    const LifePtr ended = clients_.end(id_of(record), lapsed_only);
    if (record != nullptr && lapsed_only && !record->lapsed) record = nullptr;
    replaced(record, ended);
  }

  static constexpr ClientId kNobody = 77;  // of another start of the server
  static inline std::uint64_t pairs_ = 0;
  Clients& clients_;
  TimePoint& now_;
  const std::string prefix_;
  std::list<ClientFacts> records_;
  std::list<Running> running_;
  ClientId gone_ = kNobody;
  SessionId gone_session_{};
  std::set<ClientId> ids_;
  std::set<SessionId> sessions_;
  std::set<Verifier> confirms_;
};

}  // namespace stag::nfs::state::testing
