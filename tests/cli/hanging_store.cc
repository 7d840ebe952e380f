// hanging_store -f -o OPTIONS DIR: a file system with one file, `file`, that answers nothing between SIGUSR1 and SIGUSR2. What is asked
// meanwhile is taken and kept, as by a program that hangs; its standard output then has a line "asked".
#define FUSE_USE_VERSION 31
#include <fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cerrno>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool hangs;

static void* take_signals(void* signals) {
  for (;;) {
    int number = 0;
    sigwait(static_cast<sigset_t*>(signals), &number);
    pthread_mutex_lock(&mutex);
    hangs = number == SIGUSR1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    if (hangs) dprintf(STDOUT_FILENO, "hangs\n");
  }
  return nullptr;
}

static void answer_when_allowed(void) {
  pthread_mutex_lock(&mutex);
  if (hangs) dprintf(STDOUT_FILENO, "asked\n");
  while (hangs) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void* begin(fuse_conn_info*, fuse_config* config) {
  config->use_ino = 1;
  static sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  pthread_t thread;
  pthread_create(&thread, nullptr, take_signals, &signals);
  return nullptr;
}

static int get_attributes(const char* path, struct stat* stat, fuse_file_info*) {
  answer_when_allowed();
  memset(stat, 0, sizeof *stat);
  const int root = strcmp(path, "/") == 0;
  if (!root && strcmp(path, "/file") != 0) return -ENOENT;
  stat->st_ino = root ? 1 : 2;
  stat->st_mode = root ? S_IFDIR | 0755 : S_IFREG | 0644;
  stat->st_nlink = root ? 2 : 1;
  return 0;
}

static int list(const char*, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
  answer_when_allowed();
  fill(buffer, ".", nullptr, 0, fuse_fill_dir_flags{});
  fill(buffer, "..", nullptr, 0, fuse_fill_dir_flags{});
  fill(buffer, "file", nullptr, 0, fuse_fill_dir_flags{});
  return 0;
}

int main(int count, char** words) {
  // Before there is a second thread.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  static fuse_operations operations{};
  operations.init = begin;
  operations.getattr = get_attributes;
  operations.readdir = list;
  return fuse_main(count, words, &operations, nullptr);
}
