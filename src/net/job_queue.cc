#include "net/job_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stag::net {

// All workers that a job of this line may have are taken, and nothing has moved for too long.
bool JobQueue::is_stuck(const Line& line, Duration limit, TimePoint now) const {
  if (limits_.stuck_after == Duration::zero()) return false;
  const auto stands = [&](TimePoint moved) { return now - moved >= limit; };
  if (begun_.size() >= limits_.threads && stands(moved_)) return true;
  return line.under_way >= limits_.threads_each && stands(line.moved);
}

// The data of jobs that wait takes too much memory, and nothing of this line moves.
bool JobQueue::is_out_of_bytes(const Line& line, TimePoint now) const {
  return waiting_bytes_ > limits_.waiting_bytes && is_stuck(line, limits_.bytes_stuck_after, now);
}

bool JobQueue::has_room(const Line& line, const Job& job, TimePoint now) const {
  if (line.refusable >= limits_.waiting_each) return false;
  if (refusable_ >= limits_.waiting && line.refusable > 0) return false;
  if (refusable_ >= limits_.waiting_most) return false;
  if (is_stuck(line, limits_.stuck_after, now)) return false;
  const bool too_much = job.bytes > 0 && job.bytes + waiting_bytes_ > limits_.waiting_bytes;
  return !too_much || !is_stuck(line, limits_.bytes_stuck_after, now);
}

bool JobQueue::admit(Job&& job, TimePoint now) {
  const auto found = lines_.find(job.client);
  const Line none;
  if (!job.must_run && !has_room(found == lines_.end() ? none : found->second, job, now))
    return false;
  Line& line = lines_[job.client];
  if (line.waiting.empty() && job.client != nullptr) turns_.push_back(job.client);
  const std::uint64_t bytes = job.bytes;
  const std::size_t refusable = job.must_run ? 0 : 1;
  line.waiting.push_back(std::move(job));
  ++waiting_;
  line.refusable += refusable;
  refusable_ += refusable;
  waiting_bytes_ += bytes;
  return true;
}

// Null: none may begin a job.
JobQueue::Line* JobQueue::line_in_turn() {
  const auto found = lines_.find(nullptr);
  Line* const owners = found != lines_.end() && may_begin(found->second) ? &found->second : nullptr;
  if (owners != nullptr && std::exchange(owners_turn_, false)) return owners;
  // No more lines than workers can be at their bound: this ends soon.
  for (std::size_t left = turns_.size(); left > 0; --left) {
    Line& line = lines_[turns_.front()];
    if (line.waiting.empty()) {
      turns_.pop_front();  // There was no memory for its job.
      continue;
    }
    turns_.splice(turns_.end(), turns_, turns_.begin());
    if (!may_begin(line)) continue;
    if (line.waiting.size() == 1) turns_.pop_back();
    owners_turn_ = true;
    return &line;
  }
  return owners;
}

std::optional<JobQueue::Begun> JobQueue::begin(TimePoint now) {
  Line* const line = line_in_turn();
  if (line == nullptr) return std::nullopt;
  Begun begun{std::move(line->waiting.front()), now};
  line->waiting.pop_front();
  const std::size_t refusable = begun.job.must_run ? 0 : 1;
  line->refusable -= refusable;
  refusable_ -= refusable;
  --waiting_;
  waiting_bytes_ -= begun.job.bytes;
  ++line->under_way;
  line->moved = moved_ = now;
  begun_.push_back(now);
  return begun;
}

void JobQueue::end(const void* client, TimePoint at, TimePoint now) {
  const auto begun = std::find(begun_.begin(), begun_.end(), at);
  const auto found = lines_.find(client);
  STAG_CHECK(begun != begun_.end() && found != lines_.end());
  begun_.erase(begun);
  Line& line = found->second;
  --line.under_way;
  line.moved = moved_ = now;
  if (line.under_way == 0 && line.waiting.empty()) lines_.erase(found);
}

// All that may go; or of the data, which is what takes memory, the newest of what is too much.
void JobQueue::take_from(Line& line, bool data_only, std::vector<Job>& given_back) {
  std::uint64_t keep = 0;
  for (const Job& job : line.waiting) keep += job.bytes;
  keep -= std::min(keep, waiting_bytes_ - std::min(waiting_bytes_, limits_.waiting_bytes));
  auto kept = line.waiting.begin();
  for (Job& job : line.waiting) {
    if (job.must_run || (data_only && job.bytes <= keep)) {
      keep -= std::min(keep, job.bytes);
      if (&*kept != &job) *kept = std::move(job);
      ++kept;
      continue;
    }
    waiting_bytes_ -= job.bytes;
    --waiting_;
    --line.refusable;
    --refusable_;
    given_back.push_back(std::move(job));
  }
  line.waiting.erase(kept, line.waiting.end());
}

std::vector<JobQueue::Job> JobQueue::give_back(TimePoint now) {
  std::vector<Job> given_back;
  for (auto& [client, line] : lines_) {
    const bool all = is_stuck(line, limits_.stuck_after, now);
    if (line.waiting.empty() || (!all && !is_out_of_bytes(line, now))) continue;
    given_back.reserve(waiting_ + given_back.size());  // Before anything is taken out.
    take_from(line, !all, given_back);
  }
  if (given_back.empty()) return given_back;
  std::erase_if(turns_, [&](const void* client) { return lines_[client].waiting.empty(); });
  std::erase_if(lines_, [](const Lines::value_type& each) {
    return each.second.under_way == 0 && each.second.waiting.empty();
  });
  return given_back;
}

std::size_t JobQueue::refusable_of(const void* client) const {
  const auto found = lines_.find(client);
  return found == lines_.end() ? 0 : found->second.refusable;
}

JobQueue::Share JobQueue::busiest() const {
  Share most;
  for (const auto& [client, line] : lines_)
    if (line.under_way > most.under_way) most = {client, line.under_way};
  return most;
}

Duration JobQueue::oldest(TimePoint now) const {
  if (begun_.empty()) return Duration::zero();
  return now - *std::min_element(begun_.begin(), begun_.end());
}

}  // namespace stag::net
