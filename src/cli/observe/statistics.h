// Statistics: what a server counts about its calls, connections and bytes. Each thread that serves
// counts for itself (count.h), so a call takes no lock and allocates nothing; sums are made when
// they are asked for.
//
// The time of a call is from the loop's turn that brought it to the end of its execution: the
// loop's time, which costs nothing, and one reading of the clock.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/observe/count.h"
#include "cli/observe/moved_bytes.h"
#include "cli/observe/procedures.h"
#include "nfs/v4/operation_observer.h"
#include "rpc/observer.h"

namespace stag::cli {

// Bytes of RPC messages by how they travelled.
enum class Travelled : std::uint8_t {
  InlineIn,    // RDMA: in the message of a Call
  InlineOut,   // in that of a Reply
  ReadChunk,   // arguments that this side fetched by RDMA Read
  ZeroChunk,   // Calls that it fetched so, from Position Zero
  WriteChunk,  // results that this side placed by RDMA Write
  ReplyChunk,  // Replies that it placed
  TcpIn,
  TcpOut,
  UdpIn,
  UdpOut,
  Count_
};
inline constexpr std::size_t kTravelled = static_cast<std::size_t>(Travelled::Count_);

inline constexpr std::size_t kTransports = 4;  // of rpc::TransportKind
std::string_view name_of_transport(rpc::TransportKind transport);

// Exports that are counted by themselves at a time; all others together are in one more slot.
inline constexpr std::size_t kExportSlots = 64;

struct ConnectionRow {
  std::uint64_t number = 0;  // no other connection has it, also not one with the same port later
  std::string address;
  std::uint16_t port = 0;
  rpc::TransportKind transport{};
  Duration age{};
  Duration idle{};  // since its last call
  std::uint64_t calls = 0, errors = 0, bytes_in = 0, bytes_out = 0;
  std::uint32_t credits = 0;  // that it was granted last; RDMA only
};

struct StatisticsSums {
  std::array<HistogramSum, kProcedureSlots> calls;
  std::array<HistogramSum, kOperationSlots> operation_times;  // of those on a filehandle
  std::array<std::uint64_t, kOperationSlots> operations{};
  std::array<HistogramSum, kExportSlots + 1> exports;
  std::array<MovedBytes, kExportSlots + 1> moved;
  std::vector<std::string> export_paths;  // of the slots in order
  std::array<std::uint64_t, kTravelled> bytes{};
  std::array<std::uint64_t, kTransports> connected{}, disconnected{};
  std::uint64_t read_chunks = 0, writes = 0;
  // Errors that are not in `errors`, for want of room.
  std::uint64_t uncounted_call_errors = 0, uncounted_operation_errors = 0;
  struct Error {
    bool operation = false;
    std::size_t slot = 0;
    std::uint32_t status = 0;  // CallStatus, or nfsstat4 of an operation
    std::uint64_t count = 0;
  };
  std::vector<Error> errors;  // by slot and status
};

// The arguments of a Call that has a header, as the procedure got them; empty: they could not be
// read.
Bytes arguments_of(const rpc::EndedCall& call);

class Statistics {
 public:
  using Clock = TimePoint (*)();
  explicit Statistics(Clock clock);
  ~Statistics();

  // On the loops. What cannot be counted for want of memory is not.
  void on_connected(const rpc::Origin& origin) noexcept;
  void on_disconnected(const rpc::Origin& origin) noexcept;
  // Yields how long the Call took, and its status.
  struct Ended {
    Duration took{};
    std::size_t slot = 0;
    CallStatus status = kDone;
    // The export that the file handle claims to be of. nullopt: there is none, or
    // it could not be read.
    std::optional<std::uint32_t> export_id{};
  };
  Ended on_call_ended(const rpc::EndedCall& call) noexcept;
  void on_call_arrived(const rpc::Origin& origin, const rpc::ArrivedCall& call) noexcept;
  void on_reply_sent(const rpc::Origin& origin, const rpc::SentReply& reply) noexcept;
  TimePoint on_operation(const nfs::nfs4::EndedOperation& operation) noexcept;

  // Any thread.
  StatisticsSums sums() const;
  std::vector<ConnectionRow> connections() const;
  // "rdma 192.0.2.7:1023" of a connection, by its Origin, which may be gone; empty: it is not
  // there.
  std::string name_of(const void* origin) const;
  // Counts these exports by themselves from now on, as far as there are slots; all that there are.
  // A path keeps its slot, and the id of its export changes when another folder is served there.
  // That of an export that is gone is given to a new one where there is no other, and counts from 0
  // then.
  struct KnownExport {
    std::uint32_t id = 0;
    std::string path;
  };
  void know(const std::vector<KnownExport>& exports);

 private:
  struct Connected;
  struct Stripe;

  // That of this thread; null without memory.
  Stripe* stripe() noexcept { return latest_.of == own_ ? latest_.stripe : find_stripe(); }
  Stripe* find_stripe() noexcept;
  std::size_t export_slot(std::uint32_t id) const noexcept;
  struct ExportSlot {
    std::string path;
    HistogramSum before{};  // what the slot had counted when this path got it
    MovedBytes moved_before{};
    std::uint64_t gone = 0;  // the look at the exports that it was missing in first; 0: it is there
  };
  // With the mutex held. kExportSlots: there is none.
  std::size_t slot_for(const std::string& path);
  MovedBytes moved_in(std::size_t slot) const;

  // What this thread has counted in last.
  struct Latest {
    std::uint64_t of = 0;
    Stripe* stripe = nullptr;
  };
  static constinit thread_local Latest latest_;

  const Clock clock_;
  const std::uint64_t own_ = next_number();  // no other Statistics has it
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Stripe>> stripes_;  // guarded by mutex_
  std::vector<ExportSlot> slots_;                 // guarded by mutex_
  std::uint64_t looks_ = 0;                       // at the exports; guarded by mutex_
  // Connections of threads that had no memory for their Stripe at that time: it may be there when
  // the connection ends, and more would be closed than opened.
  std::array<std::atomic<std::uint64_t>, kTransports> opened_without_{}, closed_without_{};
  static constexpr std::uint64_t kNoExport = ~std::uint64_t{0};  // ids have 32 bits
  std::array<std::atomic<std::uint64_t>, kExportSlots> export_ids_{};
  std::atomic<std::size_t> exports_{0};

  static std::uint64_t next_number();
};

}  // namespace stag::cli
