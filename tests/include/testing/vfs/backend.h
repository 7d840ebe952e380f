// What the contract suite needs from a store under test: the store, how to restart it and what it
// declares about itself. A store joins the suite in its own test program:
//
//   #include "testing/vfs/contract.h"
//   namespace stag::vfs::testing {
//   STAG_VFS_CONTRACT(Mine, ::testing::Values(BackendFactory{"mine", make}));
//   }
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "vfs/vfs.h"

namespace stag::vfs::testing {

// Where stores differ and all of them keep the contract.
struct Properties {
  bool tells_users_apart = true;  // a store that runs without root serves one user
  bool survives_restart = true;
  bool has_acls = true;
  bool has_xattrs = true;
  bool clones = true;             // files can share storage
  bool knows_holes = true;        // and what storage they take; else it lacks seek() and allocate()
  bool copies = true;
  bool answers_at_once = false;   // every operation is done when its call returns
  bool knows_creation = true;     // Attributes::created is there
  int large_directory = 100'000;  // entries of the largest directory worth the time
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual FileSystem& fs() = 0;
  virtual Properties properties() const = 0;
  // As a server restart: everything in memory is lost. Only where properties() say so.
  virtual void restart() { FAIL() << "this store does not survive a restart"; }
  // Makes `count` empty files prefix0, prefix1, ... in the directory `name` of the root, by the
  // shortest way there is. False when that is through the store itself.
  virtual bool fill(std::string_view name, std::string_view prefix, int count) {
    (void)name, (void)prefix, (void)count;
    return false;
  }
};

struct BackendFactory {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
  // A store that is full after about so many bytes and 64 objects to one MiB of them. Empty, or
  // null from the function, where that cannot be had.
  std::function<std::unique_ptr<Backend>(std::uint64_t bytes)> make_small{};

  // GoogleTest prints parameters.
  friend void PrintTo(const BackendFactory& factory, std::ostream* out) { *out << factory.name; }
};

inline std::string name_of(const ::testing::TestParamInfo<BackendFactory>& tested) {
  return tested.param.name;
}

}  // namespace stag::vfs::testing
