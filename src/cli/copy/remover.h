// Remover: removes what is too much in the destination of a copy.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/copy/copy_endpoint.h"
#include "cli/support/descent.h"

namespace stag::cli {

// Why a directory of the destination is left alone: it is what is copied.
inline constexpr const char* kSourceStays = "the source is in the destination here, and stays";

class Remover {
 public:
  // `told` hears of each object that was removed, or would be in a dry run. Of what `keeps` is true
  // for nothing is removed, and no directory above it. A directory of which `is_source` is true
  // fails the removal. All outlive the Tasks.
  using Told = std::function<void(const CopyObject& removed)>;
  using Keeps = std::function<bool(const std::string& counterpart, Kind kind)>;
  using IsSource = std::function<Task<Outcome<bool>>(CopyObject directory)>;
  // After `most` objects none is removed.
  Remover(Run& run, CopyEndpoint& endpoint, bool dry_run, std::uint64_t most, Keeps keeps,
          IsSource is_source, Told told)
      : run_(run),
        endpoint_(endpoint),
        dry_run_(dry_run),
        left_(most),
        keeps_(std::move(keeps)),
        is_source_(std::move(is_source)),
        told_(std::move(told)) {}

  // Entries of a directory, which count among those that are kept at a time.
  class Members {
   public:
    explicit Members(std::size_t& kept) : kept_(&kept) {}
    Members(Members&& other) noexcept : kept_(other.kept_), list_(std::move(other.list_)) {
      other.list_.clear();
    }
    Members& operator=(Members&&) = delete;
    ~Members() { *kept_ -= list_.size(); }
    std::vector<Member>& list() { return list_; }
    void add(Member member) {
      list_.push_back(std::move(member));
      ++*kept_;
    }

   private:
    std::size_t* kept_;
    std::vector<Member> list_;
  };

  // Removes an entry of `directory`, with all that is below but for what is kept; false: something
  // is. `counterpart`: where in the source the entry would be.
  Task<Outcome<bool>> remove(CopyObject directory, Member member, std::string counterpart);
  // How many were left there since the most was removed, each with what is in it.
  std::uint64_t spared() const { return spared_; }
  // The entries of `directory`. Fails where there are more than can be kept beside the others.
  Task<Outcome<Members>> all_of(CopyObject directory);

 private:
  // Whether `member`, a directory, still has its name in `directory`. Fails where something else
  // has it.
  Task<Outcome<bool>> is_there(const CopyObject& directory, const Member& member);
  Task<Outcome<bool>> empty(const CopyObject& directory, const std::string& counterpart);
  Task<Outcome<bool>> remove_members(const CopyObject& directory, const std::string& counterpart);
  Run& run_;
  CopyEndpoint& endpoint_;
  const bool dry_run_;
  std::uint64_t left_;  // that may be removed
  const Keeps keeps_;
  const IsSource is_source_;
  const Told told_;
  std::uint64_t spared_ = 0;
  Descent descent_;
  std::size_t kept_ = 0;  // entries, of the directories from the top down to here
};

}  // namespace stag::cli
