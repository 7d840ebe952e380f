// folding_store -f FOLDER DIR: a file system at DIR that shows FOLDER, takes names that differ in case for one, and keeps the spelling of
// the first, as those of Windows and of macOS do.
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <string>

static std::string folder;

// The name as it is in the directory.
static std::string spelled(const std::string& directory, const std::string& name) {
  std::string found = name;
  DIR* const stream = opendir(directory.c_str());
  while (const dirent* entry = stream == nullptr ? nullptr : readdir(stream))
    if (strcasecmp(entry->d_name, name.c_str()) == 0) found = entry->d_name;
  if (stream != nullptr) closedir(stream);
  return found;
}

static std::string real(const std::string& path) {
  std::string found = folder;
  for (size_t at = 1; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    found += "/" + spelled(found, path.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

static int result(ssize_t of) {
  return of < 0 ? -errno : static_cast<int>(of);
}

static void* begin(fuse_conn_info*, fuse_config* config) {
  config->use_ino = 1;
  // What is open by one spelling is not renamed to be hidden when it is renamed by another one.
  config->hard_remove = 1;
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
  return nullptr;
}
static int get_attributes(const char* path, struct stat* stat, fuse_file_info*) {
  return result(lstat(real(path).c_str(), stat));
}
static int list(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
  DIR* const stream = opendir(real(path).c_str());
  if (stream == nullptr) return -errno;
  while (const dirent* entry = readdir(stream)) fill(buffer, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
  closedir(stream);
  return 0;
}
static int make_directory(const char* path, mode_t mode) {
  return result(mkdir(real(path).c_str(), mode));
}
static int remove_file(const char* path) {
  return result(unlink(real(path).c_str()));
}
static int remove_directory(const char* path) {
  return result(rmdir(real(path).c_str()));
}
static int rename_object(const char* from, const char* to, unsigned flags) {
  const std::string source = real(from);
  std::string target = real(to);
  // Another spelling of its own name.
  if (source == target) target.replace(target.rfind('/'), std::string::npos, std::string(to).substr(std::string(to).rfind('/')));
  return result(renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), flags));
}
static int change_mode(const char* path, mode_t mode, fuse_file_info*) {
  return result(chmod(real(path).c_str(), mode));
}
static int change_owner(const char* path, uid_t user, gid_t group, fuse_file_info*) {
  return result(lchown(real(path).c_str(), user, group));
}
static int change_size(const char* path, off_t size, fuse_file_info*) {
  return result(truncate(real(path).c_str(), size));
}
static int change_times(const char* path, const timespec times[2], fuse_file_info*) {
  return result(utimensat(AT_FDCWD, real(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
}
static int open_file(const char* path, fuse_file_info* file) {
  const int fd = open(real(path).c_str(), file->flags);
  file->fh = static_cast<uint64_t>(fd);
  return fd < 0 ? -errno : 0;
}
static int create_file(const char* path, mode_t mode, fuse_file_info* file) {
  const int fd = open(real(path).c_str(), file->flags | O_CREAT, mode);
  file->fh = static_cast<uint64_t>(fd);
  return fd < 0 ? -errno : 0;
}
static int read_file(const char*, char* to, size_t size, off_t at, fuse_file_info* file) {
  return result(pread(static_cast<int>(file->fh), to, size, at));
}
static int write_file(const char*, const char* from, size_t size, off_t at, fuse_file_info* file) {
  return result(pwrite(static_cast<int>(file->fh), from, size, at));
}
static int close_file(const char*, fuse_file_info* file) {
  return result(close(static_cast<int>(file->fh)));
}

int main(int count, char** words) {
  if (count != 4) return 2;
  folder = words[2];
  words[2] = words[3];
  umask(0);
  static fuse_operations operations{};
  operations.init = begin;
  operations.getattr = get_attributes;
  operations.readdir = list;
  operations.mkdir = make_directory;
  operations.unlink = remove_file;
  operations.rmdir = remove_directory;
  operations.rename = rename_object;
  operations.chmod = change_mode;
  operations.chown = change_owner;
  operations.truncate = change_size;
  operations.utimens = change_times;
  operations.open = open_file;
  operations.create = create_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.release = close_file;
  return fuse_main(3, words, &operations, nullptr);
}
