#include "cli/observe/metrics_server.h"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <charconv>
#include <list>
#include <optional>
#include <utility>

#include "base/failure.h"
#include "base/task_group.h"
#include "endpoint/loops.h"
#include "net/listener.h"
#include "net/passed_sockets.h"
#include "net/socket.h"
#include "net/socket_address.h"

namespace stag::cli {
namespace {

// Scrapers at a time. For one more the oldest goes that has not asked for anything; else it is
// turned away.
constexpr std::size_t kMostScrapers = 8;
// Bytes of a request with its headers.
constexpr std::size_t kLongestRequest = 8192;
// For a request, and for taking the answer.
constexpr auto kScraperPatience = std::chrono::seconds(10);

std::string cannot_listen(const std::string& at, Reason why) {
  return fmt::format("cannot listen at {} (--metrics): {}", at, info(why).text);
}

// RFC 9110 9.3.2: HEAD gets the head of the answer to GET.
std::string http_answer(std::string_view status, std::string_view body, bool head_only) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), head_only ? std::string_view() : body);
}

}  // namespace

struct MetricsServer::State {
  struct Scraper {
    net::TcpSocket* socket;
    enum class Phase : std::uint8_t { Silent, Asked, Ended } phase = Phase::Silent;
  };

  bool make_room();
  void accept(net::AcceptedSocket accepted);
  Task<void> serve(net::TcpSocket socket);
  // nullopt: it did not come.
  static Task<std::optional<std::string>> read_request(net::TcpSocket& socket);
  std::string answer_to(std::string_view request) const;
  Task<void> stop();

  Collect collect;
  Address at;
  endpoint::Loops loops{1};
  std::optional<net::TcpListener> listener;
  std::list<Scraper> scrapers;
  TaskGroup running;
};

// A client that connects and sends nothing must not keep others out.
bool MetricsServer::State::make_room() {
  const auto ended = [](const Scraper& each) { return each.phase == Scraper::Phase::Ended; };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(scrapers, ended));
  if (scrapers.size() - count < kMostScrapers) return true;
  const auto silent = std::ranges::find(scrapers, Scraper::Phase::Silent, &Scraper::phase);
  if (silent == scrapers.end()) return false;
  silent->phase = Scraper::Phase::Ended;
  silent->socket->close();
  return true;
}

void MetricsServer::State::accept(net::AcceptedSocket accepted) {
  auto socket = net::TcpSocket::adopt(loops.at(0), std::move(accepted));
  if (!socket || !make_room()) return;
  running.add(serve(*std::move(socket)));
}

Task<std::optional<std::string>> MetricsServer::State::read_request(net::TcpSocket& socket) {
  std::string request;
  request.resize(kLongestRequest);
  std::size_t used = 0;
  while (used < request.size()) {
    const auto read =
        co_await socket.read_some(std::as_writable_bytes(std::span(request).subspan(used)));
    if (!read) co_return std::nullopt;
    used += *read;
    if (std::string_view(request).substr(0, used).find("\r\n\r\n") != std::string_view::npos) {
      request.resize(used);
      co_return request;
    }
  }
  co_return std::nullopt;
}

std::string MetricsServer::State::answer_to(std::string_view request) const {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const std::string_view method = line.substr(0, line.find(' '));
  const bool head = method == "HEAD";
  // RFC 9110 15.5.6: the answer says what is allowed.
  if (!head && method != "GET")
    return http_answer("405 Method Not Allowed\r\nAllow: GET, HEAD", "only GET and HEAD\n", false);
  const std::string_view target = line.substr(std::min(method.size(), line.size()));
  if (!target.starts_with(" /metrics ") && !target.starts_with(" /metrics?"))
    return http_answer("404 Not Found", "the metrics are at /metrics\n", head);
  return http_answer("200 OK", prometheus::TextSerializer().Serialize(collect()), head);
}

Task<void> MetricsServer::State::serve(net::TcpSocket socket) {
  const auto entry = scrapers.insert(scrapers.end(), Scraper{&socket});
  try {
    const Timer timer = socket.loop().after(kScraperPatience, [&socket] { socket.close(); });
    const std::optional<std::string> request = co_await read_request(socket);
    if (request) {
      entry->phase = Scraper::Phase::Asked;
      const std::string answer = answer_to(*request);
      static_cast<void>(co_await socket.write_all(Rope::copy_of(bytes_of(answer))));
    }
  } catch (...) {
    // Without memory there are no metrics this time.
    trace_exception(Reason::TaskFailed, "metrics");
  }
  scrapers.erase(entry);
}

Task<void> MetricsServer::State::stop() {
  listener.reset();
  for (const Scraper& each : scrapers) each.socket->close();
  co_await running.join();
}

MetricsServer::MetricsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

MetricsServer::~MetricsServer() {
  endpoint::finish_on(state_->loops.at(0), [this] { return state_->stop(); });
}

std::string MetricsServer::url() const {
  return fmt::format("http://{}/metrics", to_string(state_->at));
}

std::optional<Address> MetricsServer::parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  Address at{text.substr(0, colon), 0};
  if (at.host.front() == '[' && at.host.back() == ']') at.host = at.host.substr(1, colon - 2);
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, at.port);
  if (error != std::errc() || last != end || at.host.find_first_of(",[] ") != std::string::npos)
    return std::nullopt;
  return at;
}

Address MetricsServer::at() const {
  return state_->at;
}

Result<Ok, std::string> MetricsServer::rehearse(const std::string& at, const Address& taken) {
  const Address address = parse_address(at).value_or(Address{});
  const auto socket = net::listening_socket(address);
  if (socket) return Ok{};
  const auto wanted = net::resolve_blocking(address);
  const bool will_be_free = socket.error() == Reason::AddressInUse && wanted &&
                            net::overlaps(wanted->front().address(), taken);
  if (will_be_free) return Ok{};
  return Failure{cannot_listen(at, socket.error())};
}

Result<std::unique_ptr<MetricsServer>, std::string> MetricsServer::open(const std::string& at,
                                                                        Collect collect) {
  const Address address = parse_address(at).value_or(Address{});
  auto state = std::make_unique<State>();
  State& made = *state;
  made.collect = std::move(collect);
  const Reason why = endpoint::run_on(made.loops.at(0), [&] {
    auto listening = net::TcpListener::listen(made.loops.at(0), address);
    if (!listening) return listening.error();
    made.listener.emplace(*std::move(listening));
    made.at = made.listener->local();
    made.listener->start(
        [&made](net::AcceptedSocket accepted) { made.accept(std::move(accepted)); });
    return Reason::None;
  });
  if (why != Reason::None) return Failure{cannot_listen(at, why)};
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(state)));
}

}  // namespace stag::cli
