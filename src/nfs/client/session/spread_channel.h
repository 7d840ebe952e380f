// SpreadChannel: several connections to one server as one Channel, as `nconnect` is to a kernel:
// calls go by them in turn, and past those that are down just now. A Channel connects again only
// for a call: one that calls go past gets a NULL call, which has it do so.
//
// Where some of them are worked for on other loops (rpc/proxy_channel.h), those have the calls with
// bulk, and this loop the others: for these, to wake another loop costs more than it spares
// (decision 0086). Each take the others' where all of theirs are down.
//
// Thread: the loop of the connections.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/task_group.h"
#include "rpc/channel.h"

namespace stag::nfs::client {

class SpreadChannel final : public rpc::Channel {
 public:
  // Of so many connections at most, for which there is memory then.
  explicit SpreadChannel(std::size_t most);

  // From now on calls go by this one, too, whose work is done on another loop, or on this one.
  void add(std::unique_ptr<rpc::Channel> channel, bool elsewhere = false) {
    channels_.push_back({std::move(channel), elsewhere});
    works_elsewhere_ |= elsewhere;
  }
  rpc::Channel& first() const { return *channels_.front().channel; }
  std::size_t size() const { return channels_.size(); }

  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override;
  Task<void> close() override;
  // On those that are there: a server calls back by whichever a session was made by.
  void serve_reverse(rpc::Service& service) override;
  // Of the first one that is connected.
  std::optional<rpc::ChannelLimits> limits() const override;
  std::uint64_t connections_lost() const override;
  Loop& loop() override { return first().loop(); }
  rpc::TransportKind kind() const override { return first().kind(); }
  std::string where() const override { return first().where(); }

 private:
  struct One {
    std::unique_ptr<rpc::Channel> channel;
    bool elsewhere = false;
    bool connecting = false;  // a NULL call waits for the connection
    std::uint64_t lost = 0;   // connections, when calls last went by it
  };
  rpc::Channel& next(bool elsewhere);
  bool is_up(One& one);
  void connect(One& one);
  static Task<void> connected(One& one);

  std::vector<One> channels_;
  std::array<std::size_t, 2> last_{};  // that was taken, for this loop and for others
  bool works_elsewhere_ = false;
  TaskGroup connecting_;
};

}  // namespace stag::nfs::client
