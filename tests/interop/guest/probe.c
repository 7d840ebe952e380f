// What a shell cannot do to a file: probe map FILE BYTES | probe direct FILE BYTES | probe open FILE BYTES |
// probe names FOLDER COUNT | probe once FOLDER REPEATED | probe sources FOLDER COUNT | probe ranges FOLDER BYTES |
// probe xattrs FOLDER LENGTH | probe clone FOLDER BYTES | probe copy FOLDER BYTES.
// Prints what went wrong and exits 1.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static void need(int truth, const char *what) {
  if (truth) return;
  perror(what);
  exit(1);
}

static unsigned char pattern(size_t at) { return (unsigned char)(at * 31 + (at >> 8) * 7 + 1); }

static void compare(const unsigned char *bytes, size_t from, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != pattern(from + i)) {
      fprintf(stderr, "byte %zu differs\n", from + i);
      exit(1);
    }
}

static void forget_cache(void) {
  sync();
  int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
  need(fd >= 0 && write(fd, "3", 1) == 1, "drop_caches");
  close(fd);
}

// Written through one mapping, read back through another.
static void map(const char *path, size_t size) {
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  need(fd >= 0 && ftruncate(fd, (off_t)size) == 0, path);
  unsigned char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  need(bytes != MAP_FAILED, "mmap for writing");
  for (size_t i = 0; i < size; i++) bytes[i] = pattern(i);
  need(msync(bytes, size, MS_SYNC) == 0, "msync");
  munmap(bytes, size);
  close(fd);
  forget_cache();
  fd = open(path, O_RDONLY);
  bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  need(bytes != MAP_FAILED, "mmap for reading");
  compare(bytes, 0, size);
}

// O_DIRECT at odd offsets with odd lengths: the client asks for what the server gives, unrounded.
static void direct(const char *path, size_t size) {
  static const size_t steps[] = {1, 3, 5, 4095, 4097, 5001, 65537, 131071};
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0644);
  need(fd >= 0, path);
  unsigned char *room = NULL;
  need(posix_memalign((void **)&room, 4096, 1 << 18) == 0, "memory");
  size_t at = 0;
  for (int i = 0; at < size; i++) {
    size_t step = steps[i % 8];
    if (step > size - at) step = size - at;
    for (size_t k = 0; k < step; k++) room[k] = pattern(at + k);
    need(pwrite(fd, room, step, (off_t)at) == (ssize_t)step, "direct write");
    at += step;
  }
  at = 0;
  for (int i = 5; at < size; i++) {
    size_t step = steps[i % 8], expected = step > size - at ? size - at : step;
    need(pread(fd, room, step, (off_t)at) == (ssize_t)expected, "direct read");
    compare(room, at, expected);
    at += expected;
  }
  need(pread(fd, room, 100, (off_t)size) == 0, "direct read at the end");
}

// A file that is open stays usable when its name is gone or taken by another.
static void kept_open(const char *path, size_t size) {
  char other[4096];
  snprintf(other, sizeof other, "%s.other", path);
  for (int way = 0; way < 2; way++) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    need(fd >= 0, path);
    for (size_t i = 0; i < size; i++) {
      unsigned char byte = pattern(i);
      need(pwrite(fd, &byte, 1, (off_t)i) == 1, "write");
    }
    need(fsync(fd) == 0, "fsync");
    if (way == 0) {
      need(unlink(path) == 0, "unlink");
    } else {
      int second = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0644);
      need(second >= 0 && write(second, "x", 1) == 1 && close(second) == 0, other);
      need(rename(other, path) == 0, "rename over an open file");
    }
    forget_cache();
    unsigned char *bytes = malloc(size);
    need(pread(fd, bytes, size, 0) == (ssize_t)size, "read after the name is gone");
    compare(bytes, 0, size);
    free(bytes);
    close(fd);
  }
  struct stat now;
  need(stat(path, &now) == 0 && now.st_size == 1, "the file that took the name");
}

// Files named by every byte there is but "/" and NUL: each byte between two letters, and all of them in one name; listed, found again
// and removed. (A server that takes names for UTF-8 refuses half of them.)
static void names(const char *path, size_t expected) {
  char name[256], all[256];
  size_t made = 0;
  need(mkdir(path, 0755) == 0 && chdir(path) == 0, path);
  for (int byte = 1; byte < 256; byte++) {
    if (byte == '/') continue;
    all[made++] = (char)byte;
    snprintf(name, sizeof name, "a%cz", byte);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    need(fd >= 0 && close(fd) == 0, name);
  }
  all[made] = 0;
  int fd = open(all, O_WRONLY | O_CREAT | O_EXCL, 0644);
  need(fd >= 0 && close(fd) == 0, "a name of all bytes");
  need(made == expected, "the number of bytes");
  forget_cache();
  DIR *folder = opendir(".");
  need(folder != NULL, "opendir");
  size_t found = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    found += strcmp(entry->d_name, all) == 0 || (entry->d_name[0] == 'a' && strlen(entry->d_name) == 3 && entry->d_name[2] == 'z');
  closedir(folder);
  if (found != made + 1) {
    fprintf(stderr, "%zu names of %zu are listed\n", found, made + 1);
    exit(1);
  }
  struct stat now;
  need(stat(all, &now) == 0 && unlink(all) == 0, "the name of all bytes");
  for (size_t i = 0; i < made; i++) {
    snprintf(name, sizeof name, "a%cz", all[i]);
    need(stat(name, &now) == 0 && unlink(name) == 0, name);
  }
  need(chdir("/") == 0 && rmdir(path) == 0, path);
}

static long found_done;

// How an operation ended that must not be done twice: well, or as if it had been done before, which the caller then looks at.
static void ended(int result, int done_before, const char *what) {
  if (result == 0) return;
  need(errno == done_before, what);
  found_done++;
}

static void absent(const char *path) { need(access(path, F_OK) != 0 && errno == ENOENT, path); }

// By open and close, which ask the server for the attributes.
static struct stat fresh(const char *path) {
  struct stat now;
  int fd = open(path, O_RDONLY);
  need(fd >= 0 && fstat(fd, &now) == 0, path);
  close(fd);
  return now;
}

static void append(const char *path, const char *line) {
  int fd = open(path, O_WRONLY | O_APPEND);
  need(fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line) && fsync(fd) == 0 && close(fd) == 0, "append");
}

static void once_around(long round) {
  char dir[32], file[64], second[64], link_[64], moved[32], line[32];
  snprintf(dir, sizeof dir, "dir.%ld", round);
  snprintf(file, sizeof file, "%s/file", dir);
  snprintf(second, sizeof second, "%s/second", dir);
  snprintf(link_, sizeof link_, "%s/link", dir);
  snprintf(moved, sizeof moved, "moved.%ld", round);
  snprintf(line, sizeof line, "%ld\n", round);
  ended(mkdir(dir, 0755), EEXIST, "mkdir");
  // A repeated exclusive CREATE carries the same verifier (RFC 1813 3.3.8): nothing may come between.
  int fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0644);
  need(fd >= 0 && write(fd, line, strlen(line)) > 0 && close(fd) == 0, "exclusive create");
  ended(link(file, second), EEXIST, "link");
  ended(symlink(line, link_), EEXIST, "symlink");
  ended(rename(file, moved), ENOENT, "rename");
  absent(file);
  struct stat one = fresh(moved), other = fresh(second);
  need(one.st_ino == other.st_ino && one.st_nlink == 2 && one.st_size == (off_t)strlen(line), "what was linked and renamed");
  append("log", line);
  ended(unlink(moved), ENOENT, "unlink");
  ended(unlink(second), ENOENT, "unlink of the second name");
  ended(unlink(link_), ENOENT, "unlink of the symbolic link");
  ended(rmdir(dir), ENOENT, "rmdir");
  absent(moved);
  absent(dir);
}

// Makes, links, renames, appends and removes until there is a file /tmp/loaded: each is done once, and no more than `most` of them say
// that it was done before they came.
static void once(const char *path, long most) {
  ended(mkdir(path, 0755), EEXIST, path);
  need(chdir(path) == 0, path);
  int fd = open("log", O_CREAT | O_EXCL | O_WRONLY, 0644);
  need(fd >= 0 && close(fd) == 0, "log");
  long rounds = 0;
  for (; access("/tmp/loaded", F_OK) != 0; rounds++) once_around(rounds);
  forget_cache();
  FILE *log = fopen("log", "r");
  need(log != NULL, "log");
  char line[32], expected[32];
  for (long round = 0; round < rounds; round++) {
    snprintf(expected, sizeof expected, "%ld\n", round);
    need(fgets(line, sizeof line, log) != NULL && strcmp(line, expected) == 0, "what was appended");
  }
  need(fgets(line, sizeof line, log) == NULL, "the end of what was appended");
  DIR *folder = opendir(".");
  need(folder != NULL, "opendir");
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    need(strcmp(entry->d_name, "log") == 0 || entry->d_name[0] == '.', entry->d_name);
  printf("%ld operations, %ld were found done\n", rounds * 10, found_done);
  errno = 0;
  need(found_done <= most, "more were found done than were repeated");
}

// What a program is compiled from: so many files in 150 folders, three deep, most of them small, none of more than 64 KiB, none like
// another; every hundredth has a hard and a symbolic link beside it.
static void sources(const char *path, size_t files) {
  static unsigned char text[1 << 16];
  need(mkdir(path, 0755) == 0 && chdir(path) == 0, path);
  for (unsigned n = 0; n < 150; n++) {
    char folder[64];
    snprintf(folder, sizeof folder, "part%u", n / 25);
    need(mkdir(folder, 0755) == 0 || errno == EEXIST, folder);
    snprintf(folder, sizeof folder, "part%u/unit%u", n / 25, n / 5);
    need(mkdir(folder, 0755) == 0 || errno == EEXIST, folder);
    snprintf(folder, sizeof folder, "part%u/unit%u/%u", n / 25, n / 5, n);
    need(mkdir(folder, 0755) == 0, folder);
  }
  srandom(2000);
  for (size_t n = 0; n < files; n++) {
    const unsigned in = (unsigned)random() % 150;
    const double share = (double)(random() % 1001) / 1000;
    const size_t size = (size_t)(share * share * share * share * sizeof text);
    for (size_t i = 0; i < size; i++) text[i] = pattern(i * n + n);
    char file[64], link_name[64], target[32];
    snprintf(file, sizeof file, "part%u/unit%u/%u/%zu.c", in / 25, in / 5, in, n);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, n % 7 == 0 ? 0755 : 0644);
    need(fd >= 0 && write(fd, text, size) == (ssize_t)size && close(fd) == 0, file);
    if (n % 100 != 0) continue;
    snprintf(target, sizeof target, "%zu.c", n);
    snprintf(link_name, sizeof link_name, "part%u/unit%u/%u/%zu.h", in / 25, in / 5, in, n);
    need(symlink(target, link_name) == 0, link_name);
    snprintf(link_name, sizeof link_name, "part%u/unit%u/%u/%zu.o", in / 25, in / 5, in, n);
    need(link(file, link_name) == 0, link_name);
  }
}

static void expect_zeros(int fd, off_t from, size_t count) {
  for (size_t i = 0; i < count; i++) {
    unsigned char byte = 1;
    need(pread(fd, &byte, 1, from + (off_t)i) == 1 && byte == 0, "a hole reads as zeros");
  }
}

// What version 4.2 has for parts of files: room is reserved, a hole punched and found, the file copied by the server.
static void ranges(const char *folder, size_t size) {
  enum { kHole = 65536, kBehind = 131072 };
  need(chdir(folder) == 0 && size > 2 * kBehind, folder);
  unsigned char *bytes = malloc(size);
  for (size_t i = 0; i < size; i++) bytes[i] = pattern(i);
  int fd = open("ranges", O_RDWR | O_CREAT | O_TRUNC, 0644);
  need(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && fsync(fd) == 0, "ranges");
  need(fallocate(fd, 0, (off_t)size, 10000) == 0, "fallocate");
  struct stat found;
  need(fstat(fd, &found) == 0 && found.st_size == (off_t)size + 10000, "the size after fallocate");
  need(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kHole, kBehind - kHole) == 0, "punching a hole");
  close(fd);
  forget_cache();
  fd = open("ranges", O_RDONLY);
  need(lseek(fd, 0, SEEK_HOLE) == kHole, "SEEK_HOLE");
  need(lseek(fd, kHole, SEEK_DATA) == kBehind, "SEEK_DATA");
  need(lseek(fd, (off_t)size + 20000, SEEK_DATA) < 0 && errno == ENXIO, "SEEK_DATA behind the end");
  expect_zeros(fd, kHole, 100);
  expect_zeros(fd, (off_t)size, 100);
  int copy = open("ranges.copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
  need(copy >= 0 && lseek(fd, 0, SEEK_SET) == 0, "ranges.copy");
  for (size_t left = size; left > 0;) {
    const ssize_t moved = copy_file_range(fd, NULL, copy, NULL, left, 0);
    need(moved > 0, "copy_file_range");
    left -= (size_t)moved;
  }
  close(copy);
  forget_cache();
  copy = open("ranges.copy", O_RDONLY);
  need(copy >= 0 && read(copy, bytes, kHole) == kHole, "what was copied");
  compare(bytes, 0, kHole);
  expect_zeros(copy, kHole, 100);
  need(pread(copy, bytes, size - kBehind, kBehind) == (ssize_t)(size - kBehind), "the rest of it");
  compare(bytes, kBehind, size - kBehind);
}

static int filled(const char *path, size_t size) {
  unsigned char *bytes = malloc(size);
  for (size_t i = 0; i < size; i++) bytes[i] = pattern(i);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  need(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && fsync(fd) == 0, path);
  free(bytes);
  return fd;
}

// Of a file that the server has, not the caches.
static void holds(const char *path, size_t from, size_t size) {
  unsigned char *bytes = malloc(size);
  forget_cache();
  int fd = open(path, O_RDONLY);
  need(fd >= 0 && pread(fd, bytes, size, 0) == (ssize_t)size, path);
  compare(bytes, from, size);
  free(bytes);
  close(fd);
}

// A clone shares what it has with its origin until one of them is written. BYTES: a multiple of 65536.
static void clones(const char *folder, size_t size) {
  enum { kPart = 65536 };
  need(chdir(folder) == 0 && size >= 2 * kPart && size % kPart == 0, folder);
  int origin = filled("origin", size);
  int whole = open("clone", O_RDWR | O_CREAT | O_TRUNC, 0644);
  need(whole >= 0 && ioctl(whole, FICLONE, origin) == 0, "FICLONE");
  holds("clone", 0, size);
  int part = open("part", O_RDWR | O_CREAT | O_TRUNC, 0644);
  struct file_clone_range range = {.src_fd = origin, .src_offset = kPart, .src_length = kPart};
  need(part >= 0 && ioctl(part, FICLONERANGE, &range) == 0, "FICLONERANGE");
  holds("part", kPart, kPart);
  range.src_offset = 1;
  need(ioctl(part, FICLONERANGE, &range) < 0 && errno == EINVAL, "FICLONERANGE from the middle of a block");
  int changed = open("changed", O_RDWR | O_CREAT | O_TRUNC, 0644);
  need(changed >= 0 && ioctl(changed, FICLONE, origin) == 0 && pwrite(changed, "x", 1, 0) == 1 && fsync(changed) == 0, "a clone is written");
  holds("origin", 0, size);
  need(fsync(whole) == 0 && fsync(part) == 0, "fsync");
}

// By one call after the other, each for all there is left: the client splits them as it likes.
static void copies(const char *folder, size_t size) {
  need(chdir(folder) == 0, folder);
  int from = filled("copied", size);
  int to = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
  need(to >= 0 && lseek(from, 0, SEEK_SET) == 0, "copy");
  for (size_t left = size; left > 0;) {
    const ssize_t moved = copy_file_range(from, NULL, to, NULL, left, 0);
    need(moved > 0, "copy_file_range");
    left -= (size_t)moved;
  }
  need(fsync(to) == 0 && close(to) == 0, "fsync");
  holds("copy", 0, size);
}

// RFC 8276, through the system calls.
static void xattrs(const char *folder, size_t length) {
  need(chdir(folder) == 0, folder);
  char value[256], names[256];
  need(length <= sizeof value, "length");
  memset(value, 'v', sizeof value);
  close(open("named", O_WRONLY | O_CREAT, 0644));
  need(setxattr("named", "user.color", value, length, XATTR_CREATE) == 0, "setxattr");
  need(setxattr("named", "user.color", value, length, XATTR_CREATE) < 0 && errno == EEXIST, "setxattr of one that is there");
  need(setxattr("named", "user.none", value, length, XATTR_REPLACE) < 0 && errno == ENODATA, "setxattr of one that is not");
  need(setxattr("named", "user.second", "", 0, 0) == 0, "setxattr without a value");
  forget_cache();
  need(getxattr("named", "user.color", names, sizeof names) == (ssize_t)length && memcmp(names, value, length) == 0, "getxattr");
  need(getxattr("named", "user.none", names, sizeof names) < 0 && errno == ENODATA, "getxattr of one that is not there");
  const ssize_t listed = listxattr("named", names, sizeof names);
  need(listed > 0 && memmem(names, (size_t)listed, "user.color", 11) && memmem(names, (size_t)listed, "user.second", 12), "listxattr");
  need(removexattr("named", "user.color") == 0 && removexattr("named", "user.color") < 0 && errno == ENODATA, "removexattr");
  forget_cache();
  need(getxattr("named", "user.color", names, sizeof names) < 0 && errno == ENODATA, "getxattr of one that was removed");
}

int main(int count, char **words) {
  if (count != 4) return 2;
  size_t size = strtoul(words[3], NULL, 10);
  if (strcmp(words[1], "map") == 0) map(words[2], size);
  else if (strcmp(words[1], "direct") == 0) direct(words[2], size);
  else if (strcmp(words[1], "open") == 0) kept_open(words[2], size);
  else if (strcmp(words[1], "names") == 0) names(words[2], size);
  else if (strcmp(words[1], "once") == 0) once(words[2], (long)size);
  else if (strcmp(words[1], "sources") == 0) sources(words[2], size);
  else if (strcmp(words[1], "ranges") == 0) ranges(words[2], size);
  else if (strcmp(words[1], "xattrs") == 0) xattrs(words[2], size);
  else if (strcmp(words[1], "clone") == 0) clones(words[2], size);
  else if (strcmp(words[1], "copy") == 0) copies(words[2], size);
  else return 2;
  return 0;
}
