/* SPDX-License-Identifier: Apache-2.0 */
/* See pg_bouncer.h. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pg_bouncer.h"
#include "pg_kind.h"

static pid_t bouncer;

static const char *program(void)
{
    static const char *const paths[] = {"/usr/sbin/pgbouncer", "/usr/bin/pgbouncer",
                                        "/usr/local/bin/pgbouncer"};
    for (size_t i = 0; i < COUNT(paths); i++)
        if (access(paths[i], X_OK) == 0)
            return paths[i];
    return NULL;
}

static void write_settings(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(
        file,
        "[databases]\n* = host=%s port=5432 user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
        "unix_socket_dir = %s\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 1\n"
        "max_client_conn = 50\nquery_wait_timeout = 20\n",
        pg_server_dir(), pg_server_dir());
    assert_int_equal(fclose(file), 0);
}

static void become_bouncer(const char *settings)
{
    char log[300];
    snprintf(log, sizeof log, "%s/bouncer.log", pg_server_dir());
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    dup2(fd, 1);
    dup2(fd, 2);
    pg_server_become_owner();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(program(), "pgbouncer", settings, (char *)NULL);
    _exit(127);
}

int bouncer_start(void **state)
{
    (void)state;
    char settings[300];
    snprintf(settings, sizeof settings, "%s/bouncer.ini", pg_server_dir());
    write_settings(settings);
    bouncer = fork();
    if (bouncer == 0)
        become_bouncer(settings);
    char info[400];
    snprintf(info, sizeof info, "postgres:///postgres?host=%s&port=6432&user=postgres", pg_server_dir());
    for (int i = 0; i < 3000 && PQping(info) != PQPING_OK; i++)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return PQping(info) == PQPING_OK ? 0 : -1;
}

int bouncer_end(void **state)
{
    (void)state;
    kill(bouncer, SIGKILL);
    return waitpid(bouncer, NULL, 0) == bouncer ? 0 : -1;
}

bool bouncer_is_here(void)
{
    return program() != NULL;
}

const char *bouncer_url(const char *more)
{
    static char url[400];
    snprintf(url, sizeof url, "postgres:///%s?host=%s&port=6432&user=postgres%s", pg_database(),
             pg_server_dir(), more);
    return url;
}

static const char *pooled_url(void)
{
    return bouncer_url("");
}

bool bouncer_choose(int argc, char **argv, bool *out_pooler, int *out_code)
{
    static struct store_kind pooled;
    bool pooler = argc > 1 && strcmp(argv[1], "pooler") == 0;
    *out_pooler = pooler;
    *out_code = 0;
    if (pooler && !bouncer_is_here()) {
        printf("1..0 # SKIP no PgBouncer (Debian: pgbouncer)\n");
        return false;
    }
    const int *ended_early = pg_server_start();
    if (ended_early) {
        *out_code = *ended_early;
        return false;
    }
    pooled = pg_kind;
    pooled.url = pooled_url;
    store_kind = pooler ? &pooled : &pg_kind;
    return true;
}
