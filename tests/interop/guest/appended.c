// appended FILE MICROSECONDS ROUNDS: a program that appends to a file and reads behind the old end
// by another open, as `tail -f` does. What is there are letters. Ends with 1 where a read has
// something else, and says how many did.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char** words) {
  static const char kLine[] = "0123456789abcde\n";
  if (count != 4) return 2;
  const int rounds = atoi(words[3]);
  unlink(words[1]);
  const int writer = open(words[1], O_WRONLY | O_CREAT | O_APPEND, 0644),
            reader = open(words[1], O_RDONLY);
  int wrong = 0, behind = 0;
  off_t place = 0;
  for (int i = 0; i < rounds; ++i) {
    char bytes[4096];
    if (write(writer, kLine, sizeof kLine - 1) != sizeof kLine - 1) return perror("write"), 1;
    const ssize_t got = pread(reader, bytes, sizeof bytes, place);
    if (got < 0) return perror("read"), 1;
    behind += got != sizeof kLine - 1;
    wrong += memcmp(bytes, kLine,
                    got < (ssize_t)sizeof kLine - 1 ? got : (ssize_t)sizeof kLine - 1) != 0;
    place += got;
    usleep(atoi(words[2]));
  }
  printf("%d of %d reads have other bytes, %d have not what was written just before\n", wrong,
         rounds, behind);
  return wrong + behind == 0 ? 0 : 1;
}
