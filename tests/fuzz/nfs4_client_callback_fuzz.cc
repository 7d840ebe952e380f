// Callbacks to the client of version 4: the input is the arguments, behind a CB_SEQUENCE that is in
// order or alone.
#include "input.h"
#include "nfs/client/v4/callback_service.h"
#include "oncrpc/message.h"
#include "rpc/credentials.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "xdr/encoder.h"

using namespace stag;
namespace v4 = nfs::v4;

namespace {

struct Holder final : nfs::client::nfs4::Recalled {
  v4::nfsstat4 recall(const v4::stateid4& stateid) override {
    return stateid.other[0] == std::byte{1} ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID;
  }
  void recall_any(std::uint32_t) override {}
  std::optional<nfs::client::nfs4::Delegations::Now> written(const v4::nfs_fh4& file) override {
    if (file.empty()) return std::nullopt;
    return nfs::client::nfs4::Delegations::Now{7, file.size()};
  }
  void recall_slots(v4::slotid4) override {}
  bool awaits(const v4::CB_SEQUENCE4args& callback) const override {
    return !callback.csa_referring_call_lists.empty();
  }
  v4::nfsstat4 copy_ended(const v4::CB_OFFLOAD4args& args) override {
    return args.coa_stateid.other[0] == std::byte{1} ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID;
  }
};

void put_sequence(xdr::Encoder& encoder, std::uint32_t minor, std::uint32_t number,
                  std::uint32_t operations) {
  encoder.u32(0);  // the tag
  encoder.u32(minor);
  encoder.u32(0);
  encoder.u32(operations + 1);
  encoder.u32(v4::OP_CB_SEQUENCE);
  encoder.fixed_opaque(v4::sessionid4{});
  encoder.u32(number);
  encoder.u32(0);  // the slot, and the highest one
  encoder.u32(0);
  encoder.u32(0);
  encoder.u32(0);
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
  nfs::client::nfs4::CallbackService service;
  service.begin({}, 2, &holder);
  testing::LoopbackChannel channel(loop, service.service());
  std::uint32_t number = 0;
  for (int steps = 0; !input.empty() && steps < 16; ++steps) {
    const std::uint8_t choice = input.octet();
    rpc::CallMessage message;
    message.xid = channel.next_xid();
    oncrpc::CallHeader header;
    header.xid = message.xid;
    header.program = nfs::client::nfs4::CallbackService::kProgram;
    header.version = v4::NFS_CB;
    header.procedure = v4::CB_COMPOUND::number;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header, rpc::Credentials::sys("server", 0, 0).encoded());
    if ((choice & 1) != 0) {
      number += choice >> 1 & 1;
      put_sequence(encoder, 1 + (choice >> 5 & 1), number, choice >> 2 & 7);
    }
    encoder.fixed_opaque(input.take(input.octet() / 4 * 4));
    message.stream = std::move(encoder).finish();
    message.reply.payload_max = 64 << 10;
    loop.run(ask(channel, message));
  }
  return 0;
}
