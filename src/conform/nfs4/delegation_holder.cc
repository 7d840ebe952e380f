#include "conform/nfs4/delegation_holder.h"

#include "base/pause.h"

namespace stag::conform::nfs4 {
namespace {

// A server may look first whether the client can be called, and give nothing meanwhile.
constexpr int kAttempts = 50;
constexpr auto kBetweenAttempts = std::chrono::milliseconds(50);

// Where a client of version 4.0 listens; null: it has no address, or none is needed.
std::unique_ptr<CallbackPlace> place_for(const Scene& scene) {
  const ClientOptions& options = scene.client.options();
  if (scene.minor() != 0 || options.callbacks == nullptr || !options.make_place) return nullptr;
  std::unique_ptr<CallbackPlace> place = options.make_place();
  if (place != nullptr && !place->listen(options.callbacks->service())) place.reset();
  return place;
}

ClientOptions options_for(const Scene& scene, CallbackPlace* place) {
  ClientOptions options = scene.other_client("holder", true);
  options.place = place;
  return options;
}

// No client writes "f".
Task<std::string> make_closed_file(Scene& scene) {
  std::string trouble = co_await prepare(scene, a_file("f"));
  Steps closing;
  closing.push_back(at("f"));
  closing.push_back(close("f"));
  if (trouble.empty()) trouble = co_await prepare(scene, std::move(closing));
  co_return trouble;
}

}  // namespace

DelegationHolder::DelegationHolder(Scene& of)
    : place_(place_for(of)),
      client_(of.client.channel(), options_for(of, place_.get())),
      scene_(client_, none_, of.label + " holder") {}

// Opens "f" until a delegation comes with it. A sentence about what failed, or nothing.
Task<std::string> DelegationHolder::open_delegated() {
  std::string trouble;
  for (int i = 0; i < kAttempts && trouble.empty(); ++i) {
    Steps opening;
    opening.push_back(own());
    opening.push_back(open({.name = "f", .access = kRead, .delegated = true}));
    trouble = co_await prepare(scene_, std::move(opening));
    if (!trouble.empty() || scene_.states.contains(kDelegation)) break;
    Steps closing;
    closing.push_back(at("f"));
    closing.push_back(close("f"));
    trouble = co_await prepare(scene_, std::move(closing));
    co_await pause(client_.channel().loop(), kBetweenAttempts, client_.options().cancel);
  }
  co_return trouble;
}

Task<Verdict> DelegationHolder::obtain(Scene& of) {
  if (client_.options().callbacks == nullptr)
    co_return Verdict::skip("there is nobody who could be called");
  if (of.minor() == 0 && place_ == nullptr)
    co_return Verdict::skip(
        "this client has no address at which it could be called; "
        "callback=ADDRESS in the URL gives it one");
  std::string trouble = co_await make_closed_file(of);
  for (const char* name : {"own", "f"}) scene_.handles[name] = of.handle(name);
  if (trouble.empty()) trouble = co_await client_.establish();
  if (trouble.empty()) trouble = co_await open_delegated();
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  co_return scene_.states.contains(kDelegation) ? Verdict::pass()
                                                : Verdict::skip("the server gave no delegation");
}

Task<void> DelegationHolder::end() {
  co_await tidy(scene_);
  co_await client_.leave();
  if (place_ != nullptr) co_await place_->close();
}

Task<Verdict> with_delegation(Scene& scene, DelegationUse use) {
  DelegationHolder holder(scene);
  Verdict verdict = co_await holder.obtain(scene);
  if (verdict.outcome == Outcome::Pass) verdict = co_await use(scene, holder.scene());
  co_await holder.end();
  co_return verdict;
}

Task<Reply> give_back(Scene& holder) {
  Steps steps;
  steps.push_back(at("f"));
  steps.push_back(delegreturn(kDelegation));
  co_return co_await send(holder, steps);
}

}  // namespace stag::conform::nfs4
