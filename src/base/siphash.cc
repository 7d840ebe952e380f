#include "base/siphash.h"

#include <random>

namespace stag {

const SipKey& process_sip_key() {
  static const SipKey kKey = [] {
    std::random_device random;
    SipKey key;
    for (std::size_t i = 0; i < key.size(); i += 4)
      store_be(key.data() + i, static_cast<std::uint32_t>(random()));
    return key;
  }();
  return kKey;
}

}  // namespace stag
