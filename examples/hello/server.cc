#include <stag/endpoint/listener.h>
#include <stag/rpc/server.h>

#include <cstdio>
#include <cstdlib>

#include "hello.h"

stag::Task<std::string> greet(stag::rpc::CallContext&, std::string name) {
  co_return "Hello, " + name + "!";
}

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : stag::endpoint::kRdmaPort;
  stag::rpc::Server server;
  server.add<hello::GREET>(greet);
  auto listener = stag::endpoint::listen(server, {"127.0.0.1", static_cast<std::uint16_t>(port)});
  if (!listener.ok()) return std::puts(stag::info(listener.error()).text.data()), 1;
  std::printf("%d\n", listener->address().port);
  std::fflush(stdout);
  std::getchar();
}
