// One software iWARP connection: the pure core of module iwarp between a TCP socket and
// fabric::Events.
//
// Receiving. The loop's read-ahead buffer belongs to the thread, so idle connections hold none;
// whole FPDUs are used where they lie in it. The rest of a large tagged FPDU is received straight
// into its target, and with it what goes on behind it, up to a MiB in one system call; with a
// little room behind all that for a message that follows.
//
// Sending. All that becomes ready in one turn of the loop leaves together: at the end of a turn
// that received, or in a turn of its own. Events come from those turns only, never from inside an
// owner's call.
//
// Where memory runs out in the middle of a turn, the connection ends with it (decision 0014), and
// its end asks for none: what cannot be copied for a good end of the stream does not leave.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/iwarp/iwarp_options.h"
#include "fabric/iwarp/read_ahead.h"
#include "fabric/iwarp/ring.h"
#include "fabric/stall_watch.h"
#include "fabric/iwarp/system_entropy.h"
#include "fabric/iwarp/transmit_queue.h"
#include "fabric/registrations.h"
#include "iwarp/batch.h"
#include "iwarp/memory.h"
#include "iwarp/negotiation.h"
#include "iwarp/receiver.h"
#include "iwarp/sender.h"
#include "net/loop.h"
#include "net/socket.h"

namespace stag::fabric {

// A connection whose MPA set-up is complete.
struct IwarpSetup {
  std::shared_ptr<const IwarpOptions> options;
  net::TcpSocket socket;
  bool active = false;
  iwarp::Negotiated negotiated;
  std::vector<std::byte> peer_private_data;
  ReceiveCredit receive;
  Duration stall_limit{0};
  // Kept as long as the connection is; how a listener counts those it has.
  std::shared_ptr<void> place;
};

class IwarpConnection final : public Connection, private iwarp::ReceiverSink, private net::Reader {
 public:
  explicit IwarpConnection(IwarpSetup setup);
  ~IwarpConnection() override;

  void start(Events& events) override;
  void close(Reason reason) override;
  Loop& loop() override { return loop_; }
  const Parameters& parameters() const override { return parameters_; }
  Bytes peer_private_data() const override { return private_data_; }
  Address peer_address() const override { return peer_; }
  Address local_address() const override { return local_; }
  const Traffic& traffic() const override;
  std::uint64_t progress_mark() const override;
  void add_receive_credit(ReceiveCredit more) override;
  Result<RemoteMemory, Reason> expose_source(Bytes memory) override;
  Result<RemoteMemory, Reason> expose_sink(MutableBytes memory) override;
  Revocation revoke(std::uint32_t handle) override;
  Revocation abandon(std::uint32_t handle) override;
  std::optional<std::size_t> filled(std::uint32_t handle) const override {
    return table_.touched(handle);
  }
  void send(Rope message, std::optional<std::uint32_t> invalidate, Flow flow, Token token) override;
  void send_copy(std::span<const Bytes> parts, std::optional<std::uint32_t> invalidate, Flow flow,
                 Token token) override;
  void write(Rope source, RemoteMemory sink, Flow flow, Token token) override;
  void read(RemoteMemory source, MutableBytes sink, Flow flow, Token token) override;

 private:
  // An FPDU's payload is received straight into its place while at least this much of it is
  // missing; of tagged data a quarter of it.
  static constexpr std::size_t kDirectThreshold = 4096;

  // Closing: no more events of the peer's; what is posted still leaves. Broken: nothing leaves any
  // more, since the stream cannot go on where it stands; the end comes in a later turn.
  enum class State : std::uint8_t { Open, Closing, Broken, Ended };
  // A message whose last byte is the `end`th of the outgoing stream.
  struct Leaving {
    std::uint64_t end = 0;
    Token token = kNoToken;
  };
  struct OutstandingRead {
    Token token = kNoToken;
    std::uint32_t stag = 0;
  };
  // Outlives the connection, for what was posted to the loop.
  struct Anchor {
    IwarpConnection* connection;
  };

  // iwarp::ReceiverSink
  void on_send(Buffer message, std::optional<std::uint32_t> invalidated, bool solicited) override;
  void on_read_request(const iwarp::ReadRequest& request) override;
  void on_read_done(const iwarp::ReadRequest& request) override;
  void on_terminate(const iwarp::Terminate& terminate) override;
  void on_violation(const iwarp::Violation& violation) override;

  void begin_events();

  // iwarp_receive.cc: a turn of the loop that reads.
  void on_readable() override;
  // Whether to wait for readiness (else the turn's budget is spent).
  void read_some();
  void on_stream_end(Reason reason);

  // iwarp_transmit.cc: a turn that writes.
  // RFC 5044 7.1.2 rule 4: the responder sends nothing before it has received an FPDU.
  bool may_transmit() const { return !held_ && (active_ || receiver_.first_fpdu_seen()); }
  // Nothing is to go into the batch.
  bool nothing_posted() const { return sender_.idle() && queue_.empty(); }
  void post(Operation&& operation);
  void post_late(Token token);
  bool may_begin_at_once(Flow flow) const;
  void begin_at_once(Operation& operation);
  void write_early();
  void send_short(std::span<const Bytes> parts, std::size_t size,
                  std::optional<std::uint32_t> invalidate, Token token);
  void schedule_flush();
  void flush();
  bool write_some();
  // False when the connection has ended meanwhile.
  bool fill_batch();
  bool fill();
  bool begin(Outgoing& outgoing);
  bool begin(Operation& operation);
  bool begin_read(const Operation& operation);
  void message_filled();
  // Whether a message has left whose owner is to be told.
  bool any_written() { return !leaving_.empty() && leaving_.front().end <= batch_.written(); }
  void report_written() {
    if (any_written()) report_done();
  }
  void report_done();
  void start_wakeup_writes();
  void wakeup_write();

  // The memory behind bytes that are still to be written is about to be its owner's again.
  void release_unwritten();
  void keep_private_copy(std::uint32_t handle, Bytes source);
  void drop_private_copy(std::uint32_t handle);
  Result<RemoteMemory, Reason> exposed(std::optional<std::uint32_t> stag, std::uint64_t offset,
                                       std::size_t length);

  // iwarp_stall.cc
  void watch_peer();
  void look_at_peer();
  std::uint64_t acknowledged() const;

  // iwarp_ending.cc
  void close_when_flushed();
  void end_now() { end(reason_); }
  void break_off() noexcept;
  // In a turn that reads, which nothing keeps from coming.
  void end_if_broken();
  // Inside a catch block, in a turn of the loop.
  void end_by_exception();
  void end_with(const iwarp::Violation& violation);
  void end(Reason reason);
  void release_socket();
  void tell_end();

  // Runs `step` in a later turn, if this is still there then.
  void later(void (IwarpConnection::*step)());

  std::shared_ptr<const IwarpOptions> options_;
  net::TcpSocket socket_;
  net::EpollLoop& loop_;
  const bool active_;
  const Parameters parameters_;
  const std::vector<std::byte> private_data_;
  const Address peer_, local_;
  std::shared_ptr<void> place_;
  std::shared_ptr<Anchor> anchor_;

  Events* events_ = nullptr;
  State state_ = State::Open;
  Reason reason_ = Reason::None;  // why it closes or has ended
  bool close_due_ = false;        // a later turn than close()'s has come
  bool end_told_ = false;
  Timer close_limit_;

  SystemEntropy entropy_;
  iwarp::StagTable table_;
  RegistrationTally tally_{RegistrationCount::of_iwarp()};  // of the table
  iwarp::Receiver receiver_;
  iwarp::Sender sender_;
  iwarp::Batch batch_;
  TransmitQueue queue_;

  Token filling_ = kNoToken;       // of the message the sender is at
  bool filling_response_ = false;  // or it is a Read Response
  Ring<Leaving> leaving_;          // in the batch
  std::uint64_t borrowed_until_ =
      0;                         // the batch refers to exposed memory up to this byte of the stream
  Ring<OutstandingRead> reads_;  // in the order of their requests
  std::vector<std::pair<std::uint32_t, std::size_t>> private_copies_;  // handle, bytes
  std::vector<Token> late_;  // posted after the end, not yet reported

  bool busy_ = false;  // in a turn that flushes at its end
  bool flush_posted_ = false;
  bool wait_writable_ = false;
  bool held_ = false;                              // first_fpdu_delay
  bool heard_ = false;                             // anything, since the set-up
  bool in_bulk_ = false;                           // the last read had a direct target
  std::size_t many_in_crowd_ = kReadAheadInCrowd;  // bytes to read ahead where others wait
  int held_back_ = 0;                              // short Sends of this turn that are not written
  int wakeup_writes_ = 0;
  Timer hold_;
  Timer wakeup_write_timer_;
  std::uint64_t received_ = 0;  // bytes of the stream

  // The peer owes that it takes our bytes, answers our Reads, ends what it has begun.
  const Duration stall_limit_;
  StallWatch taking_, answering_, ending_;
  bool peer_watched_ = false;
  Timer stall_timer_;
  mutable Traffic traffic_;
};

}  // namespace stag::fabric
