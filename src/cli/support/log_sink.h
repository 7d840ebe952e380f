// Where log lines go that nobody may have to wait for: a descriptor whose reader may stand still.
#pragma once

#include <spdlog/sinks/base_sink.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "net/unique_fd.h"

namespace stag::cli {

// Writes to a descriptor for as long as it takes bytes at once. Lines that it does not take are
// lost, and the next one that it takes says how many: a full pipe stops the log, not the server.
// Thread: any.
class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `lost` makes what says that so many lines were lost. Does not own the descriptor.
  LogSink(int fd, std::function<std::string(std::uint64_t count)> lost);

 private:
  void sink_it_(const spdlog::details::log_msg& line) override;
  void flush_() override {}
  bool write(const spdlog::details::log_msg& line);
  bool write(std::string_view bytes);
  // How many of these it takes at once; not above 0: none.
  ssize_t taken(std::string_view bytes);

  const int fd_;
  const bool socket_;
  const net::UniqueFd unwaiting_;  // the same pipe or terminal, if it could be opened anew
  const std::function<std::string(std::uint64_t count)> lost_text_;
  std::uint64_t lost_ = 0;
  bool torn_ = false;  // of the last line only a part was taken
};

}  // namespace stag::cli
