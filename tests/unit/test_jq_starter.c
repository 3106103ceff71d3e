/* SPDX-License-Identifier: Apache-2.0 */
/* The process that starts jq helpers: for several at once, for a process that is locked, and whatever happens to one of the three
 * processes. No zombie and no descriptor may be left over. Against the real helper. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "check.h"
#include "daemon/guard.h"
#include "failing.h"
#include "jq/impl.h"
#include "jq/jq.h"

#define ROOM       ((size_t)1 << 20)
#define PATIENT_MS 60000
#define ENDLESS    "if .loop then def f: f; f else . end"
#define SKIPPED    77

static const char *helper(void)
{
    const char *path = getenv("HIKYAKU_JQ");
    if (!path || access(path, X_OK) != 0)
        skip();
    return path;
}

static struct hk_jq_starter *open_starter(void)
{
    struct hk_jq_starter *starter = NULL;
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_jq_starter_open(helper(), &starter, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return starter;
}

static struct hk_jq *open_jq(const struct hk_jq_starter *starter, const char *program, uint64_t timeout_ms)
{
    struct hk_jq *jq = NULL;
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_jq_open(helper(), starter, program, timeout_ms, &jq, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return jq;
}

static void gives(struct hk_jq *jq, const char *document, const char *wanted)
{
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, ROOM);
    enum hk_code rc = hk_jq_apply(jq, hk_str_of(document), &out, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_string_equal(hk_buf_cstr(&out), wanted);
    hk_buf_fini(&out);
}

static enum hk_code apply(struct hk_jq *jq, const char *document, struct hk_err *err)
{
    struct hk_buf out;
    hk_buf_init(&out, ROOM);
    enum hk_code rc = hk_jq_apply(jq, hk_str_of(document), &out, err);
    hk_buf_fini(&out);
    return rc;
}

/* ---- who is there ---- */

/* State and parent of a process: /proc/PID/stat, "12 (name) S 1 …". */
static bool look_at(pid_t pid, char *state, pid_t *parent)
{
    char path[64], text[512] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    long of = 0;
    if (!end || sscanf(end, ") %c %ld", state, &of) != 2)
        return false;
    *parent = (pid_t)of;
    return true;
}

/* Zombies count. `*out_first`: one of them. */
static size_t children_of(pid_t parent, pid_t *out_first)
{
    size_t n = 0;
    DIR *all = opendir("/proc");
    assert_non_null(all);
    for (const struct dirent *entry = readdir(all); entry; entry = readdir(all)) {
        char state = 0;
        pid_t of = 0;
        uint64_t pid = 0;
        if (hk_parse_u64(hk_str_of(entry->d_name), &pid, NULL) != HK_OK ||
            !look_at((pid_t)pid, &state, &of) || of != parent)
            continue;
        *out_first = (pid_t)pid;
        n++;
    }
    (void)closedir(all);
    return n;
}

static pid_t only_child_of(pid_t parent)
{
    pid_t pid = 0;
    assert_int_equal(children_of(parent, &pid), 1);
    return pid;
}

static void pause_a_little(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* Until it has only `n`. */
static void wait_for_children(pid_t parent, size_t n)
{
    pid_t any = 0;
    for (int i = 0; i < 12000 && children_of(parent, &any) != n; i++)
        pause_a_little();
    assert_int_equal(children_of(parent, &any), n);
}

/* Gone, or a zombie of a process that is not ours. */
static void wait_until_ended(pid_t pid)
{
    char state = 'Z';
    pid_t parent = 0;
    for (int i = 0; i < 12000 && look_at(pid, &state, &parent) && state != 'Z'; i++)
        pause_a_little();
    assert_true(!look_at(pid, &state, &parent) || state == 'Z');
}

static size_t descriptors_of(pid_t pid)
{
    char path[64];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *all = opendir(path);
    assert_non_null(all);
    while (readdir(all))
        n++;
    (void)closedir(all);
    return n - 2 - (pid == getpid()); /* ".", "..", and the one that we look with */
}

/* Around each test. */
static size_t before;

static int count_before(void **state)
{
    (void)state;
    before = descriptors_of(getpid());
    return 0;
}

static int compare_after(void **state)
{
    (void)state;
    pid_t any = 0;
    return descriptors_of(getpid()) == before && children_of(getpid(), &any) == 0 ? 0 : -1;
}

/* ---- at work ---- */

struct worker {
    pthread_t thread;
    struct hk_jq *jq;
    bool right;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct hk_err err = {.message = ""};
    w->right = true;
    for (int i = 0; i < 20 && w->right; i++) {
        char document[32], wanted[32];
        struct hk_buf out;
        hk_buf_init(&out, ROOM);
        (void)snprintf(document, sizeof document, "{\"n\":%d}", i);
        (void)snprintf(wanted, sizeof wanted, "{\"n\":%d}", i + 1);
        w->right = hk_jq_apply(w->jq, hk_str_of(document), &out, &err) == HK_OK &&
                   strcmp(hk_buf_cstr(&out), wanted) == 0;
        hk_buf_fini(&out);
    }
    return NULL;
}

static void several_at_once_and_no_more_than_it_may(void **state)
{
    (void)state;
    struct hk_jq_starter *starter = open_starter();
    pid_t pid = only_child_of(getpid());
    struct worker workers[HK_JQ_STARTER_MOST];
    struct hk_jq *more = NULL;
    struct hk_err err = {.message = ""};
    for (size_t i = 0; i < COUNT(workers); i++)
        workers[i].jq = open_jq(starter, ".n += 1", PATIENT_MS);
    for (size_t i = 0; i < COUNT(workers); i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    assert_int_equal(hk_jq_open(helper(), starter, ".", PATIENT_MS, &more, &err), HK_BUSY);
    assert_non_null(strstr(err.message, "8 jq programs"));
    for (size_t i = 0; i < COUNT(workers); i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].right);
    }
    assert_int_equal(children_of(pid, &(pid_t){0}), COUNT(workers));
    for (size_t i = 0; i < COUNT(workers); i++) { /* a place that was given up is free at once */
        hk_jq_close(workers[i].jq);
        more = open_jq(starter, ".n", PATIENT_MS);
        gives(more, "{\"n\":[7]}", "[7]");
        hk_jq_close(more);
    }
    wait_for_children(pid, 0);
    hk_jq_starter_close(starter);
}

static void what_it_holds(void **state)
{
    (void)state;
    int leak = open("/dev/zero", O_RDONLY); /* not O_CLOEXEC: even so */
    struct hk_jq_starter *starter = open_starter();
    pid_t pid = only_child_of(getpid());
    char path[64], text[4096] = "";
    assert_int_equal(descriptors_of(pid), 5); /* three that lead nowhere, its socket, its children's signal */
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    static const char *const lines[] = {"Name:\thikyaku-jqstart\n", "NoNewPrivs:\t1\n",
                                        "CapInh:\t0000000000000000\n", "CapPrm:\t0000000000000000\n",
                                        "CapEff:\t0000000000000000\n"};
    for (size_t i = 0; i < COUNT(lines); i++) {
        NOTE_IF(!strstr(text, lines[i]), "no %s in %s\n", lines[i], text);
        assert_non_null(strstr(text, lines[i]));
    }
    (void)snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(text[i], 0);
    (void)close(leak);
    hk_jq_starter_close(starter);
}

static void no_signal_for_its_parent_ends_it(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGALRM};
    struct hk_jq_starter *starter = open_starter();
    pid_t pid = only_child_of(getpid());
    for (size_t i = 0; i < COUNT(signals); i++)
        assert_int_equal(kill(pid, signals[i]), 0);
    struct hk_jq *jq = open_jq(starter, ".", PATIENT_MS);
    gives(jq, "1", "1");
    hk_jq_close(jq);
    hk_jq_starter_close(starter);
}

/* ---- what goes wrong ---- */

static void an_endless_program_is_killed_and_the_next_document_is_served(void **state)
{
    (void)state;
    struct hk_err err = {.message = ""};
    struct hk_jq_starter *starter = open_starter();
    pid_t pid = only_child_of(getpid());
    struct hk_jq *jq = open_jq(starter, ENDLESS, 2000);
    pid_t first = only_child_of(pid);
    assert_int_equal(apply(jq, "{\"loop\":true}", &err), HK_TIMEOUT);
    wait_until_ended(first);
    wait_for_children(pid, 0);
    gives(jq, "{\"loop\":false}", "{\"loop\":false}");
    assert_int_not_equal(only_child_of(pid), first);
    hk_jq_close(jq);
    wait_for_children(pid, 0);
    hk_jq_starter_close(starter);
}

static void a_helper_that_dies_costs_one_document(void **state)
{
    (void)state;
    struct hk_err err = {.message = ""};
    struct hk_jq_starter *starter = open_starter();
    pid_t pid = only_child_of(getpid());
    struct hk_jq *jq = open_jq(starter, ".", PATIENT_MS), *other = open_jq(starter, ".", PATIENT_MS);
    hk_jq_close(other);
    wait_for_children(pid, 1);
    assert_int_equal(kill(only_child_of(pid), SIGSEGV), 0);
    wait_for_children(pid, 0); /* reaped, though nobody has looked yet */
    assert_int_equal(apply(jq, "1", &err), HK_INVALID);
    assert_non_null(strstr(err.message, "the jq helper died"));
    gives(jq, "2", "2");
    assert_int_equal(descriptors_of(pid), 6); /* one lease */
    hk_jq_close(jq);
    hk_jq_starter_close(starter);
}

static void a_starter_that_dies_takes_its_helpers_along_and_is_named(void **state)
{
    (void)state;
    struct hk_err err = {.message = ""};
    struct hk_jq_starter *starter = open_starter();
    struct hk_jq *jq = open_jq(starter, ENDLESS, PATIENT_MS), *idle = open_jq(starter, ".", PATIENT_MS),
                 *no = NULL;
    pid_t pid = only_child_of(getpid()), one = 0;
    assert_int_equal(children_of(pid, &one), 2);
    gives(jq, "{}", "{}");
    assert_int_equal(kill(pid, SIGKILL), 0);
    wait_until_ended(pid);
    wait_until_ended(one);
    struct pollfd ended = {.fd = hk_jq_starter_fd(starter), .events = POLLIN};
    assert_int_equal(poll(&ended, 1, PATIENT_MS), 1);
    hk_jq_starter_reap(starter);
    assert_int_equal(children_of(getpid(), &one), 0);
    for (int i = 0; i < 2; i++) { /* the helper's end is not the document's fault; and no other can be had */
        assert_int_equal(apply(idle, "1", &err), HK_UNAVAILABLE);
        assert_non_null(strstr(err.message, "restart the relay"));
    }
    assert_int_equal(hk_jq_open(helper(), starter, ".", PATIENT_MS, &no, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "restart the relay"));
    assert_null(no);
    hk_jq_close(jq);
    hk_jq_close(idle);
    hk_jq_starter_close(starter);
}

static void a_starter_that_was_stopped_is_ended_all_the_same(void **state)
{
    (void)state;
    struct hk_jq_starter *starter = open_starter();
    assert_int_equal(kill(only_child_of(getpid()), SIGSTOP), 0);
    hk_jq_starter_close(starter);
}

/* A parent that is killed: neither starter nor helper stays. */
static void all_end_with_the_parent(void **state)
{
    (void)state;
    int told[2];
    char byte = 0;
    const char *path = helper();
    assert_int_equal(pipe(told), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct hk_jq_starter *starter = NULL;
        struct hk_jq *jq = NULL;
        if (hk_jq_starter_open(path, &starter, NULL) != HK_OK ||
            hk_jq_open(path, starter, ENDLESS, PATIENT_MS, &jq, NULL) != HK_OK || write(told[1], "x", 1) != 1)
            _exit(1);
        (void)apply(jq, "{\"loop\":true}", &(struct hk_err){.message = ""});
        _exit(2);
    }
    (void)close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    pid_t starter = only_child_of(parent), run = only_child_of(starter);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    wait_until_ended(starter);
    wait_until_ended(run);
    assert_int_equal(read(told[0], &byte, 1), 0); /* nobody else has it */
    (void)close(told[0]);
}

static void a_helper_that_cannot_be_run_is_said(void **state)
{
    (void)state;
    struct hk_jq_starter *starter = NULL;
    struct hk_jq *jq = NULL;
    struct hk_err err = {.message = ""};
    assert_int_equal(hk_jq_starter_open("/nonexistent/hikyaku-jq", &starter, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "/nonexistent/hikyaku-jq"));
    assert_int_equal(hk_jq_starter_open("nonexistent/hikyaku-jq", &starter, &err), HK_UNAVAILABLE);
    assert_null(starter);
    assert_int_equal(hk_jq_starter_open("/bin/false", &starter, &err), HK_OK);
    assert_int_equal(hk_jq_open("/bin/false", starter, ".", PATIENT_MS, &jq, &err), HK_INVALID);
    hk_jq_starter_close(starter);
    char path[] = "/tmp/hk-starter-XXXXXX"; /* there at first, gone later */
    int fd = mkstemp(path);
    assert_true(fd >= 0 && fchmod(fd, 0700) == 0 && close(fd) == 0);
    assert_int_equal(hk_jq_starter_open(path, &starter, &err), HK_OK);
    assert_int_equal(unlink(path), 0);
    enum hk_code rc = hk_jq_open(path, starter, ".", PATIENT_MS, &jq, &err);
    if (!getenv("HIKYAKU_VALGRIND")) /* as in test_jq.c */
        assert_true(rc == HK_UNAVAILABLE && strstr(err.message, "cannot run hikyaku-jq: No such file"));
    assert_null(jq);
    hk_jq_starter_close(starter);
}

static void a_relative_path_is_found_though_it_leaves_the_directory(void **state)
{
    (void)state;
    char folder[PATH_MAX], here[PATH_MAX];
    const char *path = helper(), *slash = strrchr(path, '/');
    assert_true(slash && hk_str_copy(folder, sizeof folder, (struct hk_str){path, (size_t)(slash - path)}));
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    struct hk_jq_starter *starter = NULL;
    enum hk_code rc = hk_jq_starter_open(slash + 1, &starter, NULL);
    assert_int_equal(chdir(here), 0);
    assert_int_equal(rc, HK_OK);
    struct hk_jq *jq = open_jq(starter, ".", PATIENT_MS);
    gives(jq, "1", "1");
    hk_jq_close(jq);
    hk_jq_starter_close(starter);
}

/* ---- a parent that was taken over ---- */

static void say(int control, const char *bytes, size_t len, const int *fds, size_t n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 8)];
    } room = {.bytes = {0}};
    struct iovec packet = {.iov_base = (char *)(uintptr_t)bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &packet, .msg_iovlen = 1};
    if (n_fds > 0) {
        message.msg_control = room.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(rights), fds, sizeof(int) * n_fds);
    }
    assert_int_equal(sendmsg(control, &message, MSG_NOSIGNAL), len);
}

static void hostile_packets_start_nothing_and_leave_nothing(void **state)
{
    (void)state;
    static char large[30000];
    struct hk_jq_starter *starter = open_starter();
    pid_t pid = only_child_of(getpid());
    int control = hk_jq_starter_fd(starter), pair[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const int fds[] = {pair[0], pair[0], pair[0], pair[0], pair[0], pair[0], pair[0], pair[0]};
    memset(large, HK_JQ_REQUEST, sizeof large);
    for (int i = 0; i < 10; i++) {
        say(control, "S", 1, NULL, 0);
        for (size_t n = 1; n <= COUNT(fds); n++)
            if (n != HK_JQ_REQUEST_FDS)
                say(control, "S", 1, fds, n);
        say(control, "K", 1, fds, 2);
        say(control, "\0", 1, fds, 2);
        say(control, "SS", 2, fds, 2);
        say(control, large, sizeof large, fds, 2);
        say(control, "S", 1, (const int[]){null, null}, 2);   /* a lease that is none */
        struct hk_jq *jq = open_jq(starter, ".", PATIENT_MS); /* and all of that was read before */
        gives(jq, "1", "1");
        assert_int_equal(children_of(pid, &(pid_t){0}), 1);
        assert_int_equal(descriptors_of(pid), 6);
        hk_jq_close(jq);
    }
    char byte = 0;
    assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1); /* it said nothing on those */
    assert_int_equal(close(pair[0]), 0);
    wait_for_children(pid, 0);
    assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), 0);
    (void)close(pair[1]);
    (void)close(null);
    hk_jq_starter_close(starter);
}

/* ---- memory ---- */

static enum hk_code all_of_it(void)
{
    struct hk_jq_starter *starter = NULL;
    struct hk_jq *jq = NULL;
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_jq_starter_open(getenv("HIKYAKU_JQ"), &starter, &err);
    if (rc == HK_OK)
        rc = hk_jq_open(getenv("HIKYAKU_JQ"), starter, ".", PATIENT_MS, &jq, &err);
    if (rc == HK_OK)
        rc = apply(jq, "{\"a\":1}", &err);
    hk_jq_close(jq);
    hk_jq_starter_close(starter);
    return rc;
}

static void every_allocation_fails_in_turn(void **state)
{
    (void)state;
    (void)helper();
    assert_true(fail_each_allocation(all_of_it, HK_OK) >= 4);
}

/* ---- locked ---- */

static int locked_child(void)
{
    const char *path = getenv("HIKYAKU_JQ");
    struct hk_jq_starter *starter = NULL;
    struct hk_jq *jq = NULL, *direct = NULL;
    struct hk_err err = {.message = ""};
    struct hk_buf out;
    hk_buf_init(&out, ROOM);
    if (hk_jq_starter_open(path, &starter, &err) != HK_OK)
        return 2;
    enum hk_code rc = hk_guard_lock(&err);
    if (rc != HK_OK)
        return rc == HK_UNSUPPORTED ? SKIPPED : 3;
    if (hk_jq_open(path, NULL, ".", PATIENT_MS, &direct, &err) == HK_OK)
        return 4; /* or the lock is none */
    if (hk_jq_open(path, starter, ENDLESS, 2000, &jq, &err) != HK_OK)
        return 5;
    if (hk_jq_apply(jq, hk_str_of("{\"n\":1}"), &out, &err) != HK_OK ||
        strcmp(hk_buf_cstr(&out), "{\"n\":1}") != 0)
        return 6;
    if (apply(jq, "{\"loop\":true}", &err) != HK_TIMEOUT || apply(jq, "{}", &err) != HK_OK)
        return 7;
    hk_jq_close(jq);
    hk_jq_starter_close(starter);
    hk_buf_fini(&out);
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : 8;
}

static void a_locked_process_runs_jq_through_it(void **state)
{
    (void)state;
    (void)helper();
    pid_t pid = fork();
    if (pid == 0)
        _exit(locked_child());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, count_before, compare_after)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(several_at_once_and_no_more_than_it_may),
        TEST(what_it_holds),
        TEST(no_signal_for_its_parent_ends_it),
        TEST(an_endless_program_is_killed_and_the_next_document_is_served),
        TEST(a_helper_that_dies_costs_one_document),
        TEST(a_starter_that_dies_takes_its_helpers_along_and_is_named),
        TEST(a_starter_that_was_stopped_is_ended_all_the_same),
        TEST(all_end_with_the_parent),
        TEST(a_helper_that_cannot_be_run_is_said),
        TEST(a_relative_path_is_found_though_it_leaves_the_directory),
        TEST(hostile_packets_start_nothing_and_leave_nothing),
        TEST(every_allocation_fails_in_turn),
        TEST(a_locked_process_runs_jq_through_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
