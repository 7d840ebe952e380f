// The directories from the top of a walk down to where it is now. A broken or hostile server may
// show a directory within itself, or always one more below: the walk must end there all the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nfs/client/protocol/types.h"

namespace stag::cli {

class Descent {
 public:
  // Linux limits paths to 4096 bytes, so hardly any real tree is deeper.
  static constexpr std::size_t kMostDepth = 1024;

  struct Directory {
    nfs::client::Handle handle;  // empty for local directories, which have no cycles
    std::uint64_t fsid = 0, file_id = 0;
  };
  // Marks a directory as entered during its lifetime; lifetimes nest.
  class Step {
   public:
    Step(Descent& descent, const Directory& directory) : descent_(descent) {
      refusal_ = descent_.refusal_of(directory);
      descent_.path_.push_back(directory);
    }
    ~Step() { descent_.path_.pop_back(); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    // Why the directory must not be entered.
    std::optional<std::string_view> refusal() const { return refusal_; }

   private:
    Descent& descent_;
    std::optional<std::string_view> refusal_;
  };

 private:
  std::optional<std::string_view> refusal_of(const Directory& directory) const {
    if (path_.size() >= kMostDepth)
      return "it is more than 1024 directories deep; does it ever end?";
    const auto same = [&directory](const Directory& above) {
      const bool numbered = directory.file_id != 0 && directory.file_id == above.file_id;
      return directory.handle == above.handle || (numbered && directory.fsid == above.fsid);
    };
    if (directory.handle.empty() || std::none_of(path_.begin(), path_.end(), same))
      return std::nullopt;
    return "the server shows this directory within itself; its file system needs repair";
  }

  std::vector<Directory> path_;
};

}  // namespace stag::cli
