// What a LocalFile reads of a file that others change between its system calls.
#include "cli/support/local_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "cli/copy/fake_endpoint_test.h"

namespace stag::cli {
namespace {

class LocalFileTest : public LocalCopyTest {
 protected:
  // All there is to be read, with zeros for holes.
  std::string content_by(LocalFile::Seek seek) {
    LocalFile file(loop_, at("f"), UniqueFd(::open(at("f").c_str(), O_RDONLY | O_CLOEXEC)),
                   std::move(seek));
    std::vector<std::byte> buffer(8192);
    std::string content;
    for (;;) {
      const auto piece = run(file.read(content.size(), buffer));
      EXPECT_TRUE(piece);
      if (!piece || (piece->hole == 0 && piece->data.empty())) return content;
      content.append(piece->hole, '\0');
      content.append(reinterpret_cast<const char*>(piece->data.data()), piece->data.size());
    }
  }
};

TEST_F(LocalFileTest, takes_what_is_appended_as_it_ends_for_no_hole) {
  write("f", "content");
  const auto seek = [this, appended = false](int fd, off_t offset, int whence) mutable {
    const off_t found = ::lseek(fd, offset, whence);
    const int error = errno;
    const bool ends = whence == SEEK_DATA && found < 0;
    if (ends && !std::exchange(appended, true)) std::ofstream(at("f"), std::ios::app) << ", more";
    errno = error;
    return found;
  };
  EXPECT_EQ(content_by(seek), "content, more");
}

TEST_F(LocalFileTest, takes_what_is_cut_off_as_it_ends_for_no_hole) {
  const std::string data(4096, 'x');
  write("f", data);
  std::filesystem::resize_file(at("f"), 1 << 20);
  const auto seek = [&](int fd, off_t offset, int whence) {
    if (whence == SEEK_DATA && offset > 0) std::filesystem::resize_file(at("f"), data.size());
    return ::lseek(fd, offset, whence);
  };
  EXPECT_EQ(content_by(seek), data);
}

}  // namespace
}  // namespace stag::cli
