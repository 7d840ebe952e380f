#include <stag/endpoint/client.h>

#include <cstdio>
#include <cstdlib>

#include "hello.h"

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : stag::endpoint::kRdmaPort;
  auto client = stag::endpoint::connect({"127.0.0.1", static_cast<std::uint16_t>(port)});
  if (!client.ok()) return std::puts(client.error().message().c_str()), 1;
  auto greeting = client->call<hello::GREET>(argc > 2 ? argv[2] : "world");
  std::puts(greeting.ok() ? greeting->c_str() : greeting.error().message().c_str());
  return greeting.ok() ? 0 : 1;
}
