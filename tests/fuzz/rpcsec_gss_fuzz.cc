// A server of RPCSEC_GSS with one good context, and whatever a client may send to it: bodies of
// credentials, signed or not, with any arguments. What is not signed by the context runs nothing,
// and the bounds of the table hold.
#include "input.h"
#include "testing/gss_world.h"

using namespace stag;

namespace {

rpc::GssServerOptions narrow() {
  rpc::GssServerOptions options;
  options.contexts = 4;
  options.half_open = 2;
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  testing::GssWorld world(gss::Service::none, narrow());
  testing::RawGssClient client(world);
  world.realm->rounds = 1 + input.octet() % 3;
  const auto context = client.establish();
  for (int message = 0; message < 24 && !input.empty(); ++message) {
    const std::uint8_t kind = input.octet();
    gss::Credential credential =
        client.data(input.octet(), static_cast<gss::Service>(1 + kind / 4 % 3));
    credential.procedure = static_cast<gss::Procedure>(kind % 4);
    if (kind >= 128) credential.handle = {};
    const std::uint32_t procedure = input.octet() % 8;
    const Bytes arguments = input.take(4 * std::size_t{input.octet()});
    const std::uint32_t executed = world.state.executed;
    if (kind % 16 < 8) {
      client.send_signed(credential, *context, arguments.first(arguments.size() / 4 * 4),
                         procedure);
    } else {
      const oncrpc::OpaqueAuth verifier{
          oncrpc::AuthFlavor::RPCSEC_GSS,
          arguments.first(std::min<std::size_t>(arguments.size(), 12))};
      rpc::IncomingCall call =
          kind % 16 < 12 ? client.incoming(client.head(credential, procedure), verifier, arguments)
                         : client.incoming(client.head_of(input.take(input.octet()), procedure),
                                           verifier, arguments);
      client.serve(call);
      STAG_CHECK(world.state.executed == executed);
    }
    STAG_CHECK(world.authenticator->contexts().established() <= 4);
    STAG_CHECK(world.authenticator->contexts().half_open() <= 2);
  }
  STAG_CHECK(world.server.active_calls() == 0);
  return 0;
}
