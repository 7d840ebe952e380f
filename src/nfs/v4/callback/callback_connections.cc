#include "nfs/v4/callback/callback_connections.h"

#include <algorithm>

#include "base/reason.h"
#include "nfs/v4/compound/limit_notes.h"

namespace stag::nfs::nfs4 {

namespace {

// To a client of version 4.0, where no CB_SEQUENCE goes before it.
std::string_view operation_of(const CallbackRequest& request) {
  const auto& operations = request.compound.argarray;
  if (operations.empty()) return "CB_NULL";
  const std::string_view name = v4::to_string(operations.front().argop);
  return name.substr(std::string_view("OP_").size());
}

}  // namespace

void CallbackConnections::call(std::shared_ptr<BackChannel> to, CallbackRequest request,
                               CallbackDone done) {
  // The caller is in the middle of something, so nothing is answered at once.
  connector_.loop().post(
      [this, to = std::move(to), call = Waiting(std::move(request), std::move(done))]() mutable {
        begin(to, std::move(call));
      });
}

void CallbackConnections::begin(const std::shared_ptr<BackChannel>& to, Waiting call) {
  if (stop_.cancelled()) return;
  auto at = connections_.find(to);
  if (at == connections_.end()) {
    const state::Limit reached = make_room(to->address()->client);
    if (reached != state::Limit::None) return note_too_many(*to->address(), call.request, reached);
    at = connections_.emplace(to, Connection(to->address()->client)).first;
  }
  Connection& connection = at->second;
  connection.used = connector_.loop().now();
  if (rpc::Channel* const channel = connection.channel())
    return tasks_.add(perform(to, *channel, std::move(call)));
  connection.waiting.push_back(std::move(call));
  if (!std::exchange(connection.connecting, true)) tasks_.add(connect(to));
}

// Closes the connection that was idle for longest, of the address or of all, where there are as
// many as there may be. The limit where none was idle.
state::Limit CallbackConnections::make_room(const std::string& client) {
  const auto of_client = static_cast<std::size_t>(std::ranges::count_if(
      connections_, [&](const auto& one) { return one.second.client == client; }));
  const bool own = of_client >= kOfClientAddress;
  if (!own && connections_.size() < kAll) return state::Limit::None;
  auto oldest = connections_.end();
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    const Connection& one = at->second;
    if (one.channel() == nullptr || one.calls > 0 || (own && one.client != client)) continue;
    if (oldest == connections_.end() || one.used < oldest->second.used) oldest = at;
  }
  if (oldest == connections_.end()) return own ? state::Limit::Address : state::Limit::All;
  close(oldest);
  return state::Limit::None;
}

// As note_limit() has it, but for the XID: a Call that is not made has none.
void CallbackConnections::note_too_many(const CallbackAddress& to, const CallbackRequest& request,
                                        state::Limit reached) const noexcept {
  try {
    std::string detail = "client " + std::to_string(request.clientid);
    if (const std::string* path = exports_.current()->path_of(request.export_id))
      detail += ", export " + *path;
    detail += ", ";
    detail += operation_of(request);
    detail += " to " + to_string(to.address) + ": ";
    detail += name_of(reached);
    trace(Reason::CallbacksTooMany, to.client, detail);
  } catch (const std::bad_alloc&) {
    trace(Reason::CallbacksTooMany, to.client);
  }
}

Task<void> CallbackConnections::connect(std::shared_ptr<BackChannel> to) {
  // It is gone after this, whatever happens, if it is not connected; who waits is told then.
  struct Attempt {
    Map& connections;
    const Key key;
    ~Attempt() {
      const auto at = connections.find(key);
      if (at != connections.end() && at->second.channel() == nullptr) connections.erase(at);
    }
  } attempt{connections_, to};
  auto made = co_await connector_.connect(to->address()->address, stop_);
  if (!made) {
    trace(made.error().reason, to_string(to->address()->address), "callbacks of NFS version 4.0");
    co_return;
  }
  // It stays until this has ended.
  auto at = connections_.find(to);
  at->second.connecting = false;
  at->second.held.front().channel = *std::move(made);
  if (stop_.cancelled()) {
    close(at);
    co_return;
  }
  std::vector<Waiting> waiting = std::exchange(at->second.waiting, {});
  for (Waiting& one : waiting) {
    tasks_.add(perform(to, *at->second.channel(), std::move(one)));
    // When one is lost, so are the others.
    at = connections_.find(to);
    if (at == connections_.end()) break;
  }
}

// A connection on which a Call was lost is not used again.
Task<void> CallbackConnections::perform(std::shared_ptr<BackChannel> to, rpc::Channel& channel,
                                        Waiting call) {
  const auto mine = [&] {
    const auto at = connections_.find(to);
    return at != connections_.end() && at->second.channel() == &channel ? at : connections_.end();
  };
  const auto count = [&](std::size_t change) {
    if (const auto at = mine(); at != connections_.end()) at->second.calls += change;
  };
  CallbackOutcome outcome;
  count(1);
  try {
    outcome = co_await call_back(channel, call.request);
  } catch (const std::bad_alloc&) {
    outcome = {};
  }
  count(-std::size_t{1});
  if (const auto at = mine(); at != connections_.end()) {
    at->second.used = connector_.loop().now();
    if (outcome.kind == CallbackOutcome::Kind::Lost) close(at);
  }
  call.answer(outcome);
}

void CallbackConnections::close(Map::iterator at) {
  if (at->second.channel() != nullptr) closing_.splice(closing_.end(), at->second.held);
  connections_.erase(at);
  begin_closing();
}

// What cannot be closed for want of memory is closed at the next look.
void CallbackConnections::begin_closing() {
  for (auto at = closing_.begin(); at != closing_.end();) {
    const auto next = std::next(at);
    try {
      if (!at->closing) tasks_.add(close(at));
    } catch (const std::bad_alloc&) {
    }
    at = next;
  }
}

Task<void> CallbackConnections::close(HeldList::iterator at) {
  at->closing = true;
  try {
    co_await at->channel->close();
  } catch (const std::bad_alloc&) {
    at->closing = false;
  }
  if (at->closing) closing_.erase(at);
}

void CallbackConnections::sweep(TimePoint now) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    const Connection& one = at->second;
    const bool idle = one.channel() != nullptr && one.calls == 0 && now >= one.used + kIdle;
    const auto next = std::next(at);
    if (idle || (at->first.expired() && !one.connecting)) close(at);
    at = next;
  }
  begin_closing();
}

Task<void> CallbackConnections::stop() {
  stop_.cancel();
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto next = std::next(at);
    if (!at->second.connecting) close(at);
    at = next;
  }
  co_await tasks_.join();
  while (!closing_.empty()) {
    co_await resume_on(connector_.loop());
    begin_closing();
    co_await tasks_.join();
  }
}

}  // namespace stag::nfs::nfs4
