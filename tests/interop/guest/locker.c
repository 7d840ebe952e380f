// Byte-range locks (POSIX, fcntl), as programs take them: locker HOW FILE FROM COUNT [HOW FILE FROM COUNT]…
// read, write: takes the lock at once, or exits 1; read-wait, write-wait: waits for it; unlock: gives the range back;
// test: says whose lock is in the way of a write lock, and exits 1. COUNT 0 is "to the end of the file, wherever that is".
// Prints "has" when all is done, and keeps what it has until it is killed; closing a file gives its locks back.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static int step(const char *how, const char *path, long from, long count) {
  static int fd = -1;
  if (fd < 0) fd = open(path, O_RDWR | O_CREAT, 0644);
  if (fd < 0) return perror(path), 2;
  struct flock lock = {.l_whence = SEEK_SET, .l_start = from, .l_len = count};
  lock.l_type = starts(how, "read") ? F_RDLCK : starts(how, "unlock") ? F_UNLCK : F_WRLCK;
  if (starts(how, "test")) {
    if (fcntl(fd, F_GETLK, &lock) != 0) return perror("F_GETLK"), 2;
    if (lock.l_type == F_UNLCK) return puts("free"), 0;
    printf("%s lock from %ld, %ld bytes\n", lock.l_type == F_RDLCK ? "read" : "write", (long)lock.l_start, (long)lock.l_len);
    return 1;
  }
  const int waits = strstr(how, "-wait") != NULL;
  if (fcntl(fd, waits ? F_SETLKW : F_SETLK, &lock) == 0) return 0;
  const int held = errno == EAGAIN || errno == EACCES;
  perror(how);
  return held ? 1 : 2;
}

int main(int count, char **words) {
  if (count < 5 || count % 4 != 1) return 2;
  for (int i = 1; i < count; i += 4) {
    const int status = step(words[i], words[i + 1], atol(words[i + 2]), atol(words[i + 3]));
    if (status != 0) return status;
    if (starts(words[i], "test")) return 0;
  }
  puts("has");
  fflush(stdout);
  pause();
  return 0;
}
