#include "cli/serve/export_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "cli/serve/ceph_export.h"
#include "cli/serve/late_hosts.h"
#include "cli/support/log.h"
#include "cli/support/text_file.h"
#include "vfs/memory/memory.h"
#include "vfs/posix/layers.h"
#include "vfs/posix/posix.h"
#include "vfs/posix/state_overlap.h"

namespace stag::cli {
namespace {

std::shared_ptr<vfs::FileSystem> open_memory(std::uint64_t file_system_id) {
  vfs::memory::Options options;
  options.file_system_id = file_system_id;
  return std::make_shared<vfs::MemoryFileSystem>(options);
}

struct Folder {
  std::shared_ptr<vfs::FileSystem> files;
  dev_t device = 0;
  std::vector<std::string> names;
  FolderDoubts doubts;
};

// The path as the operator wrote it and with symbolic links resolved.
std::vector<std::string> names_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code gone;
  names.push_back(std::filesystem::absolute(folder, gone));
  names.push_back(std::filesystem::canonical(folder, gone));
  std::erase(names, "");
  return names;
}

vfs::PosixFileSystem::Options options_of(const ExportLine& line, const StoreWorkers& workers) {
  vfs::PosixFileSystem::Options options;
  options.root = line.folder;
  options.at_once = line.at_once;
  options.sees_local_programs = !line.nfs_only;
  options.workers = workers.plain;
  options.sync_workers = workers.syncing;
  return options;
}

std::string why_no_folder(const std::string& folder) {
  const int error = errno;
  return fmt::format(
      "cannot open the folder {}: {}{}", folder, std::strerror(error),
      error == ENOENT ? "; make it, or mount it, or take the export out. With the option 'mp' all "
                        "others are served until something is mounted there"
                      : "");
}

Result<Folder, std::string> open_folder(const vfs::PosixFileSystem::Options& options,
                                        const std::string& state_directory) {
  // Also where the store keeps no table of its own in it.
  if (const std::string overlap = vfs::posix::state_overlap(options.root, state_directory);
      !overlap.empty())
    return Failure{overlap +
                   ". Keep the state elsewhere with --state DIR, or export another folder"};
  struct stat status {};
  if (::stat(options.root.c_str(), &status) != 0) return Failure{why_no_folder(options.root)};
  auto opened = vfs::PosixFileSystem::open(options);
  if (!opened) return Failure{opened.error()};
  const bool closed = vfs::PosixFileSystem::serves_all_as_one() &&
                      ::faccessat(AT_FDCWD, options.root.c_str(), R_OK | X_OK, AT_EACCESS) != 0;
  return Folder{*std::move(opened),
                status.st_dev,
                names_of(options.root),
                {closed, vfs::posix::file_of_another_device(options.root)}};
}

void log_doubts(const ExportLine& line, const FolderDoubts& doubts) {
  if (doubts.closed)
    log_notice(Event::ExportFolderClosed, "export " + line.path,
               fmt::format("{}, user {}", line.folder, ::geteuid()));
  if (!doubts.unserved_file.empty())
    log_notice(Event::ExportFilesUnserved, "export " + line.path, doubts.unserved_file);
}

std::string why_not_opened(const ExportLine& line, StoreWatch::Silence why) {
  if (why == StoreWatch::Silence::NoThread)
    return fmt::format(
        "{}the system has no thread left to open the folder {} with; raise its limit (TasksMax=, "
        "ulimit -u)",
        line.where, line.folder);
  return fmt::format("{}the folder {} does not answer; does what it is mounted from work?",
                     line.where, line.folder);
}

bool is_folder(const ExportLine& line) {
  return !line.folder.empty() && !is_ceph(line.folder);
}

std::string store_of(const ExportLine& line) {
  return "export " + line.path;
}

// Or why it cannot be opened.
using Tried = Result<Result<FolderDoubts, std::string>, StoreWatch::Silence>;

// The same as long as nothing is mounted or unmounted on this machine (proc(5)).
std::string mounts_of_now() {
  const std::string table = text_of_file("/proc/self/mountinfo").value_or("");
  return fmt::format("{}", std::hash<std::string>()(table));
}

// What comes of opening the folders, by the paths of their exports. They are asked at once, while
// file systems are opened one after another: several may use one table of the state directory,
// which these do without.
std::map<std::string, Tried> try_folders(const std::vector<ExportLine>& lines, StoreWatch& stores,
                                         const std::string& state_directory) {
  const auto question = [&](const ExportLine& line) {
    return
        [options = options_of(line, {}), state_directory]() -> Result<FolderDoubts, std::string> {
          const auto opened = open_folder(options, state_directory);
          if (!opened) return Failure{opened.error()};
          return opened->doubts;
        };
  };
  // A folder that hangs is asked again once something else may be mounted there.
  const std::string mounts = mounts_of_now();
  std::vector<std::string> paths;
  std::vector<std::pair<StoreWatch::Subject, decltype(question(lines.front()))>> questions;
  for (const ExportLine& line : lines) {
    if (!is_folder(line)) continue;
    paths.push_back(line.path);
    questions.emplace_back(StoreWatch::Subject(store_of(line), line.folder + " " + mounts),
                           question(line));
  }
  std::vector<Tried> answers = stores.ask_all(std::move(questions));
  std::map<std::string, Tried> tried;
  for (std::size_t i = 0; i < paths.size(); ++i) tried.emplace(paths[i], std::move(answers[i]));
  return tried;
}

std::string doubt_of(const ExportLine& line) {
  return line.where + line.doubt;
}

bool same_terms(const ExportLine& one, const ExportLine& other) {
  return one.options == other.options && rules_of(one) == rules_of(other);
}

using Names = std::shared_ptr<nfs::ClientNames>;

// With a name service, where names are asked for.
std::vector<nfs::ClientRule> known(std::vector<nfs::ClientRule> rules, const Names& names) {
  for (nfs::ClientRule& rule : rules)
    if (rule.by_name) rule.names = names;
  return rules;
}

using Trouble = ExportSet::Trouble;

// Errors that can be found before any folder is opened.
Result<Ok, Trouble> check(const std::vector<ExportLine>& lines, const Names& names) {
  nfs::Exports trial;
  std::uint32_t id = 0;
  for (const ExportLine& line : lines) {
    const auto added =
        trial.add(++id, {line.path, nullptr, line.options, known(line.clients, names)});
    if (!added) return Failure{Trouble{line.where + added.error().message, Exit::Usage}};
    if (is_ceph(line.folder))
      if (const auto place = parse_ceph(line.folder); !place)
        return Failure{Trouble{line.where + place.error(), Exit::Usage}};
    const auto first = std::find_if(lines.begin(), lines.end(), [&](const ExportLine& other) {
      return other.file_system_id == line.file_system_id;
    });
    if (line.file_system_id && &*first != &line)
      return Failure{Trouble{
          fmt::format("{}fsid={} is given twice", line.where, *line.file_system_id), Exit::Usage}};
  }
  return Ok{};
}

}  // namespace

Result<std::vector<std::string>, Trouble> ExportSet::rehearse(const std::vector<ExportLine>& lines,
                                                              StoreWatch& stores,
                                                              const std::string& state_directory) {
  if (const auto checked = check(lines, system_client_names()); !checked)
    return Failure{checked.error()};
  const std::map<std::string, Tried> tried = try_folders(lines, stores, state_directory);
  std::vector<std::string> doubts;
  for (const ExportLine& line : lines) {
    if (!line.doubt.empty()) doubts.push_back(doubt_of(line));
    const auto found = tried.find(line.path);
    if (found == tried.end()) continue;
    const Tried& opened = found->second;
    if (!opened) doubts.push_back(why_not_opened(line, opened.error()));
    if (opened && !*opened) return Failure{Trouble{line.where + opened->error()}};
    if (opened) log_doubts(line, **opened);
  }
  return doubts;
}

const ExportSet::ServedExport* ExportSet::find(const std::string& path) const {
  const auto found = std::find_if(served_.begin(), served_.end(),
                                  [&](const ServedExport& each) { return each.line.path == path; });
  return found == served_.end() ? nullptr : &*found;
}

const ExportSet::ServedExport* ExportSet::same(const ExportLine& line) const {
  const ServedExport* before = find(line.path);
  if (before == nullptr || before->line.folder != line.folder ||
      before->line.file_system_id != line.file_system_id)
    return nullptr;
  // These two mean something for folders of this machine only.
  const bool used_as_before =
      before->line.at_once == line.at_once && before->line.nfs_only == line.nfs_only;
  return used_as_before || line.folder.empty() || is_ceph(line.folder) ? before : nullptr;
}

Result<ExportSet::ServedExport, std::string> ExportSet::serve(ExportLine line,
                                                              const Silent& silent) const {
  if (!line.doubt.empty() && same(line) == nullptr) return Failure{doubt_of(line)};
  if (line.folder.empty()) return serve_memory(std::move(line));
  if (is_ceph(line.folder)) return serve_ceph(std::move(line));
  return serve_folder(std::move(line), silent);
}

Result<ExportSet::ServedExport, std::string> ExportSet::serve_memory(ExportLine line) const {
  if (const ServedExport* before = same(line)) return ServedExport{std::move(line), before->files};
  // Another store would be an empty one.
  if (const ServedExport* before = find(line.path);
      before != nullptr && before->line.folder.empty())
    return Failure{
        fmt::format("{}export {} is in memory: another fsid needs a restart, which empties it",
                    line.where, line.path)};
  const std::uint64_t number = line.file_system_id.value_or(nfs_.file_system_id(line.path));
  return ServedExport{std::move(line), open_memory(number)};
}

bool ExportSet::would_end_mount(const std::string& path, const CephPlace& next) const {
  const ServedExport* before = find(path);
  if (before == nullptr || !is_ceph(before->line.folder)) return false;
  const auto served = parse_ceph(before->line.folder);
  return served && ends_mount(*served, next);
}

Result<ExportSet::ServedExport, std::string> ExportSet::serve_ceph(ExportLine line) const {
  if (const ServedExport* before = same(line)) return ServedExport{std::move(line), before->files};
  const auto place = parse_ceph(line.folder);
  if (!place) return Failure{line.where + place.error()};
  if (would_end_mount(line.path, *place))
    return Failure{fmt::format(
        "{}export {} is mounted as gateway={}: another directory, setting or fsid of it needs a "
        "restart",
        line.where, line.path, place->gateway)};
  const std::uint64_t number = line.file_system_id.value_or(nfs_.file_system_id(line.path));
  auto opened = open_ceph(*place, line.path, number, stores_, ceph_attempts_);
  if (!opened) return Failure{line.where + opened.error()};
  return ServedExport{std::move(line), *std::move(opened)};
}

Result<ExportSet::ServedExport, std::string> ExportSet::serve_folder(ExportLine line,
                                                                     const Silent& silent) const {
  const std::string name = store_of(line);
  vfs::PosixFileSystem::Options options = options_of(line, stores_.make(name));
  options.state_directory = state_directory_;
  options.file_system_id = line.file_system_id.value_or(nfs_.file_system_id(line.path));
  using Opened = Result<Result<Folder, std::string>, StoreWatch::Silence>;
  const auto open = [options] { return open_folder(options, options.state_directory); };
  const Opened opened = silent.contains(line.path) ? Opened(Failure{StoreWatch::Silence::NoAnswer})
                                                   : stores_.ask(name, open);
  const ServedExport* before = same(line);
  if (!opened && before == nullptr) return Failure{why_not_opened(line, opened.error())};
  if (opened && !*opened) return Failure{line.where + opened->error()};
  // The folder may be another one of the same name. The device is asked for too, since a copy of a
  // file system has the identity of the original.
  if (before != nullptr && (!opened || ((*opened)->device == before->device &&
                                        (*opened)->files->identity() == before->files->identity())))
    return ServedExport{std::move(line), before->files, before->device, before->names,
                        opened ? (*opened)->doubts : before->doubts};
  return ServedExport{std::move(line), (*opened)->files, (*opened)->device, (*opened)->names,
                      (*opened)->doubts};
}

std::string ExportSet::difference(const std::vector<ServedExport>& next) const {
  std::string text;
  const auto say = [&](std::string_view what, const std::string& path) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", what, path);
  };
  for (const ServedExport& each : next) {
    const ServedExport* before = find(each.line.path);
    if (before == nullptr)
      say("added", each.line.path);
    else if (before->files != each.files || !same_terms(before->line, each.line))
      say("changed", each.line.path);
  }
  for (const ServedExport& before : served_)
    if (std::none_of(next.begin(), next.end(),
                     [&](const ServedExport& each) { return each.line.path == before.line.path; }))
      say("removed", before.line.path);
  return text.empty() ? "nothing has changed" : text;
}

Result<std::string, Trouble> ExportSet::replace(std::vector<ExportLine> lines) {
  const Result<Ok, Trouble> checked = check(lines, names_);
  if (!checked) return Failure{checked.error()};
  std::vector<ServedExport> next;
  for (ExportLine& line : lines) line.path = nfs::normal_path(line.path).value_or(line.path);
  Silent silent;
  for (const auto& [path, tried] : try_folders(lines, stores_, state_directory_))
    if (!tried && tried.error() == StoreWatch::Silence::NoAnswer) silent.insert(path);
  for (ExportLine& line : lines) {
    if (const ServedExport* before = find(line.path)) keep_addresses(line, before->line);
    Result<ServedExport, std::string> made = serve(std::move(line), silent);
    if (!made) return Failure{Trouble{made.error(), Exit::Failed}};
    next.push_back(*std::move(made));
  }
  std::string changes = difference(next);
  if (const auto published = publish(std::move(next)); !published)
    return Failure{published.error()};
  names_->forget();
  return changes;
}

Result<Ok, Trouble> ExportSet::publish(std::vector<ServedExport> next) {
  std::vector<nfs::ExportSpec> specs;
  std::set<std::string> mentioned;
  std::vector<ShownExport> shown;
  for (const ServedExport& each : next) {
    shown.push_back(cli::shown(each.line));
    specs.push_back({each.line.path, each.files, each.line.options,
                     known(rules_of(each.line), names_), each.names});
    for (const nfs::ClientRule& rule : specs.back().clients) {
      if (!rule.by_name) continue;
      names_->mention(rule.match, each.line.netgroups.contains(rule.match));
      mentioned.insert(rule.match);
    }
  }
  const Result<Ok, nfs::ExportError> replaced = nfs_.replace_exports(std::move(specs));
  if (!replaced) return Failure{Trouble{replaced.error().message, Exit::Usage}};
  names_->keep_only(mentioned);
  served_ = std::move(next);
  {
    auto made = std::make_shared<const std::vector<ShownExport>>(std::move(shown));
    const std::lock_guard lock(shown_mutex_);
    shown_.swap(made);
  }
  log_doubtful();
  return Ok{};
}

void ExportSet::log_doubtful() const {
  for (const ServedExport& each : served_) {
    log_doubts(each.line, each.doubts);
    for (const std::string& sentence : unknown_clients(each.line))
      log_notice(Event::ExportClientUnknown, "export " + each.line.path, sentence);
  }
}

std::set<std::string> ExportSet::late_hosts() const {
  std::set<std::string> late;
  for (const ServedExport& each : served_) late.merge(cli::late_hosts(each.line));
  return late;
}

void ExportSet::take(const HostAnswers& answers) {
  std::vector<ServedExport> next = served_;
  std::vector<std::string> found;
  for (ServedExport& served : next)
    for (const std::string& each : take_answers(served.line, answers))
      found.push_back(fmt::format("export {}: client {}", served.line.path, each));
  if (found.empty()) return;
  const auto published = publish(std::move(next));
  if (!published) return trace(Reason::ExportsReloadFailed, "hosts", published.error().sentence);
  for (const std::string& each : found) log_notice(Event::ExportClientKnown, "hosts", each);
}

std::vector<ExportLine> ExportSet::lines() const {
  std::vector<ExportLine> lines;
  for (const ServedExport& each : served_) lines.push_back(each.line);
  return lines;
}

}  // namespace stag::cli
