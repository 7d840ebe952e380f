// One side of a simulated connection. The two sides know each other while both exist; what travels
// between them waits in the receiver's line, in the order it was sent. Everything happens in timers
// of this object, so nothing of it survives its destructor.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/sim/memory_table.h"
#include "fabric/sim/outbox.h"
#include "fabric/sim/sim_fabric.h"

namespace stag::fabric {

class SimConnection final : public Connection {
 public:
  struct Setup {
    bool passive = false;
    Parameters parameters;
    std::vector<std::byte> peer_private_data;
    Address peer;
    Address local;
    ReceiveCredit receive;
    std::uint32_t receives_max = 0;
    std::shared_ptr<std::uint32_t>
        listener_count;  // connections of the listener, this one included
  };
  SimConnection(SimFabric& fabric, Setup setup);
  ~SimConnection() override;
  static void join(SimConnection& active, SimConnection& passive);

  void start(Events& events) override;
  void close(Reason reason) override;
  Loop& loop() override { return loop_; }
  const Parameters& parameters() const override { return setup_.parameters; }
  Bytes peer_private_data() const override { return setup_.peer_private_data; }
  Address peer_address() const override { return setup_.peer; }
  Address local_address() const override { return setup_.local; }
  const Traffic& traffic() const override { return traffic_; }
  std::uint64_t progress_mark() const override;
  void add_receive_credit(ReceiveCredit more) override;
  Result<RemoteMemory, Reason> expose_source(Bytes memory) override;
  Result<RemoteMemory, Reason> expose_sink(MutableBytes memory) override;
  Revocation revoke(std::uint32_t handle) override;
  Revocation abandon(std::uint32_t handle) override;
  std::optional<std::size_t> filled(std::uint32_t handle) const override;
  void send(Rope message, std::optional<std::uint32_t> invalidate, Flow flow, Token token) override;
  void write(Rope source, RemoteMemory sink, Flow flow, Token token) override;
  void read(RemoteMemory source, MutableBytes sink, Flow flow, Token token) override;

  // The path between the two sides is gone; each notices later.
  void lose();

 private:
  enum class State : std::uint8_t { Open, Closing, Ending, Gone };
  enum class PacketKind : std::uint8_t { Send, Write, ReadRequest, ReadResponse, Ack, End };
  struct Packet {
    PacketKind kind;
    Outbox::Id operation = 0;  // Ack, ReadResponse: the receiver's; else the sender's
    Buffer data;               // ReadResponse
    Reason reason = Reason::None;
    TimePoint due{};
  };

  // Leaving (sim_connection.cc)
  void post(SimOperation operation);
  void schedule_pump();
  void pump();
  bool depart_one();
  bool inject_failure(const SimOperation& operation);
  void transmit(Packet packet, Duration extra = Duration::zero());
  Result<Ok, Reason> registration_limit(std::size_t size);
  Revocation give_back(std::uint32_t handle, MutableBytes memory);

  // Arriving (sim_arrival.cc)
  void arrive(Packet packet);
  void schedule_arrival();
  void take_arrival();
  void dispatch(Packet packet);
  void on_send(Outbox::Id operation);
  void on_write(Outbox::Id operation);
  void on_read_request(Outbox::Id operation);
  void on_read_response(Packet packet);
  void on_ack(Outbox::Id operation);
  void deliver(const Rope& message, std::optional<std::uint32_t> invalidated);
  void heard();
  void violation(Reason reason);

  // Ending (sim_ending.cc)
  void done(const SimOperation& operation, Reason outcome);
  void lose_this_side();
  void close_when_sent();
  void end(Reason reason);
  void schedule_finish();
  void finish();

  SimFabric& fabric_;
  Loop& loop_;
  Setup setup_;
  std::uint64_t id_;
  SimConnection* peer_ = nullptr;
  Events* events_ = nullptr;
  State state_ = State::Open;
  bool silent_;        // the passive side before the peer's first message
  bool lost_ = false;  // the path is gone
  std::uint32_t delivering_ = 0;
  Reason reason_ = Reason::None;  // why it closes or has ended
  std::uint32_t credit_;
  MemoryTable memory_;
  // By the Send that is being delivered.
  std::uint32_t invalidated_ = 0;
  std::optional<std::size_t> invalidated_filled_;
  std::map<std::uint32_t, std::pair<MutableBytes, Timer>> revoking_;
  Outbox outbox_;
  Traffic traffic_;
  std::uint64_t arrivals_ = 0, acks_ = 0;  // the latter are of Sends and Writes

  TimePoint link_free_{};
  std::deque<Packet> arriving_;
  Timer pump_timer_, arrival_timer_, loss_timer_, close_timer_, finish_timer_;
  bool pump_scheduled_ = false, arrival_scheduled_ = false, finish_scheduled_ = false;
};

}  // namespace stag::fabric
