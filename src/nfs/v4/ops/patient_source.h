// A file of another server that is waited for so long and no longer. What is late ends everything
// that is to be read there.
//
// Thread: home.
#pragma once

#include "base/loop.h"
#include "nfs/v4/compound/source_servers.h"

namespace stag::nfs::nfs4 {

// Of one answer: a server that connects anew, or has a client wait, takes its time.
inline constexpr Duration kSourcePatience = std::chrono::seconds(20);

class PatientSource final : public SourceFile {
 public:
  // `home` and `waits` outlive it.
  PatientSource(Loop& home, CancelSource& waits, Address at)
      : home_(home), waits_(waits), at_(std::move(at)) {}

  // Before the rest; with another status than NFS4_OK there is nothing to close.
  Task<v4::nfsstat4> open(SourceServers& servers, SourcePlace place, SourceArgs args);

  Task<Answer<std::uint64_t>> size() override;
  Task<Answer<Part>> read(std::uint64_t offset, MutableBytes to) override;
  Task<void> close() override;

 private:
  template <class T>
  Task<Answer<T>> in_time(Task<Answer<T>> asked);
  Timer limit();

  Loop& home_;
  CancelSource& waits_;
  const Address at_;
  bool late_ = false;
  std::unique_ptr<SourceFile> file_;
};

}  // namespace stag::nfs::nfs4
