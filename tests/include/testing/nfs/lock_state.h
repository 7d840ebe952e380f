// A state directory of a server with records of locks.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"

namespace stag::nfs::lock {

// A directory that goes when the test does.
class StateDirectory {
 public:
  StateDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "stag-locks-XXXXXX").string();
    STAG_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~StateDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string hosts() const { return path_ + "/locks/hosts"; }

 private:
  std::string path_;
};

}  // namespace stag::nfs::lock
