#include "net/job_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stag::net {

// All workers that a job of this line may have are taken, and nothing has moved for too long.
bool JobQueue::is_stuck(const Line& line, TimePoint now) const {
  if (limits_.patience == Duration::zero()) return false;
  const auto stands = [&](TimePoint moved) { return now - moved >= limits_.patience; };
  if (begun_.size() >= limits_.threads && stands(moved_)) return true;
  return line.under_way >= limits_.threads_each && stands(line.moved);
}

bool JobQueue::admit(Job&& job, TimePoint now) {
  const auto found = lines_.find(job.client);
  const Line none;
  const Line& before = found == lines_.end() ? none : found->second;
  const bool full = before.waiting.size() >= limits_.waiting_each ||
                    (waiting_ >= limits_.waiting && !before.waiting.empty()) ||
                    waiting_ >= limits_.waiting_most;
  if (!job.must_run && (full || is_stuck(before, now))) return false;
  Line& line = lines_[job.client];
  if (line.waiting.empty()) turns_.push_back(job.client);
  line.waiting.push_back(std::move(job));
  ++waiting_;
  return true;
}

std::optional<JobQueue::Begun> JobQueue::begin(TimePoint now) {
  // No more lines than workers can be at their bound: this ends soon.
  for (std::size_t left = turns_.size(); left > 0; --left) {
    Line& line = lines_[turns_.front()];
    if (line.waiting.empty()) {
      turns_.pop_front();  // There was no memory for its job.
      continue;
    }
    turns_.splice(turns_.end(), turns_, turns_.begin());
    if (line.under_way >= limits_.threads_each) continue;
    Begun begun{std::move(line.waiting.front()), now};
    line.waiting.pop_front();
    if (line.waiting.empty()) turns_.pop_back();
    --waiting_;
    ++line.under_way;
    line.moved = moved_ = now;
    begun_.push_back(now);
    return begun;
  }
  return std::nullopt;
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

void JobQueue::take_from(Line& line, std::vector<Job>& given_back) {
  std::deque<Job> kept;
  for (Job& job : line.waiting) {
    if (job.must_run)
      kept.push_back(std::move(job));
    else
      given_back.push_back(std::move(job));
  }
  waiting_ -= line.waiting.size() - kept.size();
  line.waiting = std::move(kept);
}

std::vector<JobQueue::Job> JobQueue::give_back(TimePoint now) {
  std::vector<Job> given_back;
  for (auto& [client, line] : lines_)
    if (!line.waiting.empty() && is_stuck(line, now)) take_from(line, given_back);
  if (given_back.empty()) return given_back;
  std::erase_if(turns_, [&](const void* client) { return lines_[client].waiting.empty(); });
  std::erase_if(lines_, [](const Lines::value_type& each) {
    return each.second.under_way == 0 && each.second.waiting.empty();
  });
  return given_back;
}

Duration JobQueue::oldest(TimePoint now) const {
  if (begun_.empty()) return Duration::zero();
  return now - *std::min_element(begun_.begin(), begun_.end());
}

}  // namespace stag::net
