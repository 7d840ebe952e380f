// The client's half of RPCSEC_GSS: one context at a time, made when a Call needs it and shared by
// all Calls; the others wait while it is made. A Call that takes long keeps its context, and those
// that come a window later have another one: where a KDC hangs they go on with the old one, but for
// the Call that asks. Thread: one loop's.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/completion.h"
#include "base/task_group.h"
#include "rpc/channel.h"
#include "rpc/gss/client_context.h"
#include "rpc/gss/rpcsec_gss.h"

namespace stag::rpc {

class GssClient final : public ClientSecurity,
                        public ContextObserver,
                        public std::enable_shared_from_this<GssClient> {
 public:
  explicit GssClient(GssClientOptions options);

  bool transforms() const override { return options_.service != gss::Service::none; }
  std::uint32_t reply_overhead() const override;
  Task<Result<std::unique_ptr<CallSecurity>, CallError>> begin(Channel& channel,
                                                               const oncrpc::CallHeader& header,
                                                               const CallMessage& message) override;
  Task<void> end(Channel& channel) override;
  oncrpc::AuthFlavor flavor() const override { return gss::pseudo_flavor(options_.service); }
  void on_call_ended() override;

 private:
  // Waits for a wake(), or until it is time to do without another context: Reason::None. Else why
  // `message` waits no longer.
  using Waiter = Completion<Reason>;
  Task<Reason> wait(Loop& loop, const CallMessage& message);
  void wake(std::size_t count);

  bool usable(Loop& loop) const { return context_ != nullptr && context_->usable(loop.now()); }
  std::shared_ptr<ClientContext> take_unused();
  void destroy_unused(Channel& channel, TaskGroup* group);
  Task<std::optional<CallError>> replace_context(Channel& channel, const oncrpc::CallHeader& header,
                                                 const CallMessage& message);

  const GssClientOptions options_;
  std::shared_ptr<ClientContext> context_;
  // Contexts that new Calls do not use, for they were outrun, or good for nothing when they were
  // made. The server is told of each when no Call is in progress there.
  std::vector<std::shared_ptr<ClientContext>> left_;
  oncrpc::CallHeader header_;  // program and version of the context's set-up
  class SettingUp;
  bool setting_up_ = false;
  TimePoint patience_ends_{};         // of those who have a context and wait for another
  std::uint32_t set_ups_ = 0;         // that have ended
  std::optional<CallError> failure_;  // of the last one
  // Whether that failed because the Call that made it ended: others may have better luck.
  bool failed_for_one_ = false;
  std::deque<Waiter*> waiters_;
  Loop* loop_ = nullptr;  // once anybody has waited
};

}  // namespace stag::rpc
