// MetricsServer: answers GET /metrics over HTTP for Prometheus, on a thread of its own. Scrapers
// are bounded in number, in what they send and in time; the loops that serve clients never wait for
// them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace prometheus {
struct MetricFamily;
}

namespace stag::cli {

class MetricsServer {
 public:
  // Called on that thread until the MetricsServer is gone.
  using Collect = std::function<std::vector<prometheus::MetricFamily>()>;

  // "127.0.0.1:9469", "[::1]:9469". nullopt: it is no ADDR:PORT.
  static std::optional<Address> parse_address(const std::string& text);
  // Whether open() could listen at such an address once the numeric one `taken` is given up by
  // the process that has it now (port 0: none). Blocking.
  static Result<Ok, std::string> rehearse(const std::string& at, const Address& taken);
  // `at` is such an address; port 0 takes a free one. The error is a sentence. Blocking.
  static Result<std::unique_ptr<MetricsServer>, std::string> open(const std::string& at,
                                                                  Collect collect);
  ~MetricsServer();

  // "http://127.0.0.1:9100/metrics".
  std::string url() const;
  // Where it listens.
  Address at() const;

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stag::cli
