// CallWatch: tells the Observer of a Server of one Call. What became of the Call is read from its
// Reply, so that the code that makes the Reply need not know of it.
#pragma once

#include <optional>
#include <utility>

#include "rpc/observer.h"

namespace stag::rpc {

// Lives in the frame of the Call. Without an Observer it does nothing.
class CallWatch {
 public:
  CallWatch(Observer* observer, const IncomingCall& call) : observer_(observer), ended_(call) {
    if (observer != nullptr) ended_.began = call.origin->loop->now();
  }
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;
  // A Call whose end was not told has none: its connection ends.
  ~CallWatch() { tell(); }

  void begin(const oncrpc::CallHeader& header) {
    if (observer_ == nullptr) return;
    ended_.header = header;
    if (observer_->traces()) ended_.worker_time.emplace();
    observer_->on_call_begun({ended_.call, header});
  }
  // Of a Call that an observer follows; else null.
  WorkerTime* worker_time() { return ended_.worker_time ? &*ended_.worker_time : nullptr; }
  // What was unwrapped of arguments that cannot be read from the Call.
  void plain_arguments(const Buffer& arguments) {
    if (observer_ != nullptr) ended_.plain_arguments = arguments;
  }
  // Results that will be protected, and cannot be read from the Reply.
  void plain_results(const CallResults& results) {
    if (observer_ == nullptr || !results.status.success()) return;
    plain_results_ = results.results.head();
    note_results(plain_results_.bytes());
  }
  // The Call ends with this Reply.
  void end(const OutgoingReply& reply) {
    if (observer_ != nullptr) read(reply);
    tell();
  }
  // The same where there may be none; passes it on.
  std::optional<OutgoingReply>&& end(std::optional<OutgoingReply>&& reply) {
    if (observer_ != nullptr && reply) read(*reply);
    tell();
    return std::move(reply);
  }

 private:
  static std::optional<std::uint32_t> word_at(Bytes bytes, std::size_t at) {
    if (bytes.size() < at + 4) return std::nullopt;
    return load_be<std::uint32_t>(bytes.data() + at);
  }
  void note_results(Bytes results) {
    ended_.first_result = word_at(results, 0);
    ended_.results = results;
  }
  void read(const OutgoingReply& reply);
  void tell() {
    if (Observer* const observer = std::exchange(observer_, nullptr))
      observer->on_call_ended(ended_);
  }

  Observer* observer_;
  EndedCall ended_;
  Buffer plain_results_;
};

}  // namespace stag::rpc
