// New files of a mount whose times wait, at a server of NFS version 3 that notes which were set.
#pragma once

#include <cstdint>
#include <new>
#include <set>
#include <string>

#include "fuse/new_files.h"
#include "fuse/settling.h"
#include "fuse/turns.h"
#include "testing/nfs/client_harness.h"

namespace stag::testing {

struct NewFilesWorld {
  NewFilesWorld() {
    scripted.on<nfs::v3::NFSPROC3_SETATTR>(
        [this](const nfs::v3::SETATTR3args& args, nfs::v3::SETATTR3res& res) {
          ++asked;
          if (refuses) {
            res.status = nfs::v3::NFS3ERR_ACCES;
            res.resfail() = {};
            return;
          }
          set.insert(std::string(text_of(args.object.data.bytes())));
          res.resok() = {};
          nfs::v3::fattr3 attributes{};
          attributes.type = nfs::v3::NF3REG;
          res.resok().obj_wcc.after.attributes_follow = true;
          res.resok().obj_wcc.after.attributes() = attributes;
        });
  }
  void begin(std::uint64_t number) {
    files.begin(number, nfs::client::handle_of("file " + std::to_string(number)), {}, true,
                scripted.loop.now());
    settling.ask();
  }
  // As a loop does, which goes on behind what found no memory.
  void pass(Duration time) {
    const TimePoint end = scripted.loop.now() + time;
    while (scripted.loop.now() < end) try {
        scripted.loop.pass(end - scripted.loop.now());
      } catch (const std::bad_alloc&) {
      }
  }
  void stop() {
    scripted.loop.run([](fuse::Settling& all) -> Task<bool> {
      co_await all.end();
      co_return true;
    }(settling));
  }

  nfs::client::Scripted scripted;
  fuse::NewFiles files{std::chrono::seconds(1)};
  fuse::Turns turns;
  fuse::Settling settling{scripted.loop, scripted.files, files, turns};
  std::set<std::string> set;  // files whose times were
  int asked = 0;
  bool refuses = false;
};

}  // namespace stag::testing
