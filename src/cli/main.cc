#include <csignal>
#include <filesystem>

#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/mount_options.h"
#include "cli/support/output.h"

int main(int argc, char** argv) {
  using namespace stag::cli;
  occupy_standard_descriptors();
  // A process inherits that it is ignored; the system would not say then how its children end.
  std::signal(SIGCHLD, SIG_DFL);
  std::vector<std::string> words(argv, argv + argc);
  if (argc > 0 && std::filesystem::path(words[0]).filename() == "mount.stag") {
    std::optional<std::vector<std::string>> mount = from_mount_helper(words);
    if (!mount) return 0;
    words = *std::move(mount);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  std::vector<std::unique_ptr<Command>> commands;
  for (const auto make :
       {make_serve,     make_clients, make_status,  make_top,     make_capture, make_ls,
        make_stat,      make_cat,     make_cp,      make_sync,    make_mkdir,   make_rm,
        make_mv,        make_ln,      make_touch,   make_chmod,   make_chown,   make_readlink,
        make_find,      make_tree,    make_du,      make_df,      make_mount,   make_umount,
        make_ping,      make_info,    make_devices, make_conform, make_bench,   make_manual,
        make_completion})
    commands.push_back(make());
  return static_cast<int>(
      run_command_line(static_cast<int>(arguments.size()), arguments.data(), std::move(commands)));
}
