#include "fuse/request.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/task_group.h"
#include "testing/manual_loop.h"

namespace stag::fuse {
namespace {

// libfuse as it is in a mount, without a kernel.
class Session {
 public:
  Session() {
    char name[] = "test";
    char* words[] = {name, nullptr};
    fuse_args arguments FUSE_ARGS_INIT(1, words);
    fuse_lowlevel_ops functions{};
    functions.statfs = [](fuse_req_t request, fuse_ino_t) {
      static_cast<Session*>(fuse_req_userdata(request))->asked_ = request;
    };
    session_.reset(fuse_session_new(&arguments, &functions, sizeof(functions), this));
    fuse_opt_free_args(&arguments);
    const fuse_custom_io io{write, read, nullptr, nullptr};
    fuse_session_custom_io(session_.get(), &io, open("/dev/null", O_RDWR | O_CLOEXEC));
    fuse_init_in init{};
    init.major = FUSE_KERNEL_VERSION;
    init.minor = FUSE_KERNEL_MINOR_VERSION;
    hand(FUSE_INIT, 1, init);
  }

  // What a program asks for.
  fuse_req_t ask() {
    hand(FUSE_STATFS, kAsked, Nothing{});
    return asked_;
  }
  void interrupt() { hand(FUSE_INTERRUPT, 0, fuse_interrupt_in{kAsked}); }
  const std::vector<int>& errors() const { return errors_; }

 private:
  static constexpr std::uint64_t kAsked = 2;
  struct Nothing {};
  struct Destroy {
    void operator()(fuse_session* session) const { fuse_session_destroy(session); }
  };
  static ssize_t read(int, void*, std::size_t, void*) { return 0; }
  static ssize_t write(int, iovec* pieces, int count, void* self) {
    ssize_t size = 0;
    for (int i = 0; i < count; ++i) size += static_cast<ssize_t>(pieces[i].iov_len);
    fuse_out_header header;
    std::memcpy(&header, pieces[0].iov_base, sizeof(header));
    if (header.unique == kAsked) static_cast<Session*>(self)->errors_.push_back(-header.error);
    return size;
  }
  template <class Arguments>
  void hand(std::uint32_t what, std::uint64_t unique, const Arguments& arguments) {
    constexpr std::size_t kSize = std::is_empty_v<Arguments> ? 0 : sizeof(Arguments);
    fuse_in_header header{};
    header.opcode = what;
    header.unique = unique;
    header.len = sizeof(header) + kSize;
    std::vector<std::byte> message(header.len);
    std::memcpy(message.data(), &header, sizeof(header));
    std::memcpy(message.data() + sizeof(header), &arguments, kSize);
    fuse_buf buffer{};
    buffer.mem = message.data();
    buffer.size = message.size();
    fuse_session_process_buf(session_.get(), &buffer);
  }

  std::unique_ptr<fuse_session, Destroy> session_;
  fuse_req_t asked_ = nullptr;
  std::vector<int> errors_;
};

struct GivenUp {
  // Once its program has waited long enough.
  void give_up() {
    session.interrupt();
    loop.pass(2 * Interruption::kPatience);
    EXPECT_EQ(session.errors(), std::vector{EINTR});
  }
  // Whether a change of the file that is left in progress is waited for.
  bool is_left() {
    bool ended = false;
    TaskGroup tasks;
    const auto note = [&]() -> Task<void> {
      co_await changes.left_ended(kFile);
      ended = true;
    };
    tasks.add(note());
    const bool left = !ended;
    request.reset();
    later.reset();
    EXPECT_TRUE(ended);
    return left;
  }

  static constexpr std::uint64_t kFile = Inodes::kRoot;
  testing::ManualLoop loop;
  RequestContext context{.loop = loop, .is_to_end = [](pid_t) { return true; }};
  Inodes inodes{nfs::client::Handle{}};
  Changes changes{inodes};
  Session session;
  std::optional<Request> request{std::in_place, context, session.ask()};
  std::optional<Changes::Change> later;
};

TEST(Request, that_is_given_up_leaves_the_change_that_it_has_begun_in_progress) {
  GivenUp test;
  test.request->begin_change(test.changes, test.kFile);
  test.give_up();
  EXPECT_TRUE(test.is_left());
}

TEST(Request, that_is_given_up_when_its_change_has_ended_leaves_none_in_progress) {
  GivenUp test;
  test.request->begin_change(test.changes, test.kFile);
  test.request->end_change();
  test.later.emplace(test.changes, test.kFile);  // where the one before was in memory
  test.give_up();
  EXPECT_FALSE(test.is_left()) << "others would wait for a change whose program still waits";
}

}  // namespace
}  // namespace stag::fuse
