#include "conform/rpcrdma/peer.h"

#include <fmt/format.h>

#include "base/pause.h"

namespace stag::conform::rpcrdma {
namespace {

constexpr std::uint32_t kReceives = 64;
constexpr fabric::Flow kFlow = 1;

}  // namespace

std::string Answer::text() const {
  switch (kind) {
    case Kind::Reply:
      return header.proc == wire::RDMA_MSG ? "an RDMA_MSG" : "an RDMA_NOMSG";
    case Kind::Error:
      return error.code == wire::ERR_VERS
                 ? fmt::format("RDMA_ERROR ERR_VERS {}..{}", error.lowest, error.highest)
                 : "RDMA_ERROR ERR_CHUNK";
    case Kind::Malformed:
      return "a message that cannot be decoded: " + detail;
    case Kind::Silence:
      return "no answer";
    case Kind::Lost:
      break;
  }
  return "the connection was lost: " + detail;
}

Answer read_answer(const Buffer& message) {
  Answer answer;
  answer.size = message.size();
  answer.kind = Answer::Kind::Malformed;
  answer.detail = fmt::format("{} bytes", message.size());
  if (wire::is_error(message.bytes())) {
    const auto error = wire::decode_error(message.bytes());
    if (!error) return answer;
    answer.kind = Answer::Kind::Error;
    answer.error = *error;
    answer.xid = error->xid;
    return answer;
  }
  const auto parsed = wire::decode_header(message.bytes());
  if (!parsed) {
    answer.detail += fmt::format(", {}", info(parsed.error().reason).text);
    return answer;
  }
  answer.kind = Answer::Kind::Reply;
  answer.header = parsed->header;
  answer.xid = parsed->header.xid;
  answer.payload = message.slice(parsed->size, message.size() - parsed->size);
  return answer;
}

Task<std::unique_ptr<Peer>> Peer::connect(fabric::Fabric& fabric, Address server,
                                          PeerOptions options, std::string& why) {
  std::unique_ptr<Peer> peer(new Peer(std::move(options)));
  fabric::ConnectOptions connect;
  connect.private_data = peer->options_.private_data;
  connect.receive = {kReceives, peer->options_.receive_size};
  connect.timeout = peer->options_.timeout;
  auto connected =
      co_await fabric.connect(std::move(server), std::move(connect), peer->options_.cancel);
  if (!connected) {
    why = info(connected.error()).text;
    co_return nullptr;
  }
  peer->connection_ = *std::move(connected);
  peer->connection_->start(*peer);
  co_return peer;
}

Peer::~Peer() = default;

void Peer::send(Bytes message) {
  if (!lost_) connection_->send(Rope::copy_of(message), std::nullopt, kFlow, fabric::kNoToken);
}

// Resumes what waits in a later turn: it may destroy the connection.
void Peer::wake() {
  if (waiting_ == nullptr) return;
  connection_->loop().post([source = std::exchange(waiting_, nullptr)] { source->cancel(); });
}

Task<void> Peer::wait() {
  const auto source = std::make_shared<CancelSource>();
  waiting_ = source;
  const CancelCallback on_interrupt(options_.cancel, [this] { wake(); });
  co_await pause(connection_->loop(), options_.timeout, *source);
  waiting_ = nullptr;
}

Task<Answer> Peer::next() {
  if (arrived_.empty() && !lost_ && !options_.cancel.cancelled()) co_await wait();
  Answer answer;
  if (!arrived_.empty()) {
    answer = read_answer(arrived_.front().message);
    answer.invalidated = arrived_.front().invalidated;
    arrived_.pop_front();
    // Not before it is taken: a server that floods is stopped by the credit.
    if (!lost_) connection_->add_receive_credit({1, options_.receive_size});
  } else if (lost_) {
    answer.kind = Answer::Kind::Lost;
    answer.detail = info(reason_).text;
    answer.reason = reason_;
  }
  co_return answer;
}

Task<Answer> Peer::answer_to(std::uint32_t xid) {
  constexpr int kOthers = 64;
  Answer answer;
  for (int i = 0; i < kOthers; ++i) {
    answer = co_await next();
    const bool came = answer.kind == Answer::Kind::Reply || answer.kind == Answer::Kind::Error;
    if (!came || answer.xid == xid) break;
  }
  co_return answer;
}

const Exposed& Peer::expose_source(Bytes data, std::vector<std::uint32_t> lengths) {
  return expose({data.begin(), data.end()}, lengths, false);
}

const Exposed& Peer::expose_sink(std::vector<std::uint32_t> lengths, std::uint32_t guard) {
  std::size_t all = guard;
  for (const std::uint32_t length : lengths) all += length;
  return expose(std::vector<std::byte>(all, kUntouched), lengths, true);
}

const Exposed& Peer::expose(std::vector<std::byte> memory,
                            const std::vector<std::uint32_t>& lengths, bool to_write) {
  exposed_.push_back({std::move(memory), {}});
  Exposed& made = exposed_.back();
  std::size_t begin = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const bool last = i + 1 == lengths.size();
    const std::size_t reach = last ? made.memory.size() - begin : lengths[i];
    const MutableBytes part = MutableBytes(made.memory).subspan(begin, reach);
    const auto named = to_write ? connection_->expose_sink(part) : connection_->expose_source(part);
    if (named) made.segments.push_back({named->handle, lengths[i], named->offset});
    begin += lengths[i];
  }
  return made;
}

Task<void> Peer::close() {
  if (!lost_) {
    connection_->close(Reason::Shutdown);
    for (int i = 0; i < 3 && !lost_; ++i) co_await wait();
  }
  connection_.reset();
}

void Peer::on_receive(Buffer message, std::optional<std::uint32_t> invalidated) {
  arrived_.push_back({Buffer::copy_of(message.bytes()), invalidated});
  wake();
}

void Peer::on_disconnect(Reason reason) {
  lost_ = true;
  reason_ = reason;
  wake();
}

}  // namespace stag::conform::rpcrdma
