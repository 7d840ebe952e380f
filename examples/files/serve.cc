#include <stag/endpoint/listener.h>
#include <stag/nfs/server/server.h>
#include <stag/rpc/server.h>
#include <stag/vfs/memory/memory.h>
#include <stag/vfs/posix/posix.h>

#include <cstdio>

using stag::vfs::MemoryFileSystem, stag::vfs::PosixFileSystem;

// Serves a folder, and memory beside it, by NFS versions 2 and 3 over TCP, until Enter is pressed.
// What the server keeps, its key of file handles among it, is in the second folder, which clients
// must not see: serve /srv/data /var/lib/serve
int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: serve FOLDER STATE_DIRECTORY"), 2;
  const auto state = stag::nfs::ServerState::open(argv[2]);
  if (!state) return std::puts(state.error().message.c_str()), 1;
  stag::nfs::NfsServer nfs(*state);
  PosixFileSystem::Options options;
  options.root = argv[1];
  options.state_directory = argv[2];
  options.file_system_id = nfs.file_system_id("/folder");
  auto folder = PosixFileSystem::open(options);
  if (!folder) return std::puts(folder.error().c_str()), 1;
  const stag::nfs::ExportOptions everybody;
  const auto added = nfs.add_export("/folder", *std::move(folder), everybody);
  if (!added) return std::puts(added.error().message.c_str()), 1;
  const auto memory = nfs.add_export("/memory", std::make_shared<MemoryFileSystem>(), everybody);
  if (!memory) return std::puts(memory.error().message.c_str()), 1;

  stag::rpc::Server server;
  nfs.add_programs(server);
  stag::endpoint::ListenOptions tcp;
  tcp.transport = stag::endpoint::Transport::Tcp;
  auto listener = stag::endpoint::listen(server, {"127.0.0.1", 0}, tcp);
  if (!listener) return std::puts(stag::info(listener.error()).text.data()), 1;
  const int port = listener->address().port;
  std::printf("nfs://127.0.0.1:%d/folder?proto=tcp&mountport=%d\n", port, port);
  std::fflush(stdout);
  std::getchar();
}
