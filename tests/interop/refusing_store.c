// refusing_store -f -o OPTIONS DIR: a file system in memory that refuses what few kernels can be made to refuse: quotas are seldom
// built in, and ENOSPC at fsync takes a file system that promises room and then has none. It has three files, always:
//   plain   takes what it gets
//   quota   answers EDQUOT to a write that ends beyond 64 KiB
//   commit  takes what it gets, and answers ENOSPC to fsync and fdatasync
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kLargest = 16 << 20, kQuota = 64 << 10, kFiles = 3 };

static struct file {
  const char* path;
  off_t most;   // bytes it may have
  int at_most;  // what a write beyond that is answered
  int at_sync;  // what fsync is answered
  off_t size;
  struct timespec modified;
  char* bytes;
} files[kFiles] = {
    {.path = "/plain", .most = kLargest, .at_most = EFBIG},
    {.path = "/quota", .most = kQuota, .at_most = EDQUOT},
    {.path = "/commit", .most = kLargest, .at_most = EFBIG, .at_sync = ENOSPC},
};
static char room[kFiles][kLargest];

static struct file* find(const char* path) {
  for (struct file* file = files; file < files + kFiles; ++file)
    if (strcmp(path, file->path) == 0) return file;
  return NULL;
}

static void touch(struct file* file) { clock_gettime(CLOCK_REALTIME, &file->modified); }

static void* begin(struct fuse_conn_info* connection, struct fuse_config* config) {
  (void)connection;
  config->use_ino = 1;
  return NULL;
}

static int get_attributes(const char* path, struct stat* stat, struct fuse_file_info* info) {
  (void)info;
  memset(stat, 0, sizeof *stat);
  if (strcmp(path, "/") == 0) {
    stat->st_ino = 1;
    stat->st_mode = S_IFDIR | 0755;
    stat->st_nlink = 2;
    return 0;
  }
  const struct file* file = find(path);
  if (file == NULL) return -ENOENT;
  stat->st_ino = 2 + (file - files);
  stat->st_mode = S_IFREG | 0644;
  stat->st_nlink = 1;
  stat->st_size = file->size;
  stat->st_blocks = (file->size + 511) / 512;
  stat->st_mtim = stat->st_ctim = stat->st_atim = file->modified;
  return 0;
}

static int list(const char* path, void* buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info* info,
                enum fuse_readdir_flags flags) {
  (void)path, (void)offset, (void)info, (void)flags;
  fill(buffer, ".", NULL, 0, 0);
  fill(buffer, "..", NULL, 0, 0);
  for (int i = 0; i < kFiles; ++i) fill(buffer, files[i].path + 1, NULL, 0, 0);
  return 0;
}

static int resize(const char* path, off_t size, struct fuse_file_info* info) {
  (void)info;
  struct file* file = find(path);
  if (file == NULL) return -ENOENT;
  if (size > file->most) return -file->at_most;
  if (size > file->size) memset(file->bytes + file->size, 0, size - file->size);
  file->size = size;
  touch(file);
  return 0;
}

static int set_times(const char* path, const struct timespec times[2], struct fuse_file_info* info) {
  (void)info;
  struct file* file = find(path);
  if (file == NULL) return 0;  // of the directory nobody asks
  if (times[1].tv_nsec == UTIME_NOW) touch(file);
  else if (times[1].tv_nsec != UTIME_OMIT) file->modified = times[1];
  return 0;
}

static int get(const char* path, char* to, size_t size, off_t offset, struct fuse_file_info* info) {
  (void)info;
  const struct file* file = find(path);
  if (file == NULL) return -ENOENT;
  if (offset >= file->size) return 0;
  if ((off_t)size > file->size - offset) size = file->size - offset;
  memcpy(to, file->bytes + offset, size);
  return size;
}

static int put(const char* path, const char* from, size_t size, off_t offset, struct fuse_file_info* info) {
  struct file* file = find(path);
  if (file == NULL) return -ENOENT;
  const off_t end = offset + (off_t)size;
  const int fault = end > file->size ? resize(path, end, info) : 0;
  if (fault != 0) return fault;
  memcpy(file->bytes + offset, from, size);
  touch(file);
  return size;
}

static int sync_file(const char* path, int data_only, struct fuse_file_info* info) {
  (void)data_only, (void)info;
  const struct file* file = find(path);
  return file == NULL ? 0 : -file->at_sync;
}

int main(int count, char** words) {
  for (int i = 0; i < kFiles; ++i) {
    files[i].bytes = room[i];
    touch(&files[i]);
  }
  static const struct fuse_operations operations = {
      .init = begin, .getattr = get_attributes, .readdir = list, .truncate = resize, .utimens = set_times,
      .read = get, .write = put, .fsync = sync_file};
  return fuse_main(count, words, &operations, NULL);
}
