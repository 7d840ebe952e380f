// Where log lines go that nobody may have to wait for: a descriptor whose reader may stand still,
// and the system's log.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "cli/support/unwaiting_output.h"

namespace stag::cli {

// The priority of syslog(3) for a level.
int syslog_priority(spdlog::level::level_enum level);

// Lines that are not taken at once are lost, and the next one that is taken says how many: a full
// pipe stops the log, not the server. Thread: any.
class LossySink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Makes what says that so many lines were lost.
  using LostText = std::function<std::string(std::uint64_t count)>;
  explicit LossySink(LostText lost);

 protected:
  // False: it would have had to wait.
  virtual bool take(const spdlog::details::log_msg& line) = 0;

 private:
  void sink_it_(const spdlog::details::log_msg& line) override;
  void flush_() override {}
  void lose();

  const LostText lost_text_;
  std::uint64_t lost_ = 0;
};

// Writes to a descriptor for as long as it takes bytes, which a full disk does not either.
class LogSink final : public LossySink {
 public:
  // Does not own the descriptor.
  LogSink(int fd, LostText lost);

 private:
  bool take(const spdlog::details::log_msg& line) override;
  bool write(std::string_view bytes);

  const UnwaitingOutput output_;
  bool torn_ = false;  // of the last line only a part was taken
};

// Sends what syslog(3) would, for a daemon, to the socket at a path: each line by itself, so that
// another one may take its place there. syslog(3) waits until there is room.
class SystemLogSink final : public LossySink {
 public:
  SystemLogSink(std::string path, LostText lost);

 private:
  bool take(const spdlog::details::log_msg& line) override;

  const std::string path_;
};

}  // namespace stag::cli
