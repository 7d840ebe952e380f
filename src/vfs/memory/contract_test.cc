#include "testing/vfs/contract.h"

#include "testing/vfs/stepped_store.h"
#include "vfs/memory/memory.h"

namespace stag::vfs::testing {
namespace {

struct MemoryBackend final : Backend {
  explicit MemoryBackend(const memory::Options& options = {}) : store(options) {}
  FileSystem& fs() override { return store; }
  Properties properties() const override {
    Properties properties;
    properties.survives_restart = false;
    properties.answers_at_once = true;
    return properties;
  }
  MemoryFileSystem store;
};

// Every operation ends some turns later, and those under way together in another order than they
// began.
struct SlowBackend final : Backend {
  explicit SlowBackend(const memory::Options& options = {}) {
    const auto later = std::make_shared<LaterSteps>(std::vector{7, 0, 1, 4, 2});
    store = std::make_shared<SteppedStore>(std::make_shared<MemoryFileSystem>(options), later);
  }
  FileSystem& fs() override { return *store; }
  Properties properties() const override {
    Properties properties;
    properties.survives_restart = false;
    properties.large_directory = 5'000;
    return properties;
  }
  std::shared_ptr<FileSystem> store;
};

template <class Made>
BackendFactory factory_of(const char* name) {
  return {name, [] { return std::make_unique<Made>(); },
          [](std::uint64_t bytes) {
            memory::Options options;
            options.max_bytes = bytes;
            return std::make_unique<Made>(options);
          }};
}

}  // namespace

STAG_VFS_CONTRACT(Memory, ::testing::Values(factory_of<MemoryBackend>("memory"),
                                            factory_of<SlowBackend>("slow")));

}  // namespace stag::vfs::testing
