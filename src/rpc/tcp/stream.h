// RPC records on one TCP connection: reads them whole, writes them in order, and is bounded in both
// directions. Both the client's and the server's side stand on it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/rope.h"
#include "oncrpc/record.h"
#include "rpc/tcp/budget.h"
#include "rpc/tcp/options.h"
#include "rpc/tcp/wire.h"

namespace stag::rpc::tcp {

// Thread: the socket's loop. Held by shared_ptr; the last reference is not let go inside its own
// events (post it away).
class RecordStream final : public std::enable_shared_from_this<RecordStream> {
 public:
  class Events {
   public:
    // Its bytes are taken from the account; the code that is done with them gives them back.
    virtual void on_record(Buffer record) = 0;
    // Whether the owner waits for a Reply. It comes behind whatever the peer has sent before, and
    // what holds up reading may be waiting for it: reading goes on meanwhile.
    virtual bool awaits_reply() const { return false; }
    // A record that was sent with Told::Yes: the wire has taken all of it, or will not any more.
    virtual void on_left(const Rope& /*message*/, bool /*sent*/) noexcept {}
    // The peer took enough for congested() to end.
    virtual void on_room() {}
    // Once, as the last event, never from inside a call of the owner.
    virtual void on_stream_closed(Reason reason) = 0;

   protected:
    ~Events() = default;
  };
  // Names one record on its way out.
  using Ticket = std::uint64_t;
  // Of a record among those that wait to be sent. One that goes ahead leaves before all that have
  // not begun to, but for others that go ahead; those in turn must not wait for ever: ahead of one
  // of them go kMostAhead bytes.
  enum class Turn : bool { Last, Ahead };
  static constexpr std::size_t kMostAhead = 64 << 10;
  // Whether the owner wants to know when a record has left.
  enum class Told : bool { No, Yes };

  // What is read and what waits to be sent counts in `account`.
  RecordStream(std::unique_ptr<Wire> wire, const StreamLimits& limits,
               std::shared_ptr<Account> account);
  ~RecordStream();
  RecordStream(const RecordStream&) = delete;
  RecordStream& operator=(const RecordStream&) = delete;

  void start(Events& events);
  // What is sent in one turn leaves together, as far as one system call takes it. `message` is
  // shorter than 2^31 bytes; what it borrows stays until sent or abandoned. Without memory for it
  // the connection ends.
  Ticket send(Rope message, Turn turn = Turn::Last, Told told = Told::No);
  // Gives borrowed memory of a record back now: one that has not begun to leave is taken out, the
  // rest of one that has is sent from a private copy. Unknown tickets are ignored.
  void abandon(Ticket ticket);

  // Stops and goes on delivering records. What was read behind the last one waits as it came: as
  // records of their own, short ones would take many times their size.
  void pause();
  void resume();
  // The same as pause() for as long as the owner awaits no Reply. While it does, all records are
  // delivered.
  void pause_unless_awaiting();
  // Events::awaits_reply() is true, and was not perhaps.
  void on_reply_awaited() noexcept;
  // There may be room in the account again.
  void on_room_in_account();

  // on_stream_closed(reason) follows in a later turn, unless disowned. Asks for no memory.
  void close(Reason reason) noexcept;
  // Ends the connection in good order: what waits to be sent still leaves, and what the peer sends
  // meanwhile is dropped. on_stream_closed(Shutdown) follows once the peer has ended its side, too,
  // or within a second. A socket that is closed while bytes of the peer are unread resets the
  // connection, and a reset overtakes the last Replies.
  void finish() noexcept;
  bool finishing() const { return finishing_; }
  // The owner hears nothing any more.
  void disown() { events_ = nullptr; }
  bool closed() const { return closed_; }

  bool has_unsent() const { return queued_ > 0; }
  // More waits to be sent than the limit: nothing is read, unless the owner awaits a Reply.
  bool congested() const { return limits_.queued != 0 && held() > limits_.queued; }
  // The peer is behind with what is sent to it by more than a few short records.
  bool lagging() const { return limits_.queued != 0 && waiting_writable_ && held() > kFewRecords; }
  // on_room() follows when a peer that is lagging() took some of it.
  void ask_for_room() { was_congested_ = true; }
  // Memory of a record that waits to be sent, besides its bytes.
  static constexpr std::size_t record_cost() { return kRecordCost; }
  std::uint64_t received_bytes() const { return received_; }
  // Bytes that were sent and not abandoned, whether they have left or not.
  std::uint64_t sent_bytes() const { return written_ + queued_; }
  // How many of them the peer's side has acknowledged. Costs a system call.
  std::uint64_t acknowledged_bytes() const { return written_ - wire_->unacknowledged(); }
  // The beginning of the record in progress, as much of it as came.
  Bytes begun() const { return reader_.begun(); }
  // Bytes of the longest record that is read.
  std::uint32_t record_max() const { return reader_.limits().record; }
  // Reads records of so many bytes from now on, if it did not.
  void allow(std::uint32_t record) { reader_.allow(record); }
  Address peer() const { return wire_->peer(); }
  Address local() const { return wire_->local(); }
  Loop& loop() const { return loop_; }

 private:
  struct Outgoing {
    std::array<std::byte, oncrpc::kRecordMarkSize> mark;
    bool ahead = false;
    Told told = Told::No;
    Rope message;
    std::size_t sent = 0;  // of mark and message
    Ticket ticket = 0;
    std::size_t size() const { return mark.size() + message.size(); }
  };
  // A short one has a whole block of its Encoder, and the queue grows by as much as it has.
  static constexpr std::size_t kShortBlock = 512 + 64;
  static constexpr std::size_t kRecordCost = 2 * sizeof(Outgoing) + kShortBlock;
  static constexpr std::size_t kFewRecords = 16 << 10;

  // What has to happen for the connection to get on, by the peer or, where the account has no room,
  // by others, and how far that is: two equal ones mean that nothing did meanwhile.
  enum class Debt : std::uint8_t { None, Replies, Record, Room };
  struct Progress {
    Debt owed = Debt::None;
    std::uint64_t debt = 0;
    std::uint64_t bytes = 0;  // acknowledged, or received; of Room: requests that were granted
    bool operator==(const Progress&) const = default;
  };
  Progress progress() const;
  // Whether nothing has moved since the watch began.
  bool stalled() const;

  enum class Paused : std::uint8_t { No, UnlessAwaiting, Yes };
  bool awaiting() const { return !closed_ && events_ != nullptr && events_->awaits_reply(); }
  bool paused() const {
    return paused_ == Paused::Yes || (paused_ == Paused::UnlessAwaiting && !awaiting());
  }
  // Reading is held back, on this side's account.
  bool refrains() const { return paused() || (congested() && !awaiting()); }
  bool may_read() const { return !closed_ && (finishing_ || (!starved_ && !refrains())); }
  std::size_t waiting_records() const { return queue_.size() - first_; }
  // What waits to be sent, in memory.
  std::size_t held() const { return queued_ + waiting_records() * kRecordCost; }
  void count_held();
  bool pay();
  template <class F>
  void guarded(F&& body) noexcept;
  void enqueue(Rope&& message, Turn turn, Told told);
  void put_ahead(Outgoing&& record);
  void tell(const Rope& message, bool sent) noexcept;
  void take_out(Ticket ticket);
  void read_some();
  void await_readable();
  void read();
  std::size_t read_once(std::size_t most_ahead, bool& drained);
  std::size_t take_records(Bytes bytes);
  void deliver(Bytes bytes);
  void deliver_unread();
  void hand_over();
  void read_later();
  void flush_later();
  void flush();
  std::size_t gather(std::span<iovec> pieces) const;
  void consume(std::size_t bytes);
  void write_queue();
  void drop_input();
  void watch_for_stall();
  void watch_record();
  void await_deadline();

  const std::unique_ptr<Wire> wire_;
  Loop& loop_;
  StreamLimits limits_;
  Events* events_ = nullptr;
  const std::shared_ptr<Account> account_;
  oncrpc::RecordReader reader_;
  std::size_t few_ahead_ = 1 << 10;  // that a few records fit
  std::size_t paid_ = 0;             // of the record in progress, out of the account
  std::vector<std::byte> unread_;    // what came behind the record with which pause() came
  std::size_t unread_at_ = 0;        // of it the first that is still to be delivered
  std::vector<Outgoing> queue_;      // from first_ on
  std::size_t first_ = 0;
  std::size_t ahead_ = 0;    // bytes that went ahead since a record in turn has left
  std::size_t queued_ = 0;   // bytes on the wire
  std::size_t counted_ = 0;  // of held(), in the account
  Ticket last_ticket_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t debts_ = 0;  // how often the peer began to owe something
  Progress at_watch_;
  std::uint64_t written_at_watch_ = 0;
  Timer stall_timer_;
  std::uint64_t records_ = 1;       // the one being read
  std::uint64_t timed_record_ = 0;  // the one `record_due_` is for
  TimePoint record_due_{};
  Timer record_timer_;
  Paused paused_ = Paused::No;
  bool starved_ = false;  // the account has no room for the record in progress
  bool waiting_readable_ = false;
  bool waiting_writable_ = false;
  bool reading_ = false;
  bool flush_scheduled_ = false;
  bool stall_watched_ = false;
  bool record_watched_ = false;
  bool was_congested_ = false;  // or was asked for room: on_room() is owed
  bool finishing_ = false;
  bool output_ended_ = false;
  bool held_back_ = false;  // reading has stopped, on our account, and not begun again
  bool closed_ = false;
};

}  // namespace stag::rpc::tcp
