/* SPDX-License-Identifier: Apache-2.0 */
/* The program with faults: linked to it, this file stands between all of the process and libc, so that the N-th allocation
 * or system call can be made to fail, once or for ever. The linker prefers the program's own symbols to those of shared
 * libraries: SQLite, libcurl, OpenSSL, libpq, libuv and the rest are reached like our own code, and all of them ship as they
 * are. tests/e2e/faults.py drives it.
 *
 * HK_FAULT=KIND N once|ever    KIND: alloc, or call; N counts from 1; 0 only counts
 * HK_FAULT_FROM=NAME           only where the caller is in this library (part of its name); "program" is our own code;
 *                              !NAME: anywhere but there
 * HK_FAULT_ONLY=NAME[,NAME]    only these calls
 * HK_FAULT_ERRNO=NUMBER        in place of what each call fails with
 * HK_FAULT_REPORT=FILE         at the end: calls counted, calls failed, and which were */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/eventlog.h"

enum {
    OFF,
    ALLOC,
    CALL,
    RANGES = 16
};

static struct {
    int kind;
    bool for_ever, filtered, but;
    long at;
    int error; /* 0: each call its own */
    char only[256];
    char report[512];
    char spared[512]; /* the event log is the witness, and not under test */

    struct range {
        uintptr_t from, to;
    } ranges[RANGES];

    size_t n_ranges;
    pid_t pid;
} plan;

static atomic_long counted, failed;
static atomic_int spared_fd = -1;
static const char *_Atomic first_name = "-";
static void *_Atomic first_from;

static _Thread_local bool sparing;

void __sanitizer_print_stack_trace(void) __attribute__((weak));

/* ---- which ---- */

static bool wanted_name(const char *name)
{
    size_t len = strlen(name);
    if (plan.only[0] == '\0')
        return true;
    for (const char *p = plan.only; (p = strstr(p, name)) != NULL; p += len)
        if ((p == plan.only || p[-1] == ',') && (p[len] == ',' || p[len] == '\0'))
            return true;
    return false;
}

static bool wanted_caller(const void *from)
{
    uintptr_t at = (uintptr_t)from;
    for (size_t i = 0; i < plan.n_ranges; i++)
        if (at >= plan.ranges[i].from && at < plan.ranges[i].to)
            return !plan.but;
    return !plan.filtered || plan.but;
}

static void note(const char *name, void *from)
{
    if (atomic_fetch_add(&failed, 1) > 0)
        return;
    first_name = name;
    first_from = from;
    if (getenv("HK_FAULT_TRACE") != NULL && __sanitizer_print_stack_trace != NULL) {
        int kind = plan.kind;
        plan.kind = OFF;
        __sanitizer_print_stack_trace();
        plan.kind = kind;
    }
}

static bool fails(int kind, const char *name, void *from)
{
    if (plan.kind != kind || sparing || !wanted_caller(from) || !wanted_name(name))
        return false;
    long n = atomic_fetch_add(&counted, 1) + 1;
    if (plan.at == 0 || n < plan.at || (n > plan.at && !plan.for_ever))
        return false;
    note(name, from);
    return true;
}

static int error_of(int usual)
{
    return plan.error != 0 ? plan.error : usual;
}

/* ---- memory ---- */

/* ASan's where it is there, glibc's otherwise: known before anything can be looked up. */
#define SEAM(ret, name, params)                                                                              \
    ret __interceptor_##name params __attribute__((weak));                                                   \
    ret __libc_##name params;                                                                                \
    ret faulty_##name params __asm__(#name)

SEAM(void *, malloc, (size_t));
SEAM(void *, calloc, (size_t, size_t));
SEAM(void *, realloc, (void *, size_t));

void *faulty_malloc(size_t n)
{
    if (fails(ALLOC, "malloc", __builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __interceptor_malloc != NULL ? __interceptor_malloc(n) : __libc_malloc(n);
}

void *faulty_calloc(size_t n, size_t size)
{
    if (fails(ALLOC, "calloc", __builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __interceptor_calloc != NULL ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}

void *faulty_realloc(void *p, size_t n)
{
    if (fails(ALLOC, "realloc", __builtin_return_address(0))) {
        errno = ENOMEM;
        return NULL;
    }
    return __interceptor_realloc != NULL ? __interceptor_realloc(p, n) : __libc_realloc(p, n);
}

/* The witness has memory: without it what was done would look as if it had not been. By -Wl,--wrap. */
void __real_hk_eventlog_add(struct hk_buf *out, const struct hk_event_line *line);
void __wrap_hk_eventlog_add(struct hk_buf *out, const struct hk_event_line *line);

void __wrap_hk_eventlog_add(struct hk_buf *out, const struct hk_event_line *line)
{
    sparing = true;
    __real_hk_eventlog_add(out, line);
    sparing = false;
}

/* ---- calls ---- */

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        static const char text[] = "faults: a call of libc is not there\n";
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        _exit(126);
    }
    return found;
}

/* Nobody is interrupted for ever, and libpq would wait for the end of that: who waits once more has no memory. */
static int interrupted(void)
{
    return failed > 1 ? ENOMEM : EINTR;
}

/* `name` as libc has it; `bad` and errno `usual` are what a failure looks like. Variadic ones are given their third argument
 * as a number, as the ABIs of Linux do. */
#define FAULTY(ret, name, params, args, bad, usual)                                                          \
    ret faulty_##name params __asm__(#name);                                                                 \
    ret faulty_##name params                                                                                 \
    {                                                                                                        \
        static ret(*_Atomic next) params;                                                                    \
        if (next == NULL)                                                                                    \
            next = (ret(*) params)real(#name);                                                               \
        if (fails(CALL, #name, __builtin_return_address(0))) {                                               \
            errno = error_of(usual);                                                                         \
            return bad;                                                                                      \
        }                                                                                                    \
        return next args;                                                                                    \
    }

#define FAULTY_INT(name, params, args, usual)  FAULTY(int, name, params, args, -1, usual)
#define FAULTY_SIZE(name, params, args, usual) FAULTY(ssize_t, name, params, args, -1, usual)

/* files */
FAULTY_INT(openat, (int dir, const char *path, int flags, long mode), (dir, path, flags, mode), EMFILE)
FAULTY_INT(stat, (const char *path, void *out), (path, out), EIO)
FAULTY_INT(stat64, (const char *path, void *out), (path, out), EIO)
FAULTY_INT(lstat, (const char *path, void *out), (path, out), EIO)
FAULTY_INT(lstat64, (const char *path, void *out), (path, out), EIO)
FAULTY_INT(fstat, (int fd, void *out), (fd, out), EIO)
FAULTY_INT(fstat64, (int fd, void *out), (fd, out), EIO)
FAULTY_INT(fsync, (int fd), (fd), EIO)
FAULTY_INT(fdatasync, (int fd), (fd), EIO)
FAULTY_INT(ftruncate, (int fd, long n), (fd, n), ENOSPC)
FAULTY_INT(ftruncate64, (int fd, long n), (fd, n), ENOSPC)
FAULTY_INT(unlink, (const char *path), (path), EIO)
FAULTY_INT(access, (const char *path, int mode), (path, mode), EIO)
FAULTY_SIZE(pread, (int fd, void *p, size_t n, long at), (fd, p, n, at), EIO)
FAULTY_SIZE(pread64, (int fd, void *p, size_t n, long at), (fd, p, n, at), EIO)
FAULTY_SIZE(pwrite, (int fd, const void *p, size_t n, long at), (fd, p, n, at), ENOSPC)
FAULTY_SIZE(pwrite64, (int fd, const void *p, size_t n, long at), (fd, p, n, at), ENOSPC)
FAULTY_SIZE(read, (int fd, void *p, size_t n), (fd, p, n), EIO)
FAULTY_SIZE(readlink, (const char *path, char *out, size_t n), (path, out, n), EIO)
FAULTY_INT(fcntl64, (int fd, int what, long arg), (fd, what, arg), EIO)
FAULTY_INT(fcntl, (int fd, int what, long arg), (fd, what, arg), EIO)
FAULTY_INT(ioctl, (int fd, unsigned long what, long arg), (fd, what, arg), EIO)
FAULTY(void *, mmap, (void *at, size_t n, int prot, int flags, int fd, long from),
       (at, n, prot, flags, fd, from), (void *)-1, ENOMEM)
FAULTY(void *, mmap64, (void *at, size_t n, int prot, int flags, int fd, long from),
       (at, n, prot, flags, fd, from), (void *)-1, ENOMEM)
FAULTY(void *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
FAULTY(void *, fopen64, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
FAULTY_INT(fflush, (void *file), (file), ENOSPC)

/* sockets */
FAULTY_INT(socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE)
FAULTY_INT(connect, (int fd, const void *to, unsigned n), (fd, to, n), ECONNREFUSED)
FAULTY_INT(bind, (int fd, const void *at, unsigned n), (fd, at, n), EADDRINUSE)
FAULTY_INT(listen, (int fd, int n), (fd, n), EADDRINUSE)
FAULTY_INT(accept, (int fd, void *from, unsigned *n), (fd, from, n), EMFILE)
FAULTY_INT(accept4, (int fd, void *from, unsigned *n, int flags), (fd, from, n, flags), EMFILE)
FAULTY_INT(getsockopt, (int fd, int l, int o, void *p, unsigned *n), (fd, l, o, p, n), ENOBUFS)
FAULTY_INT(setsockopt, (int fd, int l, int o, const void *p, unsigned n), (fd, l, o, p, n), ENOBUFS)
FAULTY_INT(getsockname, (int fd, void *at, unsigned *n), (fd, at, n), ENOBUFS)
FAULTY_INT(getpeername, (int fd, void *at, unsigned *n), (fd, at, n), ENOTCONN)
FAULTY_SIZE(send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), ECONNRESET)
FAULTY_SIZE(sendto, (int fd, const void *p, size_t n, int flags, const void *to, unsigned tn),
            (fd, p, n, flags, to, tn), ECONNRESET)
FAULTY_SIZE(sendmsg, (int fd, const void *m, int flags), (fd, m, flags), ECONNRESET)
FAULTY_SIZE(writev, (int fd, const void *v, int n), (fd, v, n), ECONNRESET)
FAULTY_SIZE(readv, (int fd, const void *v, int n), (fd, v, n), ECONNRESET)
FAULTY_SIZE(recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), ECONNRESET)
FAULTY_SIZE(recvfrom, (int fd, void *p, size_t n, int flags, void *from, unsigned *fn),
            (fd, p, n, flags, from, fn), ECONNRESET)
FAULTY_SIZE(recvmsg, (int fd, void *m, int flags), (fd, m, flags), ECONNRESET)

/* waiting, and what a process is made of */
FAULTY_INT(poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms), interrupted())
FAULTY_INT(epoll_wait, (int fd, void *events, int n, int ms), (fd, events, n, ms), EINTR)
FAULTY_INT(epoll_pwait, (int fd, void *events, int n, int ms, const void *mask), (fd, events, n, ms, mask),
           EINTR)
FAULTY_INT(select, (int n, void *r, void *w, void *e, void *t), (n, r, w, e, t), EINTR)
FAULTY_INT(epoll_create1, (int flags), (flags), EMFILE)
FAULTY_INT(eventfd, (unsigned n, int flags), (n, flags), EMFILE)
FAULTY_INT(timerfd_create, (int clock, int flags), (clock, flags), EMFILE)
FAULTY_INT(pipe, (int fds[2]), (fds), EMFILE)
FAULTY_INT(pipe2, (int fds[2], int flags), (fds, flags), EMFILE)
FAULTY_INT(socketpair, (int d, int t, int p, int fds[2]), (d, t, p, fds), EMFILE)
FAULTY_SIZE(getrandom, (void *p, size_t n, unsigned flags), (p, n, flags), EINTR)
FAULTY_INT(getentropy, (void *p, size_t n), (p, n), EIO)
FAULTY_INT(gethostname, (char *out, size_t n), (out, n), ENAMETOOLONG)
FAULTY_INT(sigaction, (int number, const void *act, void *old), (number, act, old), EINVAL)
FAULTY(int, pthread_create, (void *out, const void *attr, void *(*run)(void *), void *arg),
       (out, attr, run, arg), EAGAIN, EAGAIN)
FAULTY(int, getaddrinfo,
       (const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out),
       (name, service, hints, out), EAI_AGAIN, EIO)

/* The event log is known by its path. */
static int remember(const char *path, int fd)
{
    if (fd >= 0 && plan.spared[0] != '\0' && strcmp(path, plan.spared) == 0)
        spared_fd = fd;
    return fd;
}

#define FAULTY_OPEN(name)                                                                                    \
    int faulty_##name(const char *path, int flags, long mode) __asm__(#name);                                \
    int faulty_##name(const char *path, int flags, long mode)                                                \
    {                                                                                                        \
        static int (*_Atomic next)(const char *, int, long);                                                 \
        if (next == NULL)                                                                                    \
            next = (int (*)(const char *, int, long))real(#name);                                            \
        if (strcmp(path, plan.spared) != 0 && fails(CALL, #name, __builtin_return_address(0))) {             \
            errno = error_of(EMFILE);                                                                        \
            return -1;                                                                                       \
        }                                                                                                    \
        return remember(path, next(path, flags, mode));                                                      \
    }
FAULTY_OPEN(open)
FAULTY_OPEN(open64)

ssize_t faulty_write(int fd, const void *p, size_t n) __asm__("write");

ssize_t faulty_write(int fd, const void *p, size_t n)
{
    static ssize_t (*_Atomic next)(int, const void *, size_t);
    if (next == NULL)
        next = (ssize_t(*)(int, const void *, size_t))real("write");
    if (fd != spared_fd && fails(CALL, "write", __builtin_return_address(0))) {
        errno = error_of(ENOSPC);
        return -1;
    }
    return next(fd, p, n);
}

/* ---- the process ---- */

static void copy_env(const char *name, char *out, size_t size)
{
    const char *value = getenv(name);
    (void)snprintf(out, size, "%s", value != NULL ? value : "");
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *from = arg;
    bool program = info->dlpi_name == NULL || info->dlpi_name[0] == '\0';
    (void)size;
    if (program ? strcmp(from, "program") != 0 : strstr(info->dlpi_name, from) == NULL)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum && plan.n_ranges < RANGES; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            plan.ranges[plan.n_ranges++] = (struct range){at, at + info->dlpi_phdr[i].p_memsz};
        }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    char text[64], kind[16], mode[16], error[16], from[128];
    copy_env("HK_FAULT", text, sizeof text);
    if (sscanf(text, "%15s %ld %15s", kind, &plan.at, mode) != 3)
        return;
    copy_env("HK_FAULT_FROM", from, sizeof from);
    copy_env("HK_FAULT_ONLY", plan.only, sizeof plan.only);
    copy_env("HK_FAULT_ERRNO", error, sizeof error);
    copy_env("HK_FAULT_REPORT", plan.report, sizeof plan.report);
    copy_env("HIKYAKU_EVENT_LOG", plan.spared, sizeof plan.spared);
    (void)sscanf(error, "%d", &plan.error);
    plan.for_ever = strcmp(mode, "ever") == 0;
    plan.filtered = from[0] != '\0';
    plan.but = from[0] == '!';
    plan.pid = getpid();
    if (plan.filtered)
        (void)dl_iterate_phdr(add_ranges, from + plan.but);
    plan.kind = strcmp(kind, "alloc") == 0 ? ALLOC : CALL;
}

__attribute__((destructor)) static void end(void)
{
    char text[256];
    Dl_info where = {.dli_fname = "-"};
    if (plan.kind == OFF || plan.report[0] == '\0' || plan.pid != getpid())
        return;
    plan.kind = OFF;
    if (first_from != NULL)
        (void)dladdr(first_from, &where);
    int n = snprintf(text, sizeof text, "%ld %ld %s %s %s\n", counted, failed, first_name,
                     where.dli_fname != NULL ? where.dli_fname : "-",
                     where.dli_sname != NULL ? where.dli_sname : "-");
    int fd = (int)syscall(SYS_openat, -100, plan.report, 0x241 /* write, create, truncate */, 0600);
    (void)!syscall(SYS_write, fd, text, (size_t)n);
    (void)syscall(SYS_close, fd);
}
