// RawPeer: the reference: plain TCP on loopback between this process and a second one, with the
// same bytes as the RPCs that are compared with it and the same way of waiting (net/spin_policy.h,
// then epoll, then read until it is empty). It contains no RPC: it measures the kernel.
//
// Thread: one. The second process is forked in the constructor, before any thread is started, and
// ends with the object.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "bench/load/sample.h"

namespace stag::bench {

class RawPeer {
 public:
  // Fails with a sentence when the system refuses the process or the connection.
  static Result<RawPeer, std::string> start(std::uint32_t busy_poll_us = 0);
  RawPeer(RawPeer&& other) noexcept;
  RawPeer& operator=(RawPeer&&) = delete;
  ~RawPeer();

  // `depth` requests in flight, each of `request_bytes`, each answered by `reply_bytes`.
  Sample exchange(std::size_t request_bytes, std::size_t reply_bytes, unsigned depth,
                  double seconds);
  // Blocks of `block_bytes`, one write call each, towards this process / away from it: one block
  // again and again, or those of fpdu_blocks.h.
  Sample stream_in(std::size_t block_bytes, double seconds, bool fpdus = false);
  Sample stream_out(std::size_t block_bytes, double seconds, bool fpdus = false);

  pid_t pid() const { return pid_; }

 private:
  RawPeer(pid_t pid, int socket, std::uint32_t busy_poll_us)
      : pid_(pid), socket_(socket), busy_poll_us_(busy_poll_us) {}
  // A stream is a number of bytes that both sides know beforehand. The first one of a direction, a
  // warm-up, says how many a measurement takes.
  struct Streams {
    std::uint64_t total(std::size_t block_bytes, double seconds) const;
    Sample took(const Sample& sample) {
      if (sample.bandwidth() > 0) bytes_per_second = sample.bandwidth();
      return sample;
    }
    double bytes_per_second = 3e9;
  };

  pid_t pid_ = -1;
  int socket_ = -1;
  Streams in_, out_;
  std::uint32_t busy_poll_us_ = 0;
};

}  // namespace stag::bench
