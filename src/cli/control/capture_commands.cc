#include "cli/control/capture_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>

#include "cli/observe/capture_queue.h"
#include "fabric/capture/pcapng.h"

namespace stag::cli {
namespace {

// How long frames wait before they go, and how long a row is waited for where there are none: so
// soon it is known that the asker is gone, or wants to end.
constexpr Duration kTick = std::chrono::milliseconds(10);
constexpr Duration kBeat = std::chrono::milliseconds(200);

struct CaptureWish {
  std::optional<IpNetwork> client{};
  std::uint64_t most = 0;
  TimePoint end = TimePoint::max();
};

Result<CaptureWish, std::string> wish_of(const ControlRequest& request, TimePoint now) {
  constexpr std::uint64_t kMostSeconds = 366 * 86400;
  CaptureWish wish;
  if (const auto text = request.members.text("client")) {
    wish.client = IpNetwork::parse(*text);
    if (!wish.client) return Failure{fmt::format("'{}' is no address", *text)};
  }
  wish.most = request.members.number("max").value_or(std::numeric_limits<std::int64_t>::max());
  if (const auto seconds = request.members.number("seconds"))
    wish.end = now + std::chrono::seconds(std::min(*seconds, kMostSeconds));
  return wish;
}

// One capture, from its beginning to its end.
class RunningCapture {
 public:
  RunningCapture(fabric::capture::Tap& tap, const CaptureWish& wish, std::size_t room,
                 ControlReply& reply)
      : tap_(tap),
        wish_(wish),
        queue_(std::make_shared<CaptureQueue>(wish.most, room)),
        reply_(reply) {
    leaving_.reserve(room);
    tap_.add(queue_, wish.client);
  }
  RunningCapture(const RunningCapture&) = delete;
  RunningCapture& operator=(const RunningCapture&) = delete;
  ~RunningCapture() { tap_.remove(*queue_); }

  Task<void> run();

 private:
  // Why it ends; null: it goes on.
  const char* end() const;
  Task<void> await_frames();
  // False: nobody asks any more.
  Task<bool> pass_on(const char* end);
  Task<bool> pass_piece(Bytes piece, const char* end);

  fabric::capture::Tap& tap_;
  const CaptureWish wish_;
  const std::shared_ptr<CaptureQueue> queue_;
  ControlReply& reply_;
  std::vector<std::byte> leaving_;
  bool asked_ = false;
};

Task<void> RunningCapture::run() {
  for (;;) {
    co_await await_frames();
    const char* const why = end();
    if (why != nullptr) tap_.remove(*queue_);
    const bool heard = co_await pass_on(why);
    if (!heard || why != nullptr) co_return;
  }
}

const char* RunningCapture::end() const {
  if (asked_) return "asked";
  if (queue_->is_full()) return "size";
  return reply_.loop().now() >= wish_.end ? "time" : nullptr;
}

Task<void> RunningCapture::await_frames() {
  const TimePoint beat = reply_.loop().now() + kBeat;
  while (queue_->is_empty() && end() == nullptr && reply_.loop().now() < beat)
    co_await sleep_for(reply_.loop(), kTick);
}

Task<bool> RunningCapture::pass_on(const char* end) {
  queue_->pass_to(leaving_);
  Bytes rest = leaving_;
  for (;;) {
    const std::size_t size = fabric::capture::whole_blocks(rest, CaptureCommands::kPiece);
    const Bytes piece = rest.first(size);
    rest = rest.subspan(size);
    const bool heard = co_await pass_piece(piece, rest.empty() ? end : nullptr);
    if (!heard || rest.empty()) co_return heard;
  }
}

Task<bool> RunningCapture::pass_piece(Bytes piece, const char* end) {
  const CaptureQueue::Counts counts = queue_->counts();
  Json row;
  row.set("bytes", std::uint64_t{piece.size()})
      .set("frames", counts.frames - counts.late)
      .set("lost", counts.lost - counts.late);
  if (end != nullptr) row.set("end", std::string_view(end));
  reply_.add(row);
  reply_.add_bytes(piece);
  const bool sent = co_await reply_.flush();
  if (!sent) co_return false;
  const std::optional<std::string> answer = co_await reply_.next_line();
  asked_ = asked_ || answer == "end";
  co_return answer.has_value();
}

}  // namespace

void CaptureCommands::add_to(ControlCommands& commands) {
  commands["capture"] = [this](const ControlRequest& request, ControlReply& reply,
                               const ControlPeer& peer) { return capture(request, reply, peer); };
}

Task<std::string> CaptureCommands::capture(const ControlRequest& request, ControlReply& reply,
                                           const ControlPeer& peer) {
  if (!peer.administrator)
    co_return std::string("only root and the user of the server may capture");
  const auto wish = wish_of(request, reply.loop().now());
  if (!wish) co_return wish.error();
  if (running_ == kMost)
    co_return fmt::format("{} captures are running, and more are not possible", kMost);
  struct Counted {
    explicit Counted(std::size_t& counted) : count(counted) { ++count; }
    ~Counted() { --count; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    std::size_t& count;
  };
  const Counted counted(running_);
  std::optional<RunningCapture> running;
  try {
    running.emplace(*tap_, *wish, room_, reply);
  } catch (const std::bad_alloc&) {
    co_return std::string("the server has no memory for a capture");
  }
  co_await running->run();
  co_return std::string();
}

}  // namespace stag::cli
