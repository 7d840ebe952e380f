// Preloaded into a program: the call of malloc(3) with the number FAIL_AT finds no memory. At the
// end of the program the number of calls goes to the file COUNT_TO.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

extern "C" void* __libc_malloc(std::size_t size);

namespace {

std::atomic<long> calls{0};
std::atomic<long> fails_at{-1};

__attribute__((constructor)) void begin() {
  const char* at = std::getenv("FAIL_AT");
  fails_at = at == nullptr ? -1 : std::atol(at);
}

__attribute__((destructor)) void end() {
  const long counted = calls;
  const char* path = std::getenv("COUNT_TO");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(file, "%ld", counted);
  std::fclose(file);
}

}  // namespace

extern "C" void* malloc(std::size_t size) {
  if (++calls != fails_at) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}
