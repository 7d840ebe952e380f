// Connections that this server makes to clients of version 4.0, which listen for callbacks (RFC
// 7530 10.2, RFC 8167 3.1): one for each BackChannel with an address, made for its first Call.
//
// A client is connected to while it is called, and for two minutes after that; once a second,
// sweep() closes the connections of clients that ended and those that nobody used. A client address
// has few of them, and so have all together; at a limit the connection that was idle for longest
// makes room. One attempt is made for the Calls that wait; when it fails, they are lost.
//
// Thread: the loop of the connector, which outlives it, as do the exports. stop() first, then
// destroy.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/failure.h"
#include "base/task_group.h"
#include "nfs/export/export_table.h"
#include "nfs/v4/callback/back_channel.h"
#include "nfs/v4/callback/callback_call.h"
#include "rpc/channel.h"

namespace stag::nfs::nfs4 {

class CallbackConnections {
 public:
  static constexpr std::size_t kAll = 512;
  static constexpr std::size_t kOfClientAddress = 16;
  static constexpr Duration kIdle = std::chrono::minutes(2);

  // `exports`: for their paths in the log.
  CallbackConnections(rpc::Connector& connector, const ExportTable& exports)
      : connector_(connector), exports_(exports) {}
  CallbackConnections(const CallbackConnections&) = delete;

  // `done` runs once, later, on the same loop. `to` has an address.
  void call(std::shared_ptr<BackChannel> to, CallbackRequest request, CallbackDone done);
  void sweep(TimePoint now);
  // Whether there is nothing to look after.
  bool empty() const { return connections_.empty() && closing_.empty(); }
  std::size_t size() const { return connections_.size(); }
  // Ends the Calls and closes what is open. Later Calls are lost.
  Task<void> stop();

 private:
  // Destroyed without an answer, it says that the Call is lost.
  class Waiting {
   public:
    Waiting(CallbackRequest asked, CallbackDone told)
        : request(std::move(asked)), done_(std::move(told)) {}
    Waiting(Waiting&&) = default;
    Waiting& operator=(Waiting&&) = delete;
    ~Waiting() {
      if (!done_) return;
      try {
        done_({});
      } catch (...) {  // Without memory: it is forgotten after a while.
        trace_exception(Reason::TaskFailed);
      }
    }
    void answer(const CallbackOutcome& outcome) { std::exchange(done_, {})(outcome); }

    CallbackRequest request;

   private:
    CallbackDone done_;
  };
  // Its place is made before there is a channel: from then on no allocation is between the channel
  // and the end of its close().
  struct Held {
    std::unique_ptr<rpc::Channel> channel{};  // null: there is none yet
    bool closing = false;
  };
  using HeldList = std::list<Held>;
  struct Connection {
    explicit Connection(std::string address) : client(std::move(address)), held(1) {}
    rpc::Channel* channel() const { return held.front().channel.get(); }

    std::string client;  // its address
    TimePoint used{};
    std::size_t calls = 0;  // in progress
    bool connecting = false;
    HeldList held;
    std::vector<Waiting> waiting{};  // for a channel
  };
  using Key = std::weak_ptr<BackChannel>;
  using Map = std::map<Key, Connection, std::owner_less<Key>>;

  void begin(const std::shared_ptr<BackChannel>& to, Waiting call);
  state::Limit make_room(const std::string& client);
  void note_too_many(const CallbackAddress& to, const CallbackRequest& request,
                     state::Limit reached) const noexcept;
  Task<void> connect(std::shared_ptr<BackChannel> to);
  // The channel is there until its Calls have ended.
  Task<void> perform(std::shared_ptr<BackChannel> to, rpc::Channel& channel, Waiting call);
  void close(Map::iterator at);
  void begin_closing();
  Task<void> close(HeldList::iterator at);

  rpc::Connector& connector_;
  const ExportTable& exports_;
  Map connections_;
  HeldList closing_;
  CancelSource stop_;
  TaskGroup tasks_;
};

}  // namespace stag::nfs::nfs4
