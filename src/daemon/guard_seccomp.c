/* SPDX-License-Identifier: Apache-2.0 */
/* The list of system calls that a relay at work may use. Any other call fails with ENOSYS, as on an older kernel, for which libraries
 * are prepared; EPERM would surprise some of them. Names that the library or the machine does not know are skipped. */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "daemon/guard.h"

static const char *const plain[] = {
    /* what every program does */
    "arch_prctl", "brk", "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64",
    "clock_nanosleep", "clock_nanosleep_time64", "exit", "exit_group", "futex", "futex_time64", "futex_waitv",
    "get_robust_list", "get_thread_area", "getcpu", "getegid", "getegid32", "geteuid", "geteuid32", "getgid",
    "getgid32", "getgroups", "getgroups32", "getpgid", "getpgrp", "getpid", "getppid", "getrandom",
    "getresgid", "getresgid32", "getresuid", "getresuid32", "getrlimit", "getrusage", "getsid", "gettid",
    "gettimeofday", "getuid", "getuid32", "madvise", "membarrier", "mincore", "mlock", "mlock2", "mremap",
    "msync", "munlock", "munmap", "nanosleep", "pause", "prlimit64", "restart_syscall", "riscv_flush_icache",
    "riscv_hwprobe", "rseq", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity",
    "sched_getparam", "sched_getscheduler", "sched_yield", "set_robust_list", "set_thread_area",
    "set_tid_address", "sysinfo", "time", "times", "ugetrlimit", "umask", "uname",
    /* the starter of jq helpers, when it has ended */
    "wait4",
    /* signals */
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
    "rt_sigtimedwait_time64", "sigaction", "sigaltstack", "signal", "signalfd", "signalfd4", "sigpending",
    "sigprocmask", "sigreturn", "sigsuspend",
    /* descriptors and waiting for them */
    "_llseek", "_newselect", "close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "epoll_create",
    "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "fcntl",
    "fcntl64", "lseek", "pipe", "pipe2", "poll", "ppoll", "ppoll_time64", "pread64", "preadv", "preadv2",
    "pselect6", "pselect6_time64", "pwrite64", "pwritev", "pwritev2", "read", "readv", "select", "sendfile",
    "sendfile64", "splice", "timerfd_create", "timerfd_gettime", "timerfd_gettime64", "timerfd_settime",
    "timerfd_settime64", "write", "writev",
    /* files: SQLite's, certificates, configuration, names */
    "access", "chmod", "fadvise64", "fadvise64_64", "arm_fadvise64_64", "faccessat", "faccessat2",
    "fallocate", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchown32", "fdatasync", "fgetxattr", "flock",
    "fstat", "fstat64", "fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate", "ftruncate64", "getcwd",
    "getdents", "getdents64", "getxattr", "lgetxattr", "lstat", "lstat64", "mkdir", "mkdirat", "newfstatat",
    "open", "openat", "openat2", "readahead", "readlink", "readlinkat", "rename", "renameat", "renameat2",
    "rmdir", "stat", "stat64", "statfs", "statfs64", "statx", "sync_file_range", "sync_file_range2",
    "truncate", "truncate64", "unlink", "unlinkat", "utimensat", "utimensat_time64", "utimes",
    /* sockets, but for making them */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recv",
    "recvfrom", "recvmmsg", "recvmmsg_time64", "recvmsg", "send", "sendmmsg", "sendmsg", "sendto",
    "setsockopt", "shutdown", "socketpair"};

/* For the leak checker, which stops and traces its own threads. */
static const char *const sanitizers[] = {"ptrace",
                                         "process_vm_readv",
                                         "waitid",
                                         "clone",
                                         "prctl",
                                         "mmap",
                                         "mmap2",
                                         "mprotect",
                                         "personality",
                                         "kill",
                                         "tkill",
                                         "setrlimit",
                                         "sched_setaffinity"};

static int allow(scmp_filter_ctx filter, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);
    return number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

/* When `masked` bits of argument `at` are `value`. */
static int allow_if(scmp_filter_ctx filter, const char *name, unsigned at, scmp_datum_t mask,
                    scmp_datum_t value)
{
    int number = seccomp_syscall_resolve_name(name);
    struct scmp_arg_cmp when = {.arg = at, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
    return number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 1, &when);
}

static int allow_all(scmp_filter_ctx filter, const char *const *names, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = allow(filter, names[i]);
    return rc;
}

/* Memory that is written to or run, never both; threads, no processes; signals to ourselves. */
static int allow_processes(scmp_filter_ctx filter)
{
    const scmp_datum_t pid = (scmp_datum_t)getpid(), all = UINT64_MAX;
    int rc = 0;
#ifdef __s390__
    rc = allow(filter, "clone"); /* its arguments stand in another order */
#else
    rc = allow_if(filter, "clone", 0, CLONE_THREAD, CLONE_THREAD);
#endif
    static const char *const maps[] = {"mmap", "mmap2"};
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        rc = allow_if(filter, maps[i], 2, PROT_EXEC, 0);
        if (rc == 0) /* libraries that are loaded late: those of the name service */
            rc = allow_if(filter, maps[i], 2, PROT_EXEC | PROT_WRITE, PROT_EXEC);
    }
    if (rc == 0)
        rc = allow_if(filter, "mprotect", 1, PROT_EXEC, 0);
    if (rc == 0)
        rc = allow_if(filter, "kill", 0, all, pid);
    if (rc == 0)
        rc = allow_if(filter, "tgkill", 0, all, pid); /* abort() */
    if (rc == 0)
        rc = allow_if(filter, "prctl", 0, all, PR_SET_NAME);
    return rc == 0 ? allow_if(filter, "prctl", 0, all, PR_GET_DUMPABLE) : rc;
}

static int allow_values(scmp_filter_ctx filter, const char *name, unsigned at, const unsigned *values,
                        size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = allow_if(filter, name, at, UINT32_MAX, values[i]);
    return rc;
}

static int allow_sockets(scmp_filter_ctx filter)
{
    /* netlink: getaddrinfo asks which families there are */
    static const unsigned families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    /* TCGETS, SIOCOUTQ, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, SIOCGIFNAME, SIOCGIFINDEX */
    static const unsigned requests[] = {0x5401, 0x5411, 0x5413, 0x541b, 0x5421,
                                        0x5450, 0x5451, 0x8910, 0x8933};
    int rc = allow_values(filter, "socket", 0, families, sizeof families / sizeof families[0]);
    return rc == 0 ? allow_values(filter, "ioctl", 1, requests, sizeof requests / sizeof requests[0]) : rc;
}

static int load(scmp_filter_ctx filter)
{
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1); /* all threads, or none */
    if (rc == 0)
        rc = allow_all(filter, plain, sizeof plain / sizeof plain[0]);
    if (rc == 0)
        rc = allow_processes(filter);
    if (rc == 0)
        rc = allow_sockets(filter);
    if (rc == 0 && HK_SANITIZED)
        rc = allow_all(filter, sanitizers, sizeof sanitizers / sizeof sanitizers[0]);
    return rc == 0 ? seccomp_load(filter) : rc;
}

enum hk_code hk_guard_lock(struct hk_err *err)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (!filter)
        return hk_err_set(err, HK_UNSUPPORTED, "seccomp: out of memory");
    int rc = load(filter);
    seccomp_release(filter);
    return rc == 0 ? HK_OK : hk_err_set(err, HK_UNSUPPORTED, "seccomp: %s", strerror(-rc));
}

bool hk_guard_can_lock(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}
