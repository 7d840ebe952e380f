#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <limits>
#include <optional>

#include "base/network.h"
#include "cli/commands.h"
#include "cli/commands/ask.h"
#include "cli/observe/capture_file.h"
#include "cli/support/format.h"
#include "cli/support/local_file.h"
#include "cli/support/output.h"
#include "fabric/capture/pcapng.h"

namespace stag::cli {
namespace {

constexpr Duration kDrawing = std::chrono::milliseconds(100);

class Capture final : public Command {
 public:
  About about() const override {
    return {
        "capture", "what goes over a running server's RDMA connections, for Wireshark",
        "  stag capture --seconds 60 /var/tmp/nfs.pcapng\n"
        "  stag capture - | tshark -r - -Y nfs\n"
        "  stag capture --client 192.0.2.7 --max 100M /var/tmp/one.pcapng\n",
        "It begins at once, for connections that are there and those that come, on software\n"
        "iWARP and on RDMA devices, and ends with --seconds, --max or Ctrl-C. The server waits\n"
        "for nobody: what comes faster than FILE can be written is lost, and counted. It is\n"
        "asked at the server's control socket, as root or as the user of the server. FILE\n"
        "has names and contents of files, and is this user's alone.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.number("--seconds", seconds_, 1, 31'536'000, "end after so many [with Ctrl-C]");
    arguments.size("--max", most_, CaptureFile::kLeast, std::numeric_limits<std::int64_t>::max(),
                   "end when so many bytes were captured");
    arguments.text("--client", client_, "ADDR",
                   "only connections from this address, or this network [all]");
    arguments.flag("--json", json_, "the summary as one object");
    server_.declare(arguments);
    arguments.positional("FILE", path_, "pcapng, which is overwritten; -: standard output");
  }
  Exit run() override;

 private:
  Task<Exit> work(Run& run);
  // Writes a piece; the line that the server gets, or a sentence.
  Task<Result<std::string_view, std::string>> keep(Run& run, const JsonObject& row, Bytes piece);
  Task<Result<Ok, std::string>> write(Run& run, Bytes bytes);
  Result<Ok, std::string> write_now(Bytes bytes);
  // To the reader of standard output, which may stand still.
  bool write_to_reader(Bytes bytes);
  bool wait_for_reader() const;
  // Says in the file how many frames there were.
  Task<Result<Ok, std::string>> finish(Run& run);
  void draw(TimePoint now);
  void clear();
  void summarise() const;
  bool to_output() const { return path_ == "-"; }

  AskedServer server_;
  std::string path_, client_;
  std::optional<std::uint32_t> seconds_;
  std::uint64_t most_ = std::uint64_t{1} << 30;
  bool json_ = false;

  UniqueFd file_;
  bool begun_ = false;
  bool broken_ = false;                              // nothing can stand behind half a block
  bool reader_gone_ = false, stands_still_ = false;  // of standard output
  std::atomic<bool> cancelled_{false};
  std::optional<TimePoint> give_up_;  // where --seconds says when
  bool drawn_ = false;
  TimePoint drawn_at_{};
  std::uint64_t frames_ = 0, lost_ = 0, bytes_ = 0;
  std::string end_ = "asked";
};

Exit Capture::run() {
  if (!client_.empty() && !IpNetwork::parse(client_))
    return misused(fmt::format(
        "--client '{}' is no address; write one like 192.0.2.7 or 2001:db8::7", client_));
  if (to_output() && isatty(STDOUT_FILENO) == 1)
    return misused("a terminal cannot show a capture; name a file, or pipe it to a program");
  return on_loop([this](Run& run) { return work(run); });
}

Task<Exit> Capture::work(Run& run) {
  const CancelCallback asked_to_end(run.cancel, [this] { cancelled_ = true; });
  if (seconds_) give_up_ = std::chrono::steady_clock::now() + std::chrono::seconds(*seconds_);
  Json request;
  request.set("command", std::string_view("capture")).set("max", most_);
  if (seconds_) request.set("seconds", std::uint64_t{*seconds_});
  if (!client_.empty()) request.set("client", client_);
  const std::string error = co_await ask_for_pieces(
      run, server_.path(), std::move(request),
      [this, &run](const JsonObject& row, Bytes piece) { return keep(run, row, piece); },
      server_.patience_for_change());
  clear();
  // What came before the server had ended, or had enough of this reader, is worth to be read.
  Result<Ok, std::string> finished = Ok{};
  if (begun_ && !broken_) finished = co_await finish(run);
  if (reader_gone_) co_return exit_by_signal(SIGPIPE);
  if (!error.empty() && begun_ && !broken_)
    co_return failed(error + ", or has given up a capture that nobody reads");
  if (!error.empty()) co_return failed(error);
  if (!finished) co_return failed(finished.error());
  summarise();
  co_return Exit::Done;
}

Task<Result<std::string_view, std::string>> Capture::keep(Run& run, const JsonObject& row,
                                                          Bytes piece) {
  if (!begun_ && !to_output()) {
    auto opened = open_capture_file(path_);
    if (!opened) co_return Failure{opened.error()};
    file_ = *std::move(opened);
  }
  begun_ = true;
  const auto written = co_await write(run, piece);
  if (!written) co_return Failure{written.error()};
  frames_ = number_in(row, "frames");
  lost_ = number_in(row, "lost");
  if (const auto end = row.text("end")) end_ = *end;
  draw(run.loop.now());
  co_return run.cancel.cancelled() ? "end" : "more";
}

Task<Result<Ok, std::string>> Capture::write(Run& run, Bytes bytes) {
  bytes_ += bytes.size();
  if (bytes.empty()) co_return Ok{};
  co_return co_await offloaded(run.loop, [this, bytes] { return write_now(bytes); });
}

Result<Ok, std::string> Capture::write_now(Bytes bytes) {
  if (to_output() ? write_to_reader(bytes) : write_fully(file_.fd(), bytes, std::nullopt))
    return Ok{};
  broken_ = true;
  if (stands_still_)
    return Failure{std::string("nobody has read standard output; what is there ends in a packet")};
  // As with `| head`: nobody wants more, and there is nothing to say.
  reader_gone_ = to_output() && errno == EPIPE;
  return Failure{local_trouble("write", to_output() ? "standard output" : path_, errno)};
}

// A pipe takes so many bytes whole, without waiting, when poll() calls it writable.
bool Capture::write_to_reader(Bytes bytes) {
  while (!bytes.empty()) {
    if (!wait_for_reader()) return stands_still_ = true, false;
    const Bytes next = bytes.first(std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (!write_fully(STDOUT_FILENO, next, std::nullopt)) return false;
    bytes = bytes.subspan(next.size());
  }
  return true;
}

// False: the end has come, and nobody has read for a while since. A reader that goes on gets what
// the server had by then.
bool Capture::wait_for_reader() const {
  constexpr int kLookMs = 100;
  constexpr int kLooksBehindEnd = 50;
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  for (int looks = 0; ::poll(&output, 1, kLookMs) == 0;) {
    const bool over = cancelled_ || (give_up_ && std::chrono::steady_clock::now() > *give_up_);
    if (over && ++looks == kLooksBehindEnd) return false;
  }
  return true;
}

Task<Result<Ok, std::string>> Capture::finish(Run& run) {
  std::vector<std::byte> statistics;
  fabric::capture::append_statistics(statistics, capture_time(), frames_, lost_);
  co_return co_await write(run, statistics);
}

void Capture::draw(TimePoint now) {
  if (isatty(STDERR_FILENO) != 1 || now - drawn_at_ < kDrawing) return;
  write_error(fmt::format("\r{} packets, {} of them lost, {}; Ctrl-C ends\x1b[K", frames_, lost_,
                          human_size(static_cast<double>(bytes_))));
  drawn_ = true;
  drawn_at_ = now;
}

void Capture::clear() {
  if (std::exchange(drawn_, false)) write_error("\r\x1b[K");
}

// Where the capture itself has standard output, not between it.
void Capture::summarise() const {
  std::string text =
      fmt::format("capture: {} packets, {} of them lost, {} bytes\n", frames_, lost_, bytes_);
  if (json_) {
    Json summary;
    summary.set("packets", frames_)
        .set("lost", lost_)
        .set_quantity("bytes", bytes_)
        .set("end", std::string_view(end_));
    text = summary.line() + "\n";
  }
  to_output() ? write_error(text) : write_out(text);
}

}  // namespace

std::unique_ptr<Command> make_capture() {
  return std::make_unique<Capture>();
}

}  // namespace stag::cli
