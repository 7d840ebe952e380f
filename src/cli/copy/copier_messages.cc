// What the Copier tells: what it has copied, and what it has not.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "cli/copy/copier.h"
#include "cli/copy/copier_parts.h"

namespace stag::cli {

using nfs::client::Error;

namespace {

// Of a server, or of this machine (local_failure()).
bool says(const Error& error, nfs::client::Status status) {
  return error.is(status) || (error.kind == Error::Kind::Local && error.status == status);
}

}  // namespace

bool lacks_space(const Error& error) {
  return says(error, nfs::client::Status::NoSpace) ||
         says(error, nfs::client::Status::QuotaExceeded);
}

bool concerns_all(const Error& error) {
  return error.kind == Error::Kind::Call || lacks_space(error) ||
         says(error, nfs::client::Status::ReadOnly);
}

void Copier::announce(const CopyObject& source, const Target& target) const {
  if (announce_)
    announce_(from_.shown_path(source.path),
              to_.shown_path(path_below(target.directory, target.name)));
}

void Copier::tell_of_times(const CopyObject& source) {
  const bool kept = carried(source.modified) == source.modified;
  if (!options_.preserve.times || kept || stopped() || std::exchange(told_of_times_, true)) return;
  complain_(
      fmt::format("times before 1970 and after 2106 are not copied as they are, from {} on: "
                  "versions 2 and 3 of NFS have none",
                  from_.shown_path(source.path)));
}

bool Copier::is_full(const Error& error) const {
  return options_.remove_others && lacks_space(error);
}

void Copier::fail(const std::string& path, const Error& error) {
  // An error that all transfers in flight meet is reported once.
  const bool full = is_full(error);
  const bool first = !stopped() && !(full && std::exchange(told_full_, true));
  full_ = full_ || full;
  if (concerns_all(error) && !full && !error.cancelled()) hopeless_ = true;
  if (error.kind == Error::Kind::Call && !error.cancelled()) unreachable_ = true;
  ++failures_;
  // Without a sentence the reader of standard output has closed the pipe.
  if (error.sentence.empty()) return;
  if (!first) return void(++untold_);
  const bool outside =
      says(error, nfs::client::Status::ReadOnly) && !options_.outside_exports.empty();
  complain_(fmt::format("{}: {}", path, outside ? options_.outside_exports : explained(error)));
}

void Copier::fail(const std::string& path, const std::string& why) {
  ++failures_;
  complain_(fmt::format("{}: {}", path, why));
}

void Copier::tell_of_untold() {
  std::vector<std::string> parts;
  if (untold_ != 0)
    parts.push_back(fmt::format("{} more could not be copied", std::exchange(untold_, 0)));
  if (untried_sources_ != 0)
    parts.push_back(
        fmt::format("{} of the sources were not tried", std::exchange(untried_sources_, 0)));
  if (std::exchange(untried_, false)) parts.push_back("what else is in the source was not tried");
  if (remover_.spared() > 0)
    fail(to_.shown_path(root_ ? root_->path : std::string()),
         fmt::format(
             "{} were removed, and no more are by --max-delete: {} stay, with what is in them",
             options_.max_delete, remover_.spared()));
  const bool known = endless_ || run_.cancel.cancelled();
  if (!known && !parts.empty()) complain_(fmt::format("{}", fmt::join(parts, ", and ")));
}

}  // namespace stag::cli
