// A server that copies from others (RFC 7862 4.5, 15.2): the sources are what the test makes of
// them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/pause.h"
#include "nfs/v4/compound/source_servers.h"
#include "testing/nfs/nfs4_delegations_fixture.h"

namespace stag::testing {

inline constexpr std::uint64_t kPiece = 1 << 20;
inline constexpr Duration kForEver = std::chrono::hours(10000);
inline const std::string kAdmitted = "192.0.2.9";

inline char content_at(std::uint64_t offset) {
  return static_cast<char>('a' + offset / 1000 % 26);
}

// Servers that say what the test wants.
struct FakeServers final : nfs::nfs4::SourceServers {
  using Read = std::function<nfs::nfs4::SourceFile::Answer<nfs::nfs4::SourceFile::Part>(
      std::uint64_t, MutableBytes)>;

  explicit FakeServers(Loop& on) : loop(on) {}

  class File final : public nfs::nfs4::SourceFile {
   public:
    File(FakeServers& servers, CancelToken cancel) : servers_(servers), cancel_(cancel) {}
    Task<Answer<std::uint64_t>> size() override {
      if (servers_.refusal_of_size != nfs::v4::NFS4_OK) co_return Failure{servers_.refusal_of_size};
      co_return servers_.size;
    }
    Task<Answer<Part>> read(std::uint64_t offset, MutableBytes to) override {
      servers_.asked.push_back({offset, to.size()});
      co_await servers_.pass_gate(offset, cancel_);
      if (cancel_.cancelled()) co_return Failure{nfs::v4::NFS4ERR_IO};
      co_return servers_.read(offset, to);
    }
    std::uint32_t largest_read() const override { return servers_.largest_read; }
    Task<void> close() override {
      ++servers_.closed;
      if (servers_.hangs_in_close) co_await pause(servers_.loop, kForEver, cancel_);
    }

   private:
    FakeServers& servers_;
    CancelToken cancel_;
  };

  bool admits(std::string_view host) const override { return host == kAdmitted; }
  Task<nfs::nfs4::SourceFile::Answer<std::unique_ptr<nfs::nfs4::SourceFile>>> open(
      nfs::nfs4::SourcePlace place, nfs::nfs4::SourceArgs args, CancelToken cancel) override {
    places.push_back(to_string(place.at) + (place.rdma ? " rdma" : " tcp"));
    last = args;
    if (hangs_in_open) co_await pause(loop, kForEver, cancel);
    if (cancel.cancelled() || place.at.port == refused_port)
      co_return Failure{nfs::v4::NFS4ERR_OFFLOAD_DENIED};
    ++opened;
    co_return std::unique_ptr<nfs::nfs4::SourceFile>(std::make_unique<File>(*this, cancel));
  }
  // Reads from here on wait until the test moves it.
  Task<void> pass_gate(std::uint64_t offset, CancelToken cancel) {
    while (offset >= gate && !cancel.cancelled())
      co_await pause(loop, std::chrono::milliseconds(10), cancel);
  }

  Loop& loop;
  std::uint64_t size = 5 * kPiece / 2;
  std::uint64_t gate = ~std::uint64_t{0};
  std::uint32_t largest_read = kPiece;
  std::uint16_t refused_port = 0;
  nfs::v4::nfsstat4 refusal_of_size = nfs::v4::NFS4_OK;
  bool hangs_in_open = false, hangs_in_close = false;
  Read read = [this](std::uint64_t offset, MutableBytes to) { return true_part(offset, to); };
  std::vector<std::string> places;
  nfs::nfs4::SourceArgs last;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> asked;
  int opened = 0, closed = 0;

  nfs::nfs4::SourceFile::Answer<nfs::nfs4::SourceFile::Part> true_part(std::uint64_t offset,
                                                                       MutableBytes to) const {
    const std::uint64_t count = std::min<std::uint64_t>(to.size(), size - std::min(size, offset));
    for (std::uint64_t i = 0; i < count; ++i)
      to[i] = static_cast<std::byte>(content_at(offset + i));
    return nfs::nfs4::SourceFile::Part{static_cast<std::uint32_t>(count), offset + count >= size};
  }
};

inline nfs::v4::netloc4 location(const std::string& netid, const std::string& address) {
  nfs::v4::netloc4 made;
  made.nl_type = nfs::v4::NL4_NETADDR;
  made.nl_addr() = {netid, address};
  return made;
}

// The holder of the fixture copies a file of one of them.
class Nfs4CopiesServed : public Nfs4DelegationsServed {
 protected:
  Nfs4CopiesServed() { minor_ = 2; }
  nfs::nfs4::SourceServers* sources() override { return &sources_; }
  void SetUp() override {
    Nfs4DelegationsServed::SetUp();
    to_ = open(open_args("to", kForBoth | nfs::v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, true));
    args_ = {stateid_, to_.stateid, 0, 0, 0, true, false, {location("tcp", "192.0.2.9.8.1")}};
  }
  ~Nfs4CopiesServed() override {
    bool ended = false;
    nfs4_.wind_up([&] { ended = true; });
    loop_.drain();
    EXPECT_TRUE(ended);
    EXPECT_EQ(sources_.opened, sources_.closed);
  }

  std::vector<Op> copy_ops() {
    return {putfh(foreign_), op(nfs::v4::OP_SAVEFH), putfh(to_.handle),
            op(nfs::v4::OP_COPY, &Op::opcopy, args_)};
  }

  FakeServers sources_{loop_};
  const nfs::v4::nfs_fh4 foreign_{bytes_of("a file of another server")};
  const nfs::v4::stateid4 stateid_ = [] {
    nfs::v4::stateid4 made{1, {}};
    made.other.fill(std::byte{42});
    return made;
  }();
  Opened to_;
  nfs::v4::COPY4args args_;
};

}  // namespace stag::testing
