#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/output.h"

int main(int argc, char** argv) {
  using namespace stag::cli;
  occupy_standard_descriptors();
  std::vector<std::unique_ptr<Command>> commands;
  for (const auto make :
       {make_serve, make_clients, make_ls,      make_stat,  make_cat,    make_cp,        make_mkdir,
        make_rm,    make_mv,      make_ln,      make_touch, make_chmod,  make_df,        make_ping,
        make_info,  make_devices, make_conform, make_bench, make_manual, make_completion})
    commands.push_back(make());
  return static_cast<int>(run_command_line(argc, argv, std::move(commands)));
}
