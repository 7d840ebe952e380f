// COMPOUNDs that are executed: the input says which operations, and gives the bytes of their
// arguments; a byte of 0xf0 to 0xf4 in these stands for a name that the server gave out before.
#include "nfs4_world.h"

using namespace stag;
namespace v4 = nfs::v4;

namespace {

enum Step : std::uint8_t { kCall, kCallInSession, kTime, kReconnect, kSteps };

template <class T>
const T& choose(const std::vector<T>& names, std::uint8_t which) {
  static const T kNone{};
  return names.empty() ? kNone : names[which % names.size()];
}

// One argument byte of the input, or the name that it stands for.
void put(std::string& bytes, const fuzz::Names& names, std::uint8_t byte, fuzz::Input& from) {
  xdr::Encoder name;
  switch (byte) {
    case 0xf0:
      name.opaque(xdr::kNoItem, choose(names.handles, from.octet()).bytes());
      break;
    case 0xf1:
      encode(name, choose(names.stateids, from.octet()));
      break;
    case 0xf2:
      name.u64(choose(names.clients, from.octet()));
      break;
    case 0xf3:
      name.fixed_opaque(choose(names.sessions, from.octet()));
      break;
    case 0xf4:
      name.fixed_opaque(choose(names.verifiers, from.octet()));
      break;
    case 0xf5:  // an opaque of some letters
      name.string(xdr::kNoItem, std::string(from.octet() % 8, 'a'));
      break;
    case 0xf6:  // a small number
      name.u32(from.octet());
      break;
    default:
      bytes.push_back(static_cast<char>(byte));
      return;
  }
  bytes += text_of(std::move(name).finish().rope().flatten().bytes());
}

// The operations of one COMPOUND: number, length of the arguments, arguments.
std::string operations(fuzz::Input& input, std::uint32_t count, const fuzz::Names& names) {
  std::string bytes;
  for (std::uint32_t i = 0; i < count; ++i) {
    xdr::Encoder number;
    number.u32(input.octet());
    bytes += text_of(std::move(number).finish().rope().flatten().bytes());
    for (std::uint8_t left = input.octet(); left > 0; --left)
      put(bytes, names, input.octet(), input);
  }
  return bytes;
}

void call(fuzz::Nfs4World& world, fuzz::Session* session, std::size_t connection,
          fuzz::Input& input) {
  const std::uint32_t minor = session != nullptr ? 1 + input.octet() % 2 : input.octet() % 4;
  const std::uint32_t count = input.octet() % 8;
  xdr::Encoder encoder;
  encoder.u32(0);  // the tag
  encoder.u32(minor);
  encoder.u32(count + (session != nullptr ? 1 : 0));
  if (session != nullptr) encode(encoder, session->sequence());
  std::string message(text_of(std::move(encoder).finish().rope().flatten().bytes()));
  message += operations(input, count, world.names);
  world.call(connection, bytes_of(message));
}

constexpr Duration kTimes[] = {std::chrono::milliseconds(100), std::chrono::seconds(1),
                               std::chrono::seconds(60), std::chrono::seconds(91),
                               std::chrono::hours(25)};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  fuzz::Nfs4World world;
  fuzz::Session one(world, 0, "one"), two(world, 1, "two");
  one.open("file", v4::OPEN4_SHARE_ACCESS_BOTH);
  for (int steps = 0; !input.empty() && steps < 64; ++steps) {
    const std::uint8_t choice = input.octet();
    const std::size_t which = choice / kSteps % 2;
    switch (static_cast<Step>(choice % kSteps)) {
      case kCall:
        call(world, nullptr, which, input);
        break;
      case kCallInSession:
        call(world, which == 0 ? &one : &two, which, input);
        break;
      case kTime:
        world.pass(kTimes[input.octet() % std::size(kTimes)]);
        break;
      default:
        world.reconnect(which);
    }
  }
  return 0;
}
