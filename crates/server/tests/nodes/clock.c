/* A wall clock that is wrong, for the program that this is loaded into: SECONDS_WRONG says by how much. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long wrong_by(void) {
  const char *seconds = getenv("SECONDS_WRONG");
  return seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*next)(clockid_t, struct timespec *);
  if (!next) next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int answer = next(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += wrong_by();
  return answer;
}

int gettimeofday(struct timeval *now, void *zone) {
  (void)zone;
  struct timespec fine;
  int answer = clock_gettime(CLOCK_REALTIME, &fine);
  now->tv_sec = fine.tv_sec;
  now->tv_usec = fine.tv_nsec / 1000;
  return answer;
}

time_t time(time_t *into) {
  struct timespec fine;
  clock_gettime(CLOCK_REALTIME, &fine);
  if (into) *into = fine.tv_sec;
  return fine.tv_sec;
}
