#include "cli/arguments.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  using namespace stag::cli;
  std::vector<std::unique_ptr<Command>> commands;
  for (const auto make : {make_serve, make_ls, make_cp}) commands.push_back(make());
  return static_cast<int>(run_command_line(argc, argv, std::move(commands)));
}
