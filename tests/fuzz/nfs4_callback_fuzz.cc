// What clients answer to callbacks: a delegation is given out and recalled again and again, and the
// input is the answers.
#include "nfs4_world.h"

using namespace stag;
namespace v4 = nfs::v4;

namespace {

enum Kind : std::uint8_t { kAgree, kNone, kBytes, kStatuses, kKinds };

// Statuses of CB_SEQUENCE and of the operation behind it, from all that there are.
xdr::Stream refuse(fuzz::Input& input, Bytes arguments) {
  const Buffer copied = Buffer::copy_of(arguments);
  xdr::Decoder decoder(copied);
  v4::CB_COMPOUND4args asked;
  STAG_CHECK(decode(decoder, asked));
  const auto status = [&] { return input.octet() % 2 == 0 ? 0u : 10000u + input.octet() % 100u; };
  xdr::Encoder encoder;
  const std::uint32_t sequence = status();
  encoder.u32(sequence);
  encoder.u32(0);  // the tag
  encoder.u32(sequence == 0 && asked.argarray.size() > 1 ? 2 : 1);
  encoder.u32(v4::OP_CB_SEQUENCE);
  encoder.u32(sequence);
  if (sequence != 0 || asked.argarray.size() < 2) return std::move(encoder).finish();
  encoder.fixed_opaque(asked.argarray[0].opcbsequence().csa_sessionid);
  encoder.u32s(input.octet(), input.octet(), input.octet(), input.octet());
  encoder.u32(static_cast<std::uint32_t>(asked.argarray[1].argop));
  encoder.u32(status());
  return std::move(encoder).finish();
}

std::optional<xdr::Stream> answer(fuzz::Input& input, std::uint32_t procedure, Bytes arguments) {
  const auto kind = static_cast<Kind>(input.octet() % kKinds);
  if (kind == kNone) return std::nullopt;
  if (kind == kAgree || procedure == v4::CB_NULL::number) return fuzz::agree(procedure, arguments);
  if (kind == kStatuses) return refuse(input, arguments);
  const std::size_t size = input.octet() / 4 * 4;
  const Bytes bytes = input.take(size);
  xdr::Encoder encoder;
  encoder.fixed_opaque(bytes);
  return std::move(encoder).finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  fuzz::Nfs4World world;
  world.peer.answer = [&](std::uint32_t procedure, Bytes arguments) {
    return answer(input, procedure, arguments);
  };
  fuzz::Session one(world, 0, "one"), two(world, 1, "two");
  constexpr std::uint32_t kAccess[] = {v4::OPEN4_SHARE_ACCESS_READ, v4::OPEN4_SHARE_ACCESS_BOTH};
  for (int steps = 0; !input.empty() && steps < 32; ++steps) {
    const std::uint8_t choice = input.octet();
    fuzz::Session& who = (choice & 1) == 0 ? one : two;
    if ((choice & 2) != 0) world.reconnect(choice & 1);
    who.open((choice & 4) == 0 ? "file" : "other", kAccess[choice >> 3 & 1]);
    world.pass(std::chrono::seconds((choice & 16) == 0 ? 1 : 30));
  }
  world.peer.answer = [](std::uint32_t, Bytes) { return std::nullopt; };
  return 0;
}
