/* A disk without room, for the server that this is loaded into: while the file that FULL names is there,
   tables do not grow. What is on the disk already can be written again, as on any full disk. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Whether a file of a table would end behind where it does. */
static int has_no_room(int file, size_t bytes, off_t at) {
  const char *full = getenv("FULL");
  if (!full || access(full, F_OK) != 0) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  struct stat now;
  if (length < 0 || fstat(file, &now) != 0) return 0;
  path[length] = 0;
  return strstr(path, "/base/") && at + (off_t)bytes > now.st_size;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t at) {
  if (has_no_room(file, bytes, at)) return errno = ENOSPC, -1;
  return NEXT(pwrite64)(file, from, bytes, at);
}

ssize_t pwrite(int file, const void *from, size_t bytes, off_t at) {
  return pwrite64(file, from, bytes, at);
}

ssize_t pwritev64(int file, const struct iovec *from, int count, off64_t at) {
  size_t bytes = 0;
  for (int each = 0; each < count; each++) bytes += from[each].iov_len;
  if (has_no_room(file, bytes, at)) return errno = ENOSPC, -1;
  return NEXT(pwritev64)(file, from, count, at);
}

ssize_t pwritev(int file, const struct iovec *from, int count, off_t at) {
  return pwritev64(file, from, count, at);
}

int posix_fallocate64(int file, off64_t at, off64_t bytes) {
  if (has_no_room(file, bytes, at)) return ENOSPC;
  return NEXT(posix_fallocate64)(file, at, bytes);
}

int posix_fallocate(int file, off_t at, off_t bytes) {
  return posix_fallocate64(file, at, bytes);
}
