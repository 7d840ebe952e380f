// Which access control lists one server has: their form, and which of its file systems keep none,
// so that a copy of many files asks each of those once. The first question about a file system goes
// alone; the files in flight beside it wait for the answer, which is theirs, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/task.h"
#include "nfs/client/protocol/error.h"
#include "nfs/client/v4/wait_list.h"

namespace stag::cli {

class AclSupport {
 public:
  // `version`: of NFS.
  explicit AclSupport(std::uint32_t version) : version_(version) {}

  // Those of version 4; else those of POSIX.
  bool has_nfs4_acls() const { return version_ == 4; }
  // What the server answers to `question`, about the list of a file in the file system `fsid`, or
  // has answered before where there are none.
  template <class T>
  Task<nfs::client::Outcome<T>> ask(std::uint64_t fsid, Task<nfs::client::Outcome<T>> question) {
    while (asking_.contains(fsid)) co_await waiting_.wait({});
    if (std::optional<nfs::client::Error> why = why_none(fsid)) co_return Failure{*std::move(why)};
    if (known_.contains(fsid)) co_return co_await std::move(question);
    const First first(*this, fsid);
    nfs::client::Outcome<T> answer = co_await std::move(question);
    note(fsid, answer ? nullptr : &answer.error());
    co_return std::move(answer);
  }

 private:
  // The question that the others wait for.
  class First {
   public:
    First(AclSupport& support, std::uint64_t fsid) : support_(support), fsid_(fsid) {
      support_.asking_.insert(fsid_);
    }
    First(const First&) = delete;
    First& operator=(const First&) = delete;
    ~First() {
      support_.asking_.erase(fsid_);
      support_.waiting_.wake_all();
    }

   private:
    AclSupport& support_;
    const std::uint64_t fsid_;
  };

  std::optional<nfs::client::Error> why_none(std::uint64_t fsid) const;
  // `why` is null where there are lists.
  void note(std::uint64_t fsid, const nfs::client::Error* why);

  const std::uint32_t version_;
  // Why there are none; nullopt: there are.
  std::map<std::uint64_t, std::optional<nfs::client::Error>> known_;
  std::optional<nfs::client::Error> on_server_;  // the same of all file systems
  std::set<std::uint64_t> asking_;
  nfs::client::nfs4::WaitList waiting_;
};

}  // namespace stag::cli
