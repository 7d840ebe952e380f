#include "fabric/iwarp/mpa_setup.h"

#include <algorithm>

#include "fabric/iwarp/linger.h"
#include "iwarp/sender.h"

namespace stag::fabric {
namespace {

// Closes a socket when time is up or the caller has lost interest, which ends whatever waits on it.
class Limit {
 public:
  Limit(net::TcpSocket& socket, Duration limit, CancelToken cancel)
      : socket_(socket),
        timer_(socket.loop().after(limit, [this] { expire(Reason::TimedOut); })),
        on_cancel_(cancel, [this] { expire(Reason::Cancelled); }) {}
  // What ended a wait: this limit, or `otherwise`.
  Reason reason(Reason otherwise) const { return expired_ == Reason::None ? otherwise : expired_; }

 private:
  void expire(Reason reason) {
    if (expired_ != Reason::None) return;
    expired_ = reason;
    socket_.close();
  }

  net::TcpSocket& socket_;
  Reason expired_ = Reason::None;
  Timer timer_;
  CancelCallback on_cancel_;
};

Rope encoded(const iwarp::MpaFrame& frame) {
  Block block = Block::allocate(iwarp::kMaxMpaFrame);
  const std::size_t size = iwarp::encode_mpa_frame(frame, block.bytes());
  return Rope(std::move(block).freeze(size));
}

bool is_end(Reason reason) {
  return reason == Reason::ConnectionClosed || reason == Reason::ConnectionReset;
}

// A Reply, byte for byte: what follows it on the stream is the first FPDU.
Task<Result<std::size_t, Reason>> read_reply(net::TcpSocket& socket, MutableBytes to) {
  std::size_t have = 0;
  for (;;) {
    const auto missing = iwarp::bytes_missing(iwarp::MpaFrameKind::Reply, to.first(have));
    if (!missing) co_return Failure{missing.error()};
    if (*missing == 0) co_return have;
    const auto got = co_await socket.read_some(to.subspan(have, *missing));
    if (!got && have == 0 && is_end(got.error())) co_return Failure{Reason::MpaUnanswered};
    if (!got) co_return Failure{got.error()};
    have += *got;
  }
}

// RFC 6581 9.1: some refusals of a Reply are told to the peer.
void refuse(net::TcpSocket socket, const iwarp::ReplyRefused& refused, bool crc) {
  iwarp::Batch batch;
  if (refused.terminate) {
    SystemEntropy entropy;
    iwarp::StagTable none(entropy);
    iwarp::SenderOptions options;
    options.crc = crc;
    iwarp::Sender sender(options, none);
    sender.begin_terminate(*refused.terminate);
    static_cast<void>(sender.fill(batch));
  }
  linger(std::move(socket), std::move(batch));
}

Reason connect_reason(Reason reason) {
  return reason == Reason::MpaRejected ? Reason::ConnectionRejected : reason;
}

}  // namespace

iwarp::MpaOptions mpa_options(const IwarpOptions& options, const ConnectOptions& wishes) {
  // 14 bits, of which the highest value means something else (RFC 6581 9.1); Linux siw refuses more
  // than 128.
  constexpr std::uint32_t kMostReads = 128;
  iwarp::MpaOptions mpa;
  mpa.crc = options.always_crc || wishes.crc;
  mpa.ird = static_cast<std::uint16_t>(std::min(wishes.inbound_reads, kMostReads));
  mpa.ord = static_cast<std::uint16_t>(std::min(wishes.outbound_reads, kMostReads));
  mpa.accept_unenhanced = options.accept_unenhanced;
  mpa.unenhanced_ird = mpa.ird;
  return mpa;
}

Task<Result<IwarpSetup, Reason>> initiate(std::shared_ptr<const IwarpOptions> options,
                                          net::EpollLoop& loop, Address to, ConnectOptions wishes,
                                          CancelToken cancel) {
  if (wishes.private_data_size() > kMostPrivateData) co_return Failure{Reason::PrivateDataTooLong};
  const TimePoint deadline = loop.now() + wishes.timeout;
  net::ConnectOptions tcp;
  tcp.timeout = wishes.timeout;
  tcp.tcp = options->tcp;
  auto connected = co_await net::connect(loop, std::move(to), tcp, cancel);
  if (!connected) co_return Failure{connected.error()};
  net::TcpSocket& socket = *connected;

  const iwarp::MpaOptions mpa = mpa_options(*options, wishes);
  const iwarp::MpaFrame request = iwarp::make_request(mpa, wishes.private_data);
  std::array<std::byte, iwarp::kMaxMpaFrame> buffer;
  {
    const Limit limit(socket, deadline - loop.now(), cancel);
    const auto asked = co_await socket.write_all(encoded(request));
    if (!asked) co_return Failure{limit.reason(asked.error())};
    const auto answered = co_await read_reply(socket, buffer);
    if (!answered) co_return Failure{limit.reason(answered.error())};
  }
  const auto reply = iwarp::decode_mpa_frame(iwarp::MpaFrameKind::Reply, buffer);
  if (!reply) co_return Failure{reply.error()};
  const auto negotiated = iwarp::judge_reply(mpa, request, *reply);
  if (!negotiated) {
    refuse(std::move(socket), negotiated.error(), request.crc || reply->crc);
    co_return Failure{connect_reason(negotiated.error().reason)};
  }
  IwarpSetup setup;
  setup.options = std::move(options);
  setup.socket = std::move(socket);
  setup.active = true;
  setup.negotiated = *negotiated;
  setup.peer_private_data.assign(reply->private_data.begin(), reply->private_data.end());
  setup.receive = wishes.receive;
  setup.stall_limit = wishes.stall_limit;
  co_return std::move(setup);
}

void PassiveSetup::start(Duration limit, OnEnd on_end) {
  on_end_ = std::move(on_end);
  limit_ = socket_.loop().after(limit, [this] { end(Reason::SetupUnfinished); });
  socket_.when_readable([this] { on_readable(); });
}

void PassiveSetup::on_readable() {
  for (;;) {
    const auto missing =
        iwarp::bytes_missing(iwarp::MpaFrameKind::Request, Bytes(buffer_).first(have_));
    if (!missing) return end(missing.error());
    if (*missing == 0) return end(Reason::None);
    const iovec piece{buffer_.data() + have_, *missing};
    const net::Transfer transfer = socket_.try_read(std::span(&piece, 1));
    if (transfer.reason != Reason::None) return end(Reason::SetupUnfinished);
    have_ += transfer.bytes;
    if (transfer.drained) return socket_.when_readable([this] { on_readable(); });
  }
}

void PassiveSetup::end(Reason reason) {
  limit_.cancel();
  OnEnd on_end = std::exchange(on_end_, {});
  on_end(reason);
}

Result<iwarp::MpaFrame, Reason> PassiveSetup::request() const {
  return iwarp::decode_mpa_frame(iwarp::MpaFrameKind::Request, Bytes(buffer_).first(have_));
}

bool PassiveSetup::answer(const iwarp::MpaFrame& frame) {
  std::array<std::byte, iwarp::kMaxMpaFrame> bytes;
  const std::size_t size = iwarp::encode_mpa_frame(frame, bytes);
  const iovec piece{bytes.data(), size};
  // A fresh socket takes this many bytes at once, unless it is broken.
  return socket_.try_write(std::span(&piece, 1)).bytes == size;
}

}  // namespace stag::fabric
