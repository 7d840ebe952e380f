#include "cli/control/control_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/socket.h"

namespace stag::cli {
namespace {

// What a server sends in one line is less.
constexpr std::size_t kLongestLine = 1 << 20;

constexpr std::string_view kNoAnswer = "the answer is not that of a stag server";

std::string unreachable(const std::string& path, Reason reason) {
  switch (reason) {
    case Reason::ConnectionRefused:
      return fmt::format(
          "no server listens at {}; is 'stag serve' running? --state or --control says where",
          path);
    case Reason::BindNotPermitted:
      return fmt::format("no permission for {}; ask as root, or as the user of the server", path);
    case Reason::HostNotFound:
      return fmt::format("{} is too long for a socket; use --control with a shorter path", path);
    case Reason::Cancelled:
      return "interrupted";
    default:
      return fmt::format("cannot ask at {}: {}", path, info(reason).text);
  }
}

// The lines of a stream. A server that is silent for too long loses the connection.
class Lines {
 public:
  Lines(net::TcpSocket& socket, const ControlPatience& patience)
      : socket_(socket), patience_(patience.answer), advice_(patience.advice) {
    buffer_.resize(64 << 10);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // nullopt: there is none any more.
  Task<std::optional<std::string>> next() {
    for (;;) {
      const std::string_view unread = std::string_view(buffer_).substr(begin_, end_ - begin_);
      if (const std::size_t size = unread.find('\n'); size != unread.npos) {
        begin_ += size + 1;
        co_return std::string(unread.substr(0, size));
      }
      const bool more = co_await read();
      if (!more) co_return std::nullopt;
    }
  }
  // What stands behind the last line; valid until the next call. nullopt: not so much, or too much.
  Task<std::optional<Bytes>> bytes(std::size_t size) {
    if (size > kLongestLine) co_return std::nullopt;
    while (end_ - begin_ < size) {
      const bool more = co_await read();
      if (!more) co_return std::nullopt;
    }
    const Bytes found = bytes_of(std::string_view(buffer_).substr(begin_, size));
    begin_ += size;
    co_return found;
  }
  // Waits so long from now on, also for what is waited for already.
  void set_patience(Duration patience) {
    patience_ = patience;
    if (reading_) start_timer();
  }
  // Why there is no line, or are no bytes.
  std::string trouble() const {
    if (!silent_) return "the server ended before it had answered";
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience_).count();
    return fmt::format("the server has not answered for {} s; {}", seconds, advice_);
  }

 private:
  void start_timer() {
    timer_ = socket_.loop().after(patience_, [this] {
      silent_ = true;
      socket_.close();
    });
  }
  Task<bool> read() {
    if (!make_room()) co_return false;
    reading_ = true;
    start_timer();
    const auto read =
        co_await socket_.read_some(std::as_writable_bytes(std::span(buffer_).subspan(end_)));
    timer_ = {};
    reading_ = false;
    if (!read) co_return false;
    end_ += *read;
    co_return true;
  }
  bool make_room() {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= std::exchange(begin_, 0);
    if (end_ < buffer_.size()) return true;
    if (buffer_.size() >= kLongestLine) return false;
    buffer_.resize(2 * buffer_.size());
    return true;
  }

  net::TcpSocket& socket_;
  Duration patience_;
  const std::string_view advice_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;
  Timer timer_;
  bool reading_ = false;
  bool silent_ = false;
};

struct Row {
  std::string line;
  JsonObject members;
};

// The error is empty when all rows came.
Task<Result<Row, std::string>> next_row(Lines& lines) {
  auto line = co_await lines.next();
  if (!line) co_return Failure{lines.trouble()};
  auto members = JsonObject::parse(*line);
  if (!members) co_return Failure{std::string(kNoAnswer)};
  if (auto error = members->text("error")) co_return Failure{*std::move(error)};
  if (members->is_true("done")) co_return Failure{std::string()};
  co_return Row{*std::move(line), *std::move(members)};
}

// A server that turns a connection away says why and closes it, perhaps before it is asked: its
// line is there though a write is refused.
Task<std::string> send_line(net::TcpSocket& socket, const std::string& line) {
  const auto sent = co_await socket.write_all(Rope::copy_of(bytes_of(line)));
  if (sent || sent.error() == Reason::ConnectionReset) co_return std::string();
  co_return std::string(info(sent.error()).text);
}

Task<std::string> exchange(net::TcpSocket& socket, Lines& lines, const std::string& request,
                           OnRow& on_row) {
  std::string unsent = co_await send_line(socket, request);
  if (!unsent.empty()) co_return unsent;
  for (;;) {
    const auto row = co_await next_row(lines);
    if (!row) co_return row.error();
    on_row(row->members, row->line);
  }
}

Task<std::string> exchange(net::TcpSocket& socket, Lines& lines, const std::string& request,
                           OnPiece& on_piece) {
  std::string line_out = request;
  for (;;) {
    const std::string unsent = co_await send_line(socket, line_out);
    if (!unsent.empty()) co_return lines.trouble();
    const auto row = co_await next_row(lines);
    if (!row) co_return row.error();
    const auto size = row->members.number("bytes");
    if (!size) co_return std::string(kNoAnswer);
    const auto piece = co_await lines.bytes(*size);
    if (!piece) co_return lines.trouble();
    const auto answer = co_await on_piece(row->members, *piece);
    if (!answer) co_return answer.error();
    line_out = std::string(*answer) + "\n";
  }
}

Task<Result<net::TcpSocket, std::string>> connect_to(Run& run, std::string path,
                                                     Duration patience) {
  Address at;
  at.host = path;
  net::ConnectOptions options;
  options.timeout = patience;
  auto socket = co_await net::connect(run.loop, at, options, run.cancel);
  if (!socket) co_return Failure{unreachable(path, socket.error())};
  co_return *std::move(socket);
}

}  // namespace

std::string default_control_path(const std::string& state_directory) {
  return state_directory + "/control";
}

Task<std::string> ask_server(Run& run, std::string path, Json request, OnRow on_row,
                             ControlPatience patience) {
  auto socket = co_await connect_to(run, path, patience.answer);
  if (!socket) co_return socket.error();
  Lines lines(*socket, patience);
  const CancelCallback cancelled(run.cancel, [&socket] { socket->close(); });
  const std::string error = co_await exchange(*socket, lines, request.line() + "\n", on_row);
  socket->close();
  co_return run.cancel.cancelled() ? std::string("interrupted") : error;
}

Task<std::string> ask_for_pieces(Run& run, std::string path, Json request, OnPiece on_piece,
                                 ControlPatience patience) {
  auto socket = co_await connect_to(run, path, patience.answer);
  if (!socket) co_return socket.error();
  Lines lines(*socket, patience);
  const CancelCallback cancelled(run.cancel, [&] { lines.set_patience(patience.end); });
  std::string error = co_await exchange(*socket, lines, request.line() + "\n", on_piece);
  socket->close();
  co_return error;
}

}  // namespace stag::cli
