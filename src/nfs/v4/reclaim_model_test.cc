// Which clients may claim what after a restart, against a list of facts: clients that keep to the
// rules lose things to each other and to an administrator, go away, come back and start anew, while
// the server is killed, ends in order and cannot write. No client gets back by a claim what another
// has had since, or what was taken from it (RFC 8881 8.4.3, decisions 0038 and 0075); a client that
// has kept to all of it gets back what it had.
#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <utility>

#include "testing/nfs/nfs4_restart_fixture.h"
#include "testing/nfs/state_model.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

constexpr std::size_t kPersons = 5, kOfVersion40 = 2, kFiles = 9;

// A client: what it knows, and what is known of it.
struct Person {
  std::string owner;
  bool sessions = true;  // or it is of version 4.0
  std::uint8_t incarnation = 1;
  bool connected = false, met = false;  // met: by this start of the server
  bool away = false;                    // it asks for nothing, maybe until the next start
  Nfs4Start::Who who{};
  TimePoint seen;
  // Of a file: it has it, as far as it knows; it had it before its client ID went, and has not
  // claimed it yet; by what it has it, and the seqid that comes next there.
  struct Has {
    bool it = false, to_claim = false;
    Nfs4Start::Opened open;
    std::uint32_t seqid = 1;
  };
  std::array<Has, kFiles> has;

  // Facts. What is not known for sure is false: a client that is not recorded may still be let
  // claim.
  bool done = false;      // it has sent RECLAIM_COMPLETE to this start
  bool recorded = false;  // the next start lets it claim
  bool admitted = false;  // this one does
  bool barred = false;    // this start took something from it, and lets it claim nothing
  int revoked = 0;        // it may not know of so many

  bool holds_something() const {
    return std::ranges::any_of(has, [](const Has& each) { return each.it && !each.to_claim; });
  }
  bool has_to_claim() const {
    return std::ranges::any_of(has, [](const Has& each) { return each.to_claim; });
  }
};

class Nfs4ReclaimModel : public Nfs4RestartServed {
 protected:
  // Most steps write: in memory, where there is such a place.
  Nfs4ReclaimModel()
      : Nfs4RestartServed(std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") {
    for (std::size_t i = 0; i < kPersons; ++i) {
      persons_[i].owner = "client " + std::to_string(i);
      persons_[i].sessions = i >= kOfVersion40;
    }
    restart();
    server().set_up_session("who makes the files");
    for (std::size_t i = 0; i < kFiles; ++i) {
      const Nfs4Start::Opened made = server().create(name_of(i));
      handles_[i] = made.handle;
      EXPECT_EQ(server().close(made), v4::NFS4_OK);
    }
  }
  static std::string name_of(std::size_t file) { return "file " + std::to_string(file); }
  Nfs4Start& server() { return *starts_.back(); }

  // Whatever was running is gone, as by SIGKILL.
  void restart() {
    const bool in_grace = !starts_.empty() && server().grace();
    starts_.clear();
    recoveries_.clear();
    start();
    server().nfs4_.watch_leases(server().loop_);
    grace_ = server().grace();
    ++restarts_;
    for (Person& person : persons_) {
      // What an earlier start wrote stays until a grace period ends.
      person.admitted = person.recorded || (in_grace && person.admitted);
      person.recorded = person.connected = person.met = person.done = false;
      person.barred = person.away = false;
      person.revoked = 0;
      // A client that has nothing has no record when a server ends in order.
      person.admitted &= std::ranges::any_of(person.has, &Person::Has::it);
      EXPECT_TRUE(grace_ || !person.admitted) << person.owner;
    }
  }

  // By this client, who hears that it is not known any more.
  v4::COMPOUND4res run(Person& person, std::vector<Op> operations) {
    person.seen = server().loop_.now();
    if (!person.sessions) {
      const auto results = server().compound(std::move(operations), 0);
      if (results.status == v4::NFS4ERR_STALE_CLIENTID || results.status == v4::NFS4ERR_EXPIRED ||
          results.status == v4::NFS4ERR_STALE_STATEID)
        person.connected = false;
      return results;
    }
    server().act_as(person.who);
    auto results = server().run(std::move(operations));
    person.who = server().myself();
    if (results.status == v4::NFS4ERR_BADSESSION) person.connected = false;
    return results;
  }

  // A client that is another one to the server may have lost all that it had.
  void connect(Person& person) {
    const Nfs4Start::Who before = person.who;
    person.connected = person.sessions ? create_session(person) : set_clientid(person);
    if (!person.connected || person.who.clientid == before.clientid) return;
    person.seen = server().loop_.now();
    for (Person::Has& has : person.has) has.to_claim = has.it;
    if (std::exchange(person.met, true)) person.recorded = person.admitted = false;
    person.done = false;
    person.revoked = 0;
  }
  bool create_session(Person& person) {
    const auto exchanged = server().exchange_id(person.owner, person.incarnation);
    const auto made = server().compound(
        {op(v4::OP_CREATE_SESSION, &Op::opcreate_session,
            server().session_args(exchanged.eir_clientid, exchanged.eir_sequenceid))});
    if (made.status != v4::NFS4_OK) return false;
    person.who = {exchanged.eir_clientid,
                  made.resarray[0].opcreate_session().csr_resok4().csr_sessionid, 0};
    return true;
  }
  bool set_clientid(Person& person) {
    v4::SETCLIENTID4args args;
    args.client.id = Rope::copy_of(bytes_of(person.owner));
    args.client.verifier.fill(std::byte{person.incarnation});
    auto set = server().compound({op(v4::OP_SETCLIENTID, &Op::opsetclientid, std::move(args))}, 0);
    if (set.status != v4::NFS4_OK) return false;
    const auto given = set.resarray[0].opsetclientid().resok4();
    const auto confirmed =
        server().compound({op(v4::OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm,
                              {given.clientid, given.setclientid_confirm})},
                          0);
    if (confirmed.status != v4::NFS4_OK) return false;
    person.who.clientid = given.clientid;
    return true;
  }

  // It has something, or goes on having it, that it has a record for.
  void is_recorded(Person& person) {
    if (writable_ && person.revoked == 0) person.recorded = true;
  }
  void loses(Person& person, std::size_t file) {
    if (rightly_[file] == &person) rightly_[file] = nullptr;
  }

  // No other client is in the way of one that has a file open that none shares.
  v4::nfsstat4 open_by(Person& person, std::size_t file, bool claims) {
    Person::Has& has = person.has[file];
    v4::OPEN4args args = server().open_args(name_of(file), v4::OPEN4_SHARE_ACCESS_BOTH, false,
                                            "owner " + std::to_string(++owners_));
    args.share_deny = v4::OPEN4_SHARE_DENY_BOTH;
    args.owner.clientid = person.who.clientid;
    args.seqid = 1;
    if (claims) {
      args.claim.claim = v4::CLAIM_PREVIOUS;
      args.claim.delegate_type() = v4::OPEN_DELEGATE_NONE;
    }
    std::vector<Op> operations{putrootfh(), lookup("data")};
    if (claims) operations = {putfh(handles_[file])};
    operations.push_back(op(v4::OP_OPEN, &Op::opopen, std::move(args)));
    auto results = run(person, std::move(operations));
    if (results.status != v4::NFS4_OK) return results.status;
    const auto& opened = results.resarray.back().opopen().resok4();
    has.open = {v4::NFS4_OK, opened.stateid, handles_[file]};
    has.seqid = 2;
    if ((opened.rflags & v4::OPEN4_RESULT_CONFIRM) == 0) return v4::NFS4_OK;
    auto confirmed = run(
        person, {putfh(handles_[file]), op(v4::OP_OPEN_CONFIRM, &Op::opopen_confirm,
                                           v4::OPEN_CONFIRM4args{has.open.stateid, has.seqid++})});
    EXPECT_EQ(confirmed.status, v4::NFS4_OK);
    if (confirmed.status == v4::NFS4_OK)
      has.open.stateid = confirmed.resarray[1].opopen_confirm().resok4().open_stateid;
    return confirmed.status;
  }
  void open(Person& person, std::size_t file) {
    if (person.has[file].it || !claims_before_it_goes_on(person)) return;
    // A client that has lapsed is ended for this, whatever becomes of it.
    Person* const before = rightly_[file];
    if (before != nullptr && server().loop_.now() - before->seen >= kGraceTime)
      before->recorded = false;
    if (open_by(person, file, false) != v4::NFS4_OK) return;
    person.has[file].it = true;
    if (before != nullptr && before != &person) before->recorded = false;
    rightly_[file] = &person;
    is_recorded(person);
  }
  void claim(Person& person, std::size_t file) {
    Person::Has& has = person.has[file];
    const bool rightly = rightly_[file] == &person;
    const v4::nfsstat4 status = open_by(person, file, true);
    if (!person.connected || status == v4::NFS4ERR_DELAY || status == v4::NFS4ERR_SERVERFAULT)
      return;
    has.to_claim = false;
    has.it = status == v4::NFS4_OK;
    ++(has.it ? granted_ : refused_);
    if (has.it) {
      EXPECT_TRUE(rightly && !person.barred) << person.owner << " has claimed " << name_of(file);
      is_recorded(person);
      return;
    }
    if (rightly && person.admitted && !person.done && grace_ && server().grace()) {
      ADD_FAILURE() << person.owner << " was refused " << name_of(file) << ": " << status;
    }
    loses(person, file);
  }
  void claim_one(Person& person, std::size_t from) {
    for (std::size_t i = 0; i < kFiles; ++i)
      if (const std::size_t file = (from + i) % kFiles; person.has[file].to_claim)
        return claim(person, file);
  }
  bool claim_all(Person& person) {
    for (std::size_t file = 0; file < kFiles && person.connected; ++file)
      if (person.has[file].to_claim) claim(person, file);
    return person.connected && !person.has_to_claim();
  }
  // Decision 0075: what of version 4.0 goes on is taken to have heard of all that it had.
  bool claims_before_it_goes_on(Person& person) { return person.sessions || claim_all(person); }

  void complete(Person& person) {
    if (!person.sessions) return renew(person);
    const auto status =
        run(person,
            {op(v4::OP_RECLAIM_COMPLETE, &Op::opreclaim_complete, v4::RECLAIM_COMPLETE4args{})})
            .status;
    if (!person.connected || (status != v4::NFS4_OK && status != v4::NFS4ERR_COMPLETE_ALREADY))
      return;
    for (std::size_t file = 0; file < kFiles; ++file)
      if (std::exchange(person.has[file].to_claim, false)) {
        person.has[file].it = false;
        loses(person, file);
      }
    // A client that has freed what was revoked is recorded with its next OPEN only.
    const bool cut_off = !std::exchange(person.done, true) && !server().grace();
    if (cut_off && !person.barred && person.holds_something()) is_recorded(person);
  }
  void renew(Person& person) {
    if (!claims_before_it_goes_on(person)) return;
    const auto status =
        run(person, {op(v4::OP_RENEW, &Op::oprenew, v4::RENEW4args{person.who.clientid})}).status;
    if (status == v4::NFS4_OK && !server().grace() && person.holds_something()) is_recorded(person);
  }
  // It looks whether it still has the file, and says that it knows where it has not.
  void look(Person& person, std::size_t file) {
    Person::Has& has = person.has[file];
    if (!has.it || has.to_claim) return;
    const auto status =
        run(person, {putfh(handles_[file]), Nfs4Start::read_op(has.open.stateid, 0, 1)}).status;
    if (status == v4::NFS4_OK || !person.connected) return;
    if (person.sessions) {
      const auto freed = run(person, {op(v4::OP_FREE_STATEID, &Op::opfree_stateid,
                                         v4::FREE_STATEID4args{has.open.stateid})});
      if (!person.connected) return;
      if (freed.status == v4::NFS4_OK && person.revoked > 0) --person.revoked;
    }
    has.it = false;
    loses(person, file);
  }
  void close(Person& person, std::size_t file) {
    Person::Has& has = person.has[file];
    if (!has.it || has.to_claim) return;
    const auto closed = run(
        person, {putfh(handles_[file]),
                 op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{has.seqid++, has.open.stateid})});
    if (closed.status != v4::NFS4_OK) return;
    has.it = false;
    loses(person, file);
  }
  void start_anew(Person& person) {
    ++person.incarnation;
    person.connected = person.recorded = person.admitted = false;
    person.has = {};
    for (std::size_t file = 0; file < kFiles; ++file) loses(person, file);
  }

  // By an administrator, from the client that has the file.
  void revoke(std::size_t file) {
    for (Person& person : persons_) {
      const Person::Has& has = person.has[file];
      if (!has.it || has.to_claim || !server().revoke(has.open)) continue;
      ++person.revoked;
      person.recorded = person.admitted = false;
      person.barred = true;
      loses(person, file);
    }
  }
  void end_by_admin(Person& person) {
    server().act_as(person.who);
    if (server().end_by_admin() != EndedByAdmin::Yes) return;
    person.recorded = person.admitted = false;
    person.barred = true;
    for (std::size_t file = 0; file < kFiles; ++file) loses(person, file);
  }
  void set_writable(bool writable, const char* event) {
    if (writable == writable_) return;
    writable ? repair_records() : break_records(event);
    writable_ = writable;
  }
  // A client that is not done when a grace period ends claims nothing in the next.
  void note_the_end_of_grace() {
    if (!std::exchange(grace_, server().grace()) || grace_) return;
    for (Person& person : persons_) {
      person.admitted = false;
      if (!person.sessions || !person.done) person.recorded = false;
    }
  }

  void of_the_server(std::size_t what, std::size_t file, Person& person, bool odd) {
    if (what < 10) return restart();
    if (what < 15) return server().end_in_order(), restart();
    if (what < 17) return server().lengthen_grace(3 * kGraceTime);
    if (what < 20) return set_writable(false, odd ? "INSERT" : "DELETE");
    if (what < 34) return set_writable(true, "");
    if (what < 64) return server().loop_.pass(odd ? 20s : 50s);
    if (what < 76) return server().loop_.pass(kGraceTime + 2s);
    if (what < 90) return revoke(file);
    if (what < 95) return end_by_admin(person);
    start_anew(person);
  }
  void perform_one(std::mt19937& random) {
    const auto below = [&](std::size_t limit) { return random() % limit; };
    Person& person = persons_[below(kPersons)];
    const std::size_t file = below(kFiles), what = below(100);
    if (below(9) == 0) return of_the_server(what, file, person, below(2) == 0);
    if (person.away && below(50) != 0) return;
    person.away = false;
    if (!person.connected) connect(person);
    if (!person.connected) return;
    if (person.has_to_claim() && what >= 92) person.away = true;
    if (what < 4) return complete(person);
    if (person.has_to_claim() && what < 70) return claim_one(person, file);
    if (what < (person.done ? 10 : 40)) return complete(person);
    if (what < 75) return open(person, file);
    if (what < 82) return renew_or_look(person, file);
    if (what < 92) return look(person, file);
    close(person, file);
  }
  void renew_or_look(Person& person, std::size_t file) {
    person.sessions ? look(person, file) : renew(person);
  }

  std::array<Person, kPersons> persons_;
  std::array<v4::nfs_fh4, kFiles> handles_;
  std::array<Person*, kFiles> rightly_{};  // the last that had it, and has not lost it
  bool writable_ = true, grace_ = false;
  int granted_ = 0, refused_ = 0, restarts_ = 0, owners_ = 0;
};

TEST_F(Nfs4ReclaimModel, gives_back_what_was_had_until_a_restart_and_nothing_else) {
  const int steps = state::testing::number_from("STAG_STATE_STEPS", 100'000);
  std::mt19937 random(75);
  for (int step = 0; step < steps && !HasFailure(); ++step) {
    perform_one(random);
    note_the_end_of_grace();
    EXPECT_FALSE(HasFailure()) << "step " << step;
  }
  RecordProperty("granted", granted_);
  RecordProperty("refused", refused_);
  RecordProperty("restarts", restarts_);
  EXPECT_GE(granted_, steps / 50);
  EXPECT_GE(refused_, steps / 50);
}

}  // namespace
}  // namespace stag::nfs::nfs4
