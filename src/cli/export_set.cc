#include "cli/export_set.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "vfs/memory/memory.h"
#include "vfs/posix/posix.h"

namespace stag::cli {
namespace {

using Opened = Result<std::shared_ptr<vfs::FileSystem>, std::string>;

Opened open_memory(std::uint64_t file_system_id) {
  vfs::memory::Options options;
  options.file_system_id = file_system_id;
  return std::shared_ptr<vfs::FileSystem>(std::make_shared<vfs::MemoryFileSystem>(options));
}

Opened open_folder(const std::string& folder, const std::string& state,
                   std::uint64_t file_system_id) {
  vfs::PosixFileSystem::Options options;
  options.root = folder;
  options.state_directory = state;
  options.file_system_id = file_system_id;
  auto opened = vfs::PosixFileSystem::open(options);
  if (!opened) return Failure{opened.error()};
  return std::shared_ptr<vfs::FileSystem>(*std::move(opened));
}

bool same_terms(const ExportLine& one, const ExportLine& other) {
  return one.options == other.options && one.clients == other.clients;
}

}  // namespace

// What can be said before any folder is opened.
Result<Ok, ExportSet::Trouble> ExportSet::check(const std::vector<ExportLine>& lines) {
  nfs::Exports trial;
  std::uint32_t id = 0;
  for (const ExportLine& line : lines) {
    const auto added = trial.add(++id, {line.path, nullptr, line.options, line.clients});
    if (!added) return Failure{Trouble{line.where + added.error().message, Exit::Usage}};
    const auto first = std::find_if(lines.begin(), lines.end(), [&](const ExportLine& other) {
      return other.file_system_id == line.file_system_id;
    });
    if (line.file_system_id && &*first != &line)
      return Failure{Trouble{
          fmt::format("{}fsid={} is given twice", line.where, *line.file_system_id), Exit::Usage}};
  }
  return Ok{};
}

const ExportSet::Served* ExportSet::find(const std::string& path) const {
  const auto found = std::find_if(served_.begin(), served_.end(),
                                  [&](const Served& each) { return each.line.path == path; });
  return found == served_.end() ? nullptr : &*found;
}

Result<ExportSet::Served, std::string> ExportSet::serve(ExportLine line) const {
  line.path = nfs::normal_path(line.path).value_or(line.path);
  const Served* before = find(line.path);
  if (before != nullptr &&
      (before->line.folder != line.folder || before->line.file_system_id != line.file_system_id))
    before = nullptr;
  if (before != nullptr && line.folder.empty()) return Served{std::move(line), before->files, 0};
  const std::uint64_t number = line.file_system_id.value_or(nfs_.file_system_id(line.path));
  const Opened files = line.folder.empty() ? open_memory(number)
                                           : open_folder(line.folder, state_directory_, number);
  if (!files) return Failure{line.where + files.error()};
  struct stat status {};
  if (!line.folder.empty() && ::stat(line.folder.c_str(), &status) != 0)
    return Failure{line.where + line.folder + ": " + std::strerror(errno)};
  // The folder may be another one of the same name. The device is asked for too, since a copy of a
  // file system has the identity of the original.
  if (before != nullptr && before->device == status.st_dev &&
      before->files->identity() == (*files)->identity())
    return Served{std::move(line), before->files, status.st_dev};
  return Served{std::move(line), *files, status.st_dev};
}

std::string ExportSet::difference(const std::vector<Served>& next) const {
  std::string text;
  const auto say = [&](std::string_view what, const std::string& path) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", what, path);
  };
  for (const Served& each : next) {
    const Served* before = find(each.line.path);
    if (before == nullptr)
      say("added", each.line.path);
    else if (before->files != each.files || !same_terms(before->line, each.line))
      say("changed", each.line.path);
  }
  for (const Served& before : served_)
    if (std::none_of(next.begin(), next.end(),
                     [&](const Served& each) { return each.line.path == before.line.path; }))
      say("removed", before.line.path);
  return text.empty() ? "nothing has changed" : text;
}

Result<std::string, ExportSet::Trouble> ExportSet::replace(std::vector<ExportLine> lines) {
  const Result<Ok, Trouble> checked = check(lines);
  if (!checked) return Failure{checked.error()};
  std::vector<Served> next;
  std::vector<nfs::ExportSpec> specs;
  for (ExportLine& line : lines) {
    Result<Served, std::string> made = serve(std::move(line));
    if (!made) return Failure{Trouble{made.error(), Exit::Failed}};
    specs.push_back({made->line.path, made->files, made->line.options, made->line.clients});
    next.push_back(*std::move(made));
  }
  const Result<Ok, nfs::ExportError> replaced = nfs_.replace_exports(std::move(specs));
  if (!replaced) return Failure{Trouble{replaced.error().message, Exit::Usage}};
  std::string changes = difference(next);
  served_ = std::move(next);
  return changes;
}

std::vector<ExportLine> ExportSet::lines() const {
  std::vector<ExportLine> lines;
  for (const Served& each : served_) lines.push_back(each.line);
  return lines;
}

}  // namespace stag::cli
