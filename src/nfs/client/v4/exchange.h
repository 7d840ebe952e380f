// Exchange: a COMPOUND on its way, once; included by .cc files of this folder.
#pragma once

#include <optional>

#include "nfs/client/v4/operations.h"
#include "rpc/client.h"

namespace stag::nfs::client::nfs4 {

// Encodes a Request as it is made, and reads the results into it. `client`, `request` and `options`
// outlive it.
class Exchange : public rpc::Client::AnyExchange {
 public:
  // `sequence`: what stands in front of the operations; null: nothing.
  Exchange(const rpc::Client& client, std::uint32_t minor, const v4::SEQUENCE4args* sequence,
           Request& request, const rpc::CallOptions& options)
      : AnyExchange(client, v4::NFSPROC4_COMPOUND::program, v4::NFSPROC4_COMPOUND::version,
                    v4::NFSPROC4_COMPOUND::number, options),
        request_(request),
        channel_(client.channel()),
        with_sequence_(sequence != nullptr),
        lost_before_(channel_.connections_lost()),
        sent_(channel_.loop().now()) {
    request.encode(encoder_, message_.reply, minor, sequence);
    if (options.results_max) limit_results();
  }
  // By the clock of the Channel's loop.
  TimePoint sent() const { return sent_; }
  // Whether the Channel has lost a connection since, and may have sent it once more.
  bool was_repeated() const { return channel_.connections_lost() != lost_before_; }
  // Of the Reply that send() has yielded, before the caller suspends again (ReplyMessage). Why
  // there are none, else they are in the Request.
  std::optional<rpc::CallError> take(Result<rpc::ReplyMessage, rpc::CallError>& reply) {
    return read(reply, [this](xdr::Decoder& from) {
      return request_.decode_results(from, with_sequence_);
    });
  }

 private:
  Request& request_;
  rpc::Channel& channel_;
  const bool with_sequence_;
  const std::uint64_t lost_before_;
  const TimePoint sent_;
};

}  // namespace stag::nfs::client::nfs4
