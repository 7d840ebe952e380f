#include "fuse/new_files.h"

#include <algorithm>

#include "fuse/values.h"

namespace stag::fuse {
namespace {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::Outcome;
using nfs::client::SetAttributes;
using nfs::client::SetTime;
using nfs::client::Time;

// Before times are set again that the server did not answer for.
constexpr Duration kFirstDelay = std::chrono::seconds(1);
constexpr Duration kLongestDelay = std::chrono::seconds(30);
constexpr std::uint64_t kLikelyBlock = 4096;  // that storage is likely to be given by

bool is_set(const SetTime& time) {
  return time.how != SetTime::How::Keep;
}

// The server's own time is not known; that of the last change is close.
void show(const SetTime& waiting, const Attributes& of, Time& time) {
  if (is_set(waiting)) time = waiting.how == SetTime::How::To ? waiting.time : of.changed;
}

// Of what a change sets, the later one wins.
void add_to(SetTime& change, const SetTime& waiting) {
  if (!is_set(change)) change = waiting;
}

void clear(SetTime& waiting, const SetTime& set) {
  if (waiting.how == set.how && waiting.time == set.time) waiting = {};
}

}  // namespace

NewFiles::File* NewFiles::find(std::uint64_t number) {
  const auto found = files_.find(number);
  return found == files_.end() ? nullptr : &found->second;
}

void NewFiles::begin(std::uint64_t number, const nfs::client::Handle& handle,
                     const Attributes& attributes, bool without_times, TimePoint now) {
  File& file = files_[number];
  file = File{handle, attributes, now, now, ++versions_};
  if (!without_times) return;
  file.accessed = file.modified = SetTime::now();
  file.attributes.accessed = file.attributes.modified = attributes.changed;
}

std::optional<Attributes> NewFiles::absorb(std::uint64_t number, SetAttributes& changes,
                                           TimePoint now) {
  File* const file = find(number);
  if (file == nullptr) return std::nullopt;
  const Attributes& known = file->attributes;
  const bool is_fresh = fresh(*file, now);
  if (is_fresh && (known.mode & kSetIds) == 0) {
    if (changes.uid == known.uid) changes.uid.reset();
    if (changes.gid == known.gid) changes.gid.reset();
    if (changes.mode == known.mode) changes.mode.reset();
  }
  const bool only_times = !changes.uid && !changes.gid && !changes.mode && !changes.size;
  if (is_fresh && only_times) {
    if (is_set(changes.accessed)) file->accessed = changes.accessed;
    if (is_set(changes.modified)) file->modified = changes.modified;
    file->waits_since = now;
    return shown(number, known);
  }
  // Where the size changes, the time that waited is an earlier one.
  if (changes.size && is_set(file->modified)) file->modified = SetTime::now();
  add_to(changes.accessed, file->accessed);
  add_to(changes.modified, file->modified);
  return std::nullopt;
}

std::uint64_t NewFiles::version(std::uint64_t number) const {
  const auto found = files_.find(number);
  return found == files_.end() ? 0 : found->second.version;
}

void NewFiles::know(File& file, const Attributes& attributes, TimePoint now) {
  file.attributes = attributes;
  file.as_of = now;
  file.outdated = file.written = false;
}

void NewFiles::on_set(std::uint64_t number, std::uint64_t version, const SetAttributes& changes,
                      const Attributes& attributes, TimePoint now) {
  File* const file = find(number);
  if (file == nullptr) return;
  if (is_set(changes.accessed)) file->accessed = {};
  if (is_set(changes.modified)) file->modified = {};
  if (is_set(changes.accessed) || is_set(changes.modified)) file->refusal.reset();
  file->pause = {};
  if (file->version != version) return outdate(number);
  know(*file, shown(number, attributes), now);
  file->version = ++versions_;
}

// During a COPY, say, the server tells how much is copied so far.
void NewFiles::on_told(std::uint64_t number, std::uint64_t version, const Attributes& attributes,
                       TimePoint now) {
  File* const file = find(number);
  if (file != nullptr && file->version == version && !file->outdated)
    know(*file, shown(number, attributes), now);
}

void NewFiles::on_refused(std::uint64_t number, const SetAttributes& times,
                          const std::optional<Error>& why) {
  File* const file = find(number);
  if (file == nullptr) return;
  clear(file->accessed, times.accessed);
  clear(file->modified, times.modified);
  file->refusal = why;
  outdate(number);
}

void NewFiles::on_unheard(std::uint64_t number, TimePoint now) {
  File* const file = find(number);
  if (file == nullptr) return;
  file->pause = std::clamp(file->pause * 2, kFirstDelay, kLongestDelay);
  file->waits_since = now + file->pause;
}

Outcome<Ok> NewFiles::refusal(std::uint64_t number) const {
  const auto found = files_.find(number);
  if (found == files_.end() || !found->second.refusal) return Ok{};
  return Failure{*found->second.refusal};
}

void NewFiles::on_write(std::uint64_t number, std::uint64_t offset, std::uint64_t size) {
  File* const file = find(number);
  if (file == nullptr) return;
  Attributes& known = file->attributes;
  // How much a hole takes only the server knows.
  if (offset > known.size) outdate(number);
  known.size = std::max(known.size, offset + size);
  known.used = std::max(known.used, (known.size + kLikelyBlock - 1) / kLikelyBlock * kLikelyBlock);
  file->modified = {};
  file->written = true;
  file->version = ++versions_;
}

void NewFiles::on_change(std::uint64_t number) {
  File* const file = find(number);
  if (file == nullptr) return;
  if (is_set(file->modified)) file->modified = SetTime::now();
  outdate(number);
}

void NewFiles::outdate(std::uint64_t number) {
  File* const file = find(number);
  if (file == nullptr) return;
  file->outdated = true;
  file->version = ++versions_;
}

bool NewFiles::fresh(const File& file, TimePoint now) const {
  return !file.outdated && now - file.as_of < valid_;
}

std::optional<Attributes> NewFiles::known(std::uint64_t number, TimePoint now) const {
  const auto found = files_.find(number);
  if (found == files_.end() || !fresh(found->second, now)) return std::nullopt;
  // Only the server knows when it was written.
  if (found->second.written && !is_set(found->second.modified)) return std::nullopt;
  return shown(number, found->second.attributes);
}

Attributes NewFiles::shown(std::uint64_t number, Attributes attributes) const {
  const auto found = files_.find(number);
  if (found == files_.end()) return attributes;
  show(found->second.accessed, attributes, attributes.accessed);
  show(found->second.modified, attributes, attributes.modified);
  return attributes;
}

std::optional<NewFiles::Waiting> NewFiles::waiting(std::uint64_t number) const {
  const auto found = files_.find(number);
  if (found == files_.end()) return std::nullopt;
  const File& file = found->second;
  if (!is_set(file.accessed) && !is_set(file.modified)) return std::nullopt;
  Waiting waiting{number, file.handle, {}};
  waiting.times.accessed = file.accessed;
  waiting.times.modified = file.modified;
  return waiting;
}

std::vector<std::uint64_t> NewFiles::due(TimePoint until) const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, file] : files_)
    if (file.waits_since <= until && waiting(number)) numbers.push_back(number);
  return numbers;
}

bool NewFiles::any_waits() const {
  return std::ranges::any_of(files_,
                             [this](const auto& file) { return waiting(file.first).has_value(); });
}

}  // namespace stag::fuse
