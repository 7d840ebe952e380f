#include "conform/nfs4/elapsed.h"

#include <fmt/format.h>

#include "conform/nfs4/lease.h"

namespace stag::conform::nfs4 {
namespace {

bool is_denied(const std::string& trouble) {
  return trouble.ends_with("NFS4ERR_SHARE_DENIED") || trouble.ends_with("NFS4ERR_DENIED") ||
         trouble.ends_with("NFS4ERR_DELAY");
}

// What the client of a case takes away from the silent ones.
struct Takeover {
  bool prepared = false;
  std::string of_open = "it was not asked", of_lock = of_open;  // why not; empty: it has it

  bool done() const { return of_open.empty() && of_lock.empty(); }
  const std::string& trouble() const { return of_open.empty() ? of_lock : of_open; }
  bool is_over() const {
    return done() || (!of_open.empty() && !is_denied(of_open)) ||
           (!of_lock.empty() && !is_denied(of_lock));
  }
};

Steps open_as(const char* name, const char* as, std::uint32_t access) {
  Steps steps;
  steps.push_back(own());
  steps.push_back(open({.name = name, .access = access, .as = as}));
  return steps;
}

Task<void> take_open(Scene& scene, Takeover& takeover) {
  takeover.of_open = co_await prepare(scene, open_as("f", "taken f", kWrite));
}

Task<void> take_lock(Scene& scene, Takeover& takeover) {
  if (!takeover.prepared) {
    takeover.of_lock = co_await prepare(scene, open_as("g", "taken g", kBoth));
    takeover.prepared = takeover.of_lock.empty();
  }
  if (!takeover.prepared) co_return;
  Steps locking;
  locking.push_back(at("taken g"));
  locking.push_back(lock({.open = "taken g", .held = "taken l", .offset = 10, .owner = "taker"}));
  takeover.of_lock = co_await prepare(scene, std::move(locking));
}

// Whether to ask no more. A server may deny it until the lease has run out.
Task<bool> takes_over(Elapsed& elapsed, Scene& scene, Takeover& takeover) {
  co_await elapsed.renew();
  if (!takeover.of_open.empty()) co_await take_open(scene, takeover);
  if (!takeover.of_lock.empty()) co_await take_lock(scene, takeover);
  const bool alive = co_await scene.client.alive();
  co_return !alive || takeover.is_over();
}

// The writer of what is delegated. Whether to ask no more: the file is open, or cannot be opened.
// The holder renews its lease.
Task<bool> opens_at_last(Scene& scene, Scene& holder, Reply& reply) {
  const Steps opening = open_as("f", "written", kWrite);
  reply = co_await send_once(scene, opening);
  const bool alive = co_await holder.client.alive();
  co_return !alive || !reply.answered() || reply.results.status != v4::NFS4ERR_DELAY;
}

// Opened, and in version 4.0 not confirmed.
Task<std::string> open_new(Scene& scene) {
  Steps steps;
  steps.push_back(own());
  steps.push_back(open({.name = "new", .owner = "new owner", .create = v4::UNCHECKED4}));
  steps.push_back(getfh("new"));
  const Reply reply = co_await send(scene, steps);
  co_return reply.ok() ? std::string() : "OPEN: " + reply.text();
}

}  // namespace

struct Elapsed::Silent {
  Silent(Scene& of, std::string_view name)
      : client(of.client.channel(), of.other_client(name)),
        scene(client, none, fmt::format("{} {}", of.label, name)) {
    scene.handles["own"] = of.handle("own");
  }
  Task<void> end() {
    co_await tidy(scene);
    co_await client.leave();
  }

  const Handles none{};
  Client client;
  Scene scene;
};

Elapsed::Elapsed() = default;
Elapsed::~Elapsed() = default;

Scene& Elapsed::opener() {
  return opener_->scene;
}

Scene& Elapsed::locker() {
  return locker_->scene;
}

Task<Verdict> Elapsed::wait_for_lapse(Scene& scene) {
  opener_ = std::make_unique<Silent>(scene, "opener");
  locker_ = std::make_unique<Silent>(scene, "locker");
  std::string trouble = co_await opener_->client.establish();
  if (trouble.empty()) trouble = co_await locker_->client.establish();
  Steps denying;
  denying.push_back(own());
  denying.push_back(
      open({.name = "f", .deny = v4::OPEN4_SHARE_DENY_WRITE, .create = v4::UNCHECKED4}));
  if (trouble.empty()) trouble = co_await prepare(opener(), std::move(denying));
  if (trouble.empty()) trouble = co_await open_new(opener());
  if (trouble.empty()) trouble = co_await prepare(locker(), a_file("g"));
  if (trouble.empty()) trouble = co_await prepare(locker(), a_file("h"));
  Steps locking;
  locking.push_back(at("g"));
  locking.push_back(lock({.open = "g", .held = "l", .offset = 10}));
  if (trouble.empty()) trouble = co_await prepare(locker(), std::move(locking));
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  const auto lease = co_await lease_time(scene);
  if (!lease) co_return Verdict::fail("lease_time is none, or none that can be waited for");
  Takeover takeover;
  const bool over = co_await wait_for_lease(
      scene, *lease, [this, &scene, &takeover] { return takes_over(*this, scene, takeover); });
  if (takeover.done()) co_return Verdict::pass();
  if (over)
    co_return Verdict::fail("what silent clients had, by another one: " + takeover.trouble());
  co_return Verdict::fail(
      fmt::format("{} still, of what a client has that is silent for twice the lease of {} s",
                  takeover.trouble(), lease->count()));
}

Task<Verdict> Elapsed::lapse(Scene& scene) {
  if (!lapsed_) lapsed_ = co_await wait_for_lapse(scene);
  co_return *lapsed_;
}

Task<Verdict> Elapsed::wait_for_revocation(Scene& scene) {
  holder_ = std::make_unique<DelegationHolder>(scene);
  Verdict verdict = co_await holder_->obtain(scene);
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  const std::string trouble = co_await prepare(holder(), a_file("h"));
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  const auto lease = co_await lease_time(scene);
  if (!lease) co_return Verdict::fail("lease_time is none, or none that can be waited for");
  scene.handles["written"] = scene.handle("f");
  Reply reply;
  co_await wait_for_lease(scene, *lease,
                          [this, &scene, &reply] { return opens_at_last(scene, holder(), reply); });
  Verdict revoked = expect(reply, {v4::NFS4_OK}, "OPEN in conflict with a delegation that is kept");
  const bool alive = co_await holder().client.alive();
  if (revoked.outcome == Outcome::Pass && !alive)
    co_return Verdict::fail(
        fmt::format("the lease of {} s of the client that keeps its delegation has run out though "
                    "it was renewed each second, or the server was too slow for that",
                    lease->count()));
  co_return revoked;
}

Task<void> Elapsed::renew() {
  if (revoked_ && revoked_->outcome == Outcome::Pass) co_await holder().client.alive();
}

// A client whose lease has run out since, because the server was slow or other cases were, has lost
// more than what was revoked: another client is needed.
Task<Verdict> Elapsed::revoke(Scene& scene) {
  if (revoked_ && revoked_->outcome == Outcome::Pass) {
    const bool alive = co_await holder().client.alive();
    if (!alive) {
      revoked_.reset();
      co_await holder_->end();
    }
  }
  if (!revoked_) revoked_ = co_await wait_for_revocation(scene);
  co_return *revoked_;
}

Task<void> Elapsed::end() {
  if (opener_ != nullptr) co_await opener_->end();
  if (locker_ != nullptr) co_await locker_->end();
  if (holder_ != nullptr) co_await holder_->end();
}

}  // namespace stag::conform::nfs4
