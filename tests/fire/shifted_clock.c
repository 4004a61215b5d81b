/* A clock that can be set: preloaded into a program, it adds to the time of day what a file says, in whole seconds.

   Clocks that only measure how long something takes are left alone, as they are when an operator sets a clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *shift_seconds;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_shift(void) {
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("PENSTOCK_SHIFTED_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) {
    return;
  }
  void *found = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (found != MAP_FAILED) {
    shift_seconds = found;
  }
}

static long shift(void) { return shift_seconds ? *shift_seconds : 0; }

int clock_gettime(clockid_t clock, struct timespec *time) {
  /* Other libraries may ask for the time before this one is set up. */
  if (!real_clock_gettime) {
    return syscall(SYS_clock_gettime, clock, time);
  }
  int result = real_clock_gettime(clock, time);
  if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += shift();
  }
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) {
    *result = now.tv_sec;
  }
  return now.tv_sec;
}

/* The C library counts who waits in steps of eight; the second bit says by which clock they do. */
#define WAITS_BY_MONOTONIC_CLOCK 2

/* Java waits until a time of day in some places. The kernel does not know our time of day. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!real) {
    real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  }
  struct timespec shifted = *until;
  if (!(condition->__data.__wrefs & WAITS_BY_MONOTONIC_CLOCK)) {
    shifted.tv_sec -= shift();
  }
  return real(condition, mutex, &shifted);
}
