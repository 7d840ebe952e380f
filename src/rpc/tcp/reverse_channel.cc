#include "rpc/tcp/reverse_channel.h"

namespace stag::rpc::tcp {

ReverseChannel::ReverseChannel(std::shared_ptr<RecordStream> stream, std::uint32_t xid_seed)
    : Channel(xid_seed),
      loop_(stream->loop()),
      stream_(stream),
      requester_(loop_, *this, "tcp " + to_string(stream->peer()), RecordStream::Turn::Ahead) {
  requester_.attach(std::move(stream));
}

void ReverseChannel::on_stream_closed() {
  requester_.detach(Reason::RpcConnectionLost);
  requester_.shut(Reason::RpcConnectionLost);
  stream_ = nullptr;
}

Task<void> ReverseChannel::close() {
  requester_.shut(Reason::Shutdown);
  while (requester_.active() > 0) co_await resume_on(loop_);
}

}  // namespace stag::rpc::tcp
