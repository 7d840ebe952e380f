// A file of another server that is waited for so long and no longer, since it has said something or
// was asked. What is late ends everything that is to be read there.
//
// Thread: home.
#pragma once

#include "base/loop.h"
#include "nfs/v4/compound/source_servers.h"

namespace stag::nfs::nfs4 {

// A server that connects anew, or has a client wait, takes its time.
inline constexpr Duration kSourcePatience = std::chrono::seconds(20);

class PatientSource final : public SourceFile {
 public:
  // `home` and `waits` outlive it.
  PatientSource(Loop& home, CancelSource& waits, Address at)
      : home_(home), waits_(waits), at_(std::move(at)) {}

  // Before the rest; with another status than NFS4_OK there is nothing to close.
  Task<v4::nfsstat4> open(SourceServers& servers, SourcePlace place, SourceArgs args);

  Task<Answer<std::uint64_t>> size() override;
  std::uint32_t largest_read() const override { return file_->largest_read(); }
  Task<Answer<Part>> read(std::uint64_t offset, MutableBytes to) override;
  Task<void> close() override;

 private:
  // One answer is waited for.
  class Waiting {
   public:
    explicit Waiting(PatientSource& of) : of_(of) { of_.begin_to_wait(); }
    Waiting(const Waiting&) = delete;
    ~Waiting() { of_.end_to_wait(); }

   private:
    PatientSource& of_;
  };
  template <class T>
  Task<Answer<T>> in_time(Task<Answer<T>> asked);
  void begin_to_wait();
  void end_to_wait() noexcept;
  void look_again(Duration after);

  Loop& home_;
  CancelSource& waits_;
  const Address at_;
  bool late_ = false;
  int waiting_ = 0;
  TimePoint heard_{};
  Timer limit_;
  std::unique_ptr<SourceFile> file_;
};

}  // namespace stag::nfs::nfs4
