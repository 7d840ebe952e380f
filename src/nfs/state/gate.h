// What versions 2 and 3 and NLM ask before they act: whether a client of NFSv4 has something
// against it. Open for everything where version 4 is not served. A thread that replaces the exports
// reports it here, as clients of NFSv4 may hold something of those that are gone.
//
// Thread: any, but for guard() and open(), which are called while no Call runs and no thread
// replaces exports.
#pragma once

#include <utility>

#include "base/unique_function.h"
#include "nfs/state/files.h"

namespace stag::nfs::state {

class Gate {
 public:
  using EndLapsed = UniqueFunction<void(ClientId)>;
  // `files` until open(). `end_lapsed` as of Verdict::Kind::Lapsed, at once or later.
  // `makes_way_within`: for how long a holder that was asked to make way may be in the way.
  void guard(Files& files, EndLapsed end_lapsed, UniqueFunction<void()> exports_replaced = {},
             Duration makes_way_within = Duration::zero()) {
    files_ = &files;
    end_lapsed_ = std::move(end_lapsed);
    exports_replaced_ = std::move(exports_replaced);
    makes_way_within_ = makes_way_within;
  }
  void open() {
    files_ = nullptr;
    exports_replaced_ = {};
  }
  Files* files() const { return files_; }
  Duration makes_way_within() const { return makes_way_within_; }

  // False: nothing can be refused.
  bool guarded() const { return files_ != nullptr && files_->guarded(); }
  // Granted where version 4 is not served.
  Permit access(const FileKey& file, Touch touch) {
    return files_ == nullptr ? Permit({}, {}) : files_->access(file, touch);
  }
  // As of Verdict::Kind::Recall and Lapsed, where the store lets the caller do it.
  void recall(const FileKey& file, Touch touch) { files_->recall(file, touch); }
  void end_lapsed(ClientId client) { end_lapsed_(client); }
  // Calls that begin from now on have the new exports.
  void exports_replaced() {
    if (exports_replaced_) exports_replaced_();
  }

 private:
  Files* files_ = nullptr;
  Duration makes_way_within_{};
  EndLapsed end_lapsed_;
  UniqueFunction<void()> exports_replaced_;
};

}  // namespace stag::nfs::state
