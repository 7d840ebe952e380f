// Mounted: a Mount as libfuse knows it, which reads what the kernel asks for.
//
// Thread: the loop of the Mount.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <coroutine>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/completion.h"
#include "base/task_group.h"
#include "fuse/mount.h"
#include "fuse/mount_point.h"
#include "fuse/operations.h"
#include "net/descriptor.h"
#include "net/worker_pool.h"

namespace stag::fuse {

struct EndSession {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};

class Mounted final : public Mount, private net::Reader {
 public:
  Mounted(net::EpollLoop& loop, nfs::client::FileSystem& files, const nfs::client::Node& root,
          const MountOptions& options)
      : loop_(loop),
        files_(files),
        sizes_(files.sizes()),
        locks_(files.has_locks()),
        kernel_judges_(std::ranges::find(options.options, "default_permissions") !=
                       options.options.end()),
        operations_(loop, files, root.handle, data_, requests_,
                    {.valid = options.valid,
                     .direct = options.direct,
                     .seeks = options.seeks,
                     .lists = kernel_judges_,
                     .home = root.attributes.file_system_id,
                     .own = std::random_device()()}),
        place_(options.directory) {}
  ~Mounted() override {
    files_.set_flush({});
    begin_unmount();
  }

  std::optional<nfs::client::Error> begin(const MountOptions& options);
  Task<void> unmounted() override;
  Task<void> settled(CancelSource& calls) override;
  void unmount() override;

  // What the kernel asks for (functions.cc).
  Operations& operations() { return operations_; }
  void add(Task<void> task) { tasks_.add(std::move(task)); }
  void agree(fuse_conn_info& connection);
  ssize_t answer(int device, std::span<const iovec> pieces);
  WriteKind kind_of(fuse_req_t write, const fuse_file_info& info) const;
  // The memory of the request that is being processed, which is not used for another one then.
  Memory keep_request() {
    return Memory(static_cast<std::byte*>(std::exchange(next_.mem, nullptr)));
  }
  Buffers& requests() { return requests_; }

  // Bytes of one READ or WRITE of the kernel.
  static constexpr std::uint32_t kLargest = 1u << 20;

 private:
  void on_readable() override;
  // False when there is nothing more to read just now.
  bool read_request();
  // There was no memory for a request.
  void pause();
  void end();
  Task<void> unmount_written();
  void begin_unmount();
  void unmount_now();
  // As Operations::WhenRead.
  void when_read(Loop::Function function);
  void tell_read();

  // Before a file that the server has delegated for writing is given back.
  Task<bool> flush(nfs::client::Handle file);
  Task<void> flushed(nfs::client::Handle file, Completion<bool>& done);

  net::EpollLoop& loop_;
  nfs::client::FileSystem& files_;
  nfs::client::TransferSizes sizes_;
  const bool locks_;
  const bool kernel_judges_;             // by modes and access control lists
  const bool by_root_ = geteuid() == 0;  // as whom servers are called, unless told otherwise
  // libfuse allocates them, and knows their size. Enough for what is unstable, and what is in
  // progress.
  Buffers requests_{0, Operations::kMostUnstable / kLargest + 16};
  Buffers data_{kLargest, 16};
  // Each may stand still until the kernel has read what it drops.
  net::WorkerPool invalidating_{
      {.limits = {.threads = 16, .threads_each = 16}, .name = "pages of a mount"}};
  Operations operations_;
  TaskGroup tasks_;
  std::unique_ptr<fuse_session, EndSession> session_;
  MountPoint place_;
  std::atomic<bool> ended_ = false;
  std::atomic<bool> agreed_ = false;  // and libfuse's next answer is the one that says so
  fuse_buf next_{};
  net::Descriptor descriptor_;
  bool unmounting_ = false;
  Timer latest_unmount_;
  Timer again_;
  bool pausing_ = false;  // until again_
  Timer reading_;
  std::vector<Loop::Function> when_read_;
  std::size_t may_be_queued_ = 0;  // of what those wait for
  std::coroutine_handle<> waiter_;
};

// What libfuse calls where the kernel asks for something; those that lock files are among them or
// not. It is given a Mounted.
const fuse_lowlevel_ops& functions(bool locks);

}  // namespace stag::fuse
