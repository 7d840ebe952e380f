// How the Copier copies symbolic links, devices, sockets and FIFOs: they are made anew, for they
// hold no data.
#include <fmt/format.h>

#include <utility>

#include "cli/copy/copier.h"
#include "cli/copy/copier_parts.h"

namespace stag::cli {
namespace {

constexpr const char* kWithAOnly = "it is a device, socket or FIFO, which is copied with -a only";

std::string_view name_of(nfs::client::FileType type) {
  using nfs::client::FileType;
  if (type == FileType::Fifo) return "FIFO";
  return type == FileType::Socket ? "socket" : "device";
}

}  // namespace

Task<bool> Copier::is_to_be_made(const CopyObject& source, const Target& target) {
  if (target.name.empty() || (target.existing && target.existing->kind == Kind::Directory)) {
    fail(from_.shown_path(source.path), "a directory is in the way; remove it first");
    co_return false;
  }
  if (!target.existing) co_return true;
  const Outcome<bool> kept = co_await stays(source, *target.existing);
  if (!kept) fail(to_.shown_path(target.existing->path), kept.error());
  const Outcome<Ok> free = co_await check_just_made(target);
  if (kept && !*kept && !free) fail(from_.shown_path(source.path), free.error());
  if (!kept || !*kept) co_return kept&& free;
  const Outcome<Ok> adjusted = co_await adjust(source, *target.existing);
  if (!adjusted) fail(to_.shown_path(target.existing->path), adjusted.error());
  co_return false;
}

Task<Outcome<std::string>> Copier::symlink_text(CopyObject source) {
  Outcome<std::string> text = co_await from_.readlink(std::move(source));
  // symlink(2) would truncate the target at a NUL.
  if (text && text->find('\0') != std::string::npos)
    co_return refusal("its text holds a zero byte, which none can have");
  co_return text;
}

Task<void> Copier::copy_symlink(CopyObject source, Target target) {
  Outcome<std::string> text = co_await symlink_text(source);
  if (!text) co_return fail(from_.shown_path(source.path), text.error());
  if (!co_await is_to_be_made(source, target)) co_return;
  Outcome<Ok> made{Ok{}};
  if (!options_.dry_run)
    made = co_await to_.symlink(target.directory, target.name, *std::move(text),
                                finish_of(source, std::nullopt));
  if (!made) co_return fail(from_.shown_path(source.path), made.error());
  ++progress_.symlinks;
  note_just_made(target);
  announce(source, target);
}

Task<void> Copier::copy_special(CopyObject source, Target target) {
  if (!options_.specials || !source.special)
    co_return fail(from_.shown_path(source.path), kWithAOnly);
  if (!co_await is_to_be_made(source, target)) co_return;
  Outcome<std::string> obstacle{std::string()};
  if (!options_.dry_run)
    obstacle = co_await to_.mknod(target.directory, target.name, *source.special,
                                  finish_of(source, std::nullopt));
  if (!obstacle) co_return fail(from_.shown_path(source.path), obstacle.error());
  if (!obstacle->empty()) co_return leave_out(source, *obstacle);
  ++progress_.specials;
  note_just_made(target);
  announce(source, target);
}

// Only an attempt tells: under another name, beside what is there.
Task<Outcome<bool>> Copier::can_be_made(const CopyObject& source, const Target& target) {
  if (!source.special) co_return refusal(kWithAOnly);
  if (options_.dry_run) co_return true;
  Member attempt{.name = temporary_name(), .object = source};
  const std::string path = to_.shown_path(path_below(target.directory, attempt.name));
  const Outcome<std::string> obstacle = co_await to_.mknod(
      target.directory, attempt.name, *source.special, finish_of(source, std::nullopt));
  if (!obstacle) co_return Failure{obstacle.error()};
  if (!obstacle->empty()) {
    leave_out(source, *obstacle);
    co_return false;
  }
  const Outcome<Ok> removed = co_await to_.remove(target.directory, std::move(attempt));
  if (!removed && !removed.error().is(nfs::client::Status::NoEntry))
    progress_.leftovers.push_back(path);
  co_return true;
}

void Copier::leave_out(const CopyObject& source, const std::string& obstacle) const {
  complain_(fmt::format("{}: the {} is left out: {}", from_.shown_path(source.path),
                        name_of(source.special->type), obstacle));
}

}  // namespace stag::cli
