// An NFS server of this library in a process of its own, on loopback or at an address of an RDMA
// device: the other end of every benchmark.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace stag::bench {

struct ServerProcessOptions {
  bool crc = false;
  bool nfs4 = false;  // it serves NFS version 4, too
  std::uint32_t busy_poll_us = 0;
  unsigned loops = 1;
  // Its store is a folder of its own on tmpfs, or where temporary files are; else memory.
  bool folder = false;
  // An address of an RDMA device, which it listens at through fabric/verbs; empty: loopback,
  // through software iWARP.
  std::string device_address;
};

// As many as this process may have.
void raise_open_files();

class ServerProcess {
 public:
  // Forks: call before this process has threads. Fails with a sentence.
  static Result<ServerProcess, std::string> start(const ServerProcessOptions& options = {});
  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess();

  std::uint16_t rdma_port() const { return rdma_port_; }
  std::uint16_t tcp_port() const { return tcp_port_; }
  pid_t pid() const { return pid_; }
  // Of what it serves, over RPC-over-RDMA or TCP.
  std::string url(bool tcp) const;

 private:
  ServerProcess(pid_t pid, int pipe, std::string device_address, std::uint16_t rdma_port,
                std::uint16_t tcp_port)
      : pid_(pid),
        pipe_(pipe),
        device_address_(std::move(device_address)),
        rdma_port_(rdma_port),
        tcp_port_(tcp_port) {}
  pid_t pid_ = -1;
  int pipe_ = -1;  // open as long as the server is wanted
  std::string device_address_;
  std::uint16_t rdma_port_ = 0;
  std::uint16_t tcp_port_ = 0;
};

}  // namespace stag::bench
