// The subcommands, in the order of `stag --help`.
#pragma once

#include <memory>

#include "cli/support/command.h"

namespace stag::cli {

std::unique_ptr<Command> make_serve();
std::unique_ptr<Command> make_clients();
std::unique_ptr<Command> make_status();
std::unique_ptr<Command> make_top();
std::unique_ptr<Command> make_capture();
std::unique_ptr<Command> make_ls();
std::unique_ptr<Command> make_stat();
std::unique_ptr<Command> make_cat();
std::unique_ptr<Command> make_cp();
std::unique_ptr<Command> make_sync();
std::unique_ptr<Command> make_mkdir();
std::unique_ptr<Command> make_rm();
std::unique_ptr<Command> make_mv();
std::unique_ptr<Command> make_ln();
std::unique_ptr<Command> make_touch();
std::unique_ptr<Command> make_chmod();
std::unique_ptr<Command> make_chown();
std::unique_ptr<Command> make_readlink();
std::unique_ptr<Command> make_find();
std::unique_ptr<Command> make_tree();
std::unique_ptr<Command> make_du();
std::unique_ptr<Command> make_df();
std::unique_ptr<Command> make_mount();
std::unique_ptr<Command> make_umount();
std::unique_ptr<Command> make_ping();
std::unique_ptr<Command> make_info();
std::unique_ptr<Command> make_devices();
std::unique_ptr<Command> make_conform();
std::unique_ptr<Command> make_bench();
std::unique_ptr<Command> make_manual();
std::unique_ptr<Command> make_completion();

}  // namespace stag::cli
