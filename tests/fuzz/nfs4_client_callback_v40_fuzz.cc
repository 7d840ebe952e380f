// Callbacks to the client of version 4.0, from whoever connects to where it listens: the input is
// the operations, behind a number that means this client or another one, or all of the arguments. A
// delegation is given back only to who has the number.
#include "input.h"
#include "nfs/client/v4/callback_service_v40.h"
#include "oncrpc/message.h"
#include "rpc/credentials.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "xdr/encoder.h"

using namespace stag;
namespace v4 = nfs::v4;

namespace {

enum Choice : std::uint8_t {
  kWithBegin = 1,     // of CB_COMPOUND, in front of the input
  kMeansOther = 2,    // by its number
  kLaterMinor = 4,    // version
  kNobodyHolds = 8,   // anything: the session has ended
  kOperations = 0xf0  // as many
};

// Version 4.0 has no other callbacks.
struct Holder final : nfs::client::nfs4::Recalled {
  v4::nfsstat4 recall(const v4::stateid4& stateid) override {
    ++recalls;
    return stateid.other[0] == std::byte{1} ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID;
  }
  void recall_any(std::uint32_t) override { STAG_CHECK(false); }
  std::optional<nfs::client::nfs4::Delegations::Now> written(const v4::nfs_fh4&) override {
    STAG_CHECK(false);
    return std::nullopt;
  }
  void recall_slots(v4::slotid4) override { STAG_CHECK(false); }
  bool awaits(const v4::CB_SEQUENCE4args&) const override {
    STAG_CHECK(false);
    return false;
  }
  v4::nfsstat4 copy_ended(const v4::CB_OFFLOAD4args&) override {
    STAG_CHECK(false);
    return v4::NFS4ERR_BAD_STATEID;
  }

  int recalls = 0;
};

void put_begin(xdr::Encoder& encoder, std::uint8_t choice, std::uint32_t number) {
  encoder.u32(0);  // the tag
  encoder.u32((choice & kLaterMinor) != 0 ? 1 : 0);
  encoder.u32((choice & kMeansOther) != 0 ? ~number : number);
  encoder.u32((choice & kOperations) >> 4);
}

Task<Ok> ask(rpc::Channel& channel, rpc::CallMessage& message) {
  static_cast<void>(co_await channel.call(message));
  co_return Ok{};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  testing::ManualLoop loop;
  Holder holder;
  nfs::client::nfs4::CallbackServiceV40 service;
  testing::LoopbackChannel channel(loop, service.service());
  for (int steps = 0; !input.empty() && steps < 16; ++steps) {
    const std::uint8_t choice = input.octet();
    service.begin((choice & kNobodyHolds) != 0 ? nullptr : &holder);
    rpc::CallMessage message;
    message.xid = channel.next_xid();
    oncrpc::CallHeader header;
    header.xid = message.xid;
    header.program = v4::NFS4_CALLBACK;
    header.version = v4::NFS_CB;
    header.procedure = v4::CB_COMPOUND::number;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header, rpc::Credentials::sys("server", 0, 0).encoded());
    if ((choice & kWithBegin) != 0) put_begin(encoder, choice, service.listening().ident);
    encoder.fixed_opaque(input.take(input.octet() / 4 * 4));
    message.stream = std::move(encoder).finish();
    message.reply.payload_max = 64 << 10;
    const int before = holder.recalls;
    loop.run(ask(channel, message));
    const bool meant = (choice & (kWithBegin | kMeansOther | kLaterMinor)) == kWithBegin;
    STAG_CHECK(meant || (choice & kWithBegin) == 0 || holder.recalls == before);
    STAG_CHECK((choice & kNobodyHolds) == 0 || holder.recalls == before);
  }
  return 0;
}
