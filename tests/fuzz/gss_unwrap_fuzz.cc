// Arguments and results as integrity and privacy send them: also where every checksum is good, what
// is inside is cut out of the bytes that came, and has the number that was asked for.
#include "gss/protect.h"
#include "input.h"
#include "testing/fake_mechanism.h"

using namespace stag;

namespace {

// Finds everything good; "sealed" is as many bytes of rubbish as the first octet says, then the
// message.
class Trusting final : public testing::FakeContext {
 public:
  using FakeContext::FakeContext;
  gss::Step step(Bytes) override { return {}; }
  gss::Major verify_mic(gss::Pieces, Bytes) override { return gss::Major::COMPLETE; }
  Result<Buffer, gss::Major> unwrap(Buffer sealed) override {
    if (sealed.empty()) return Failure{gss::Major::DEFECTIVE_TOKEN};
    const auto skip =
        std::min<std::size_t>(std::to_integer<std::size_t>(sealed.bytes().front()), sealed.size());
    return sealed.slice(skip, sealed.size() - skip);
  }
};

void open(gss::Context& context, gss::Service service, std::uint32_t seq_num, Bytes bytes) {
  const Buffer data = Buffer::copy_of(bytes);
  const auto plain = gss::unprotect(context, service, seq_num, data);
  if (!plain) return;
  STAG_CHECK(plain->size() + 8 <= data.size() && plain->size() % 4 == 0);
  STAG_CHECK(plain->data() >= data.data() &&
             plain->data() + plain->size() <= data.data() + data.size());
  STAG_CHECK(load_be<std::uint32_t>(plain->data() - 4) == seq_num);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto realm = std::make_shared<testing::FakeRealm>();
  fuzz::Input input(data, size);
  const std::uint32_t seq_num = input.octet();
  const Bytes bytes = input.rest();
  Trusting trusting(realm);
  testing::FakeAcceptorContext suspicious(realm);
  for (const gss::Service service : {gss::Service::integrity, gss::Service::privacy}) {
    open(trusting, service, seq_num, bytes);
    open(suspicious, service, seq_num, bytes);
  }
  return 0;
}
