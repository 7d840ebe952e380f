// Manual pages and completions, generated from the same description as --help.
#include <fstream>

#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/exports_page.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

class Manual final : public Command {
 public:
  About about() const override {
    return {"manual", "print a manual page, or write all of them",
            "  stag manual cp | man -l -\n"
            "  stag manual exports | man -l -\n"
            "  stag manual --to /usr/local/share/man/man1\n"};
  }
  void declare(Arguments& arguments) override {
    program_ = arguments.describe_program();
    arguments.text("--to", folder_, "DIR",
                   "write stag.1 and the page of each command there instead");
    arguments.positional("COMMAND", command_,
                         "the one it is about, or 'exports'; without: stag itself", false);
  }
  Exit run() override {
    const ProgramText text = program_();
    if (!folder_.empty()) return write_all(text);
    if (command_.empty()) return put("{}", manual_of_program(text)), Exit::Done;
    if (command_ == "exports") return put("{}", exports_page()), Exit::Done;
    for (const CommandText& command : text.commands)
      if (command.name == command_) return put("{}", manual_of(command, text)), Exit::Done;
    return misused("there is no command '" + command_ + "'; 'stag --help' lists them");
  }

 private:
  Exit write_all(const ProgramText& text) const {
    if (!command_.empty()) return misused("say either a command or --to");
    if (!write("stag", manual_of_program(text))) return Exit::Failed;
    for (const CommandText& command : text.commands)
      if (!write("stag-" + command.name, manual_of(command, text))) return Exit::Failed;
    return Exit::Done;
  }
  bool write(const std::string& name, const std::string& page) const {
    const std::string path = folder_ + "/" + name + ".1";
    std::ofstream file(path);
    if (file << page << std::flush) return true;
    failed("cannot write " + path);
    return false;
  }

  std::function<ProgramText()> program_;
  std::string command_, folder_;
};

class Completion final : public Command {
 public:
  About about() const override {
    return {"completion", "print a script that completes commands and options in a shell",
            "  stag completion zsh >~/.zfunc/_stag\n"
            "  source <(stag completion bash)\n"
            "  stag completion fish >~/.config/fish/completions/stag.fish\n"};
  }
  void declare(Arguments& arguments) override {
    program_ = arguments.describe_program();
    arguments.positional("SHELL", shell_, "bash, zsh or fish");
  }
  Exit run() override {
    for (const char* shell : kShells)
      if (shell_ == shell) return put("{}", completion_for(shell_, program_())), Exit::Done;
    return misused("there are completions for bash, zsh and fish");
  }

 private:
  std::function<ProgramText()> program_;
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_manual() {
  return std::make_unique<Manual>();
}
std::unique_ptr<Command> make_completion() {
  return std::make_unique<Completion>();
}

}  // namespace stag::cli
