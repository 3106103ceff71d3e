/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a PostgreSQL server of its own in a temporary folder. A keeper process holds it: it ends the server and removes the
 * folder when told so or when the test program is gone, be it by a crash or by SIGKILL. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "pg_kind.h"

static char dir[200], bin[300], database[40], app_value[4096];
static bool has_owner; /* root may not run a server */
static uid_t owner_uid;
static gid_t owner_gid;
static int to_keeper = -1, from_keeper = -1;
static pid_t keeper;
static PGconn *app;

/* ---- the keeper ---- */

static bool has_server(const char *folder)
{
    char path[400];
    snprintf(path, sizeof path, "%s/initdb", folder);
    if (access(path, X_OK) != 0)
        return false;
    snprintf(bin, sizeof bin, "%s", folder);
    return true;
}

static bool find_server(void)
{
    const char *named = getenv("HIKYAKU_TEST_PG_BIN");
    if (named)
        return has_server(named);
    for (int version = 30; version >= 15; version--) {
        char folder[80];
        snprintf(folder, sizeof folder, "/usr/lib/postgresql/%d/bin", version);
        if (has_server(folder))
            return true;
    }
    const char *path = getenv("PATH");
    struct hk_str rest = hk_str_of(path), one;
    while (rest.ptr) {
        char folder[300];
        one = hk_str_cut(&rest, ':');
        if (hk_str_copy(folder, sizeof folder, one) && has_server(folder))
            return true;
    }
    return false;
}

/* In a child: becomes the program, as the server's owner, with its output in a log. */
static void become(const char *log, const char *const argv[])
{
    char path[400], file[300];
    snprintf(path, sizeof path, "%s/%s", bin, argv[0]);
    snprintf(file, sizeof file, "%s/%s", dir, log);
    pg_server_become_owner();
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600), null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    unsetenv("PGOPTIONS");
    execv(path, (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* `second`: the standby, on a copy of the data, at port 5433. */
static pid_t start_server(bool second)
{
    char data[240], socket[240];
    snprintf(data, sizeof data, "%s/%s", dir, second ? "standby" : "data");
    snprintf(socket, sizeof socket, "unix_socket_directories=%s", dir);
    const char *const argv[] = {
        "postgres",
        "-D",
        data,
        "-c",
        socket,
        "-c",
        "listen_addresses=",
        "-c",
        second ? "port=5433" : "port=5432",
        "-c",
        "fsync=off",
        "-c",
        "full_page_writes=off",
        "-c",
        "shared_buffers=32MB",
        "-c",
        "max_wal_size=256MB",
        "-c",
        "autovacuum=off", /* it draws transaction numbers: then a poll finds something new */
        "-c",
        "max_prepared_transactions=20",
        "-c",
        "max_connections=150",
        "-c",
        "unix_socket_permissions=0777",
        NULL};
    pid_t pid = fork();
    if (pid == 0)
        become("server.log", argv);
    return pid;
}

static void end_server(pid_t *pid, int how)
{
    if (*pid <= 0)
        return;
    kill(*pid, how);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *pid = 0;
}

static void run_shell(const char *script)
{
    pid_t pid = fork();
    if (pid == 0) {
        execlp("sh", "sh", "-c", script, "sh", dir, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static void keep(int commands, int answers)
{
    pid_t server = 0, standby = 0;
    char c;
    setsid(); /* Ctrl-C is for the test program; we follow it */
    signal(SIGPIPE, SIG_IGN);
    while (read(commands, &c, 1) == 1) {
        if (c == 's')
            server = start_server(false);
        else if (c == '2')
            standby = start_server(true);
        else if (c == '0')
            end_server(&standby, SIGQUIT);
        else
            end_server(&server, c == 'q' ? SIGQUIT : SIGINT);
        if (write(answers, &c, 1) != 1)
            break;
    }
    end_server(&server, SIGQUIT);
    end_server(&standby, SIGQUIT);
    run_shell("rm -rf -- \"$1\"");
    _exit(0);
}

static bool tell_keeper(char c)
{
    return write(to_keeper, &c, 1) == 1 && read(from_keeper, &c, 1) == 1;
}

static void end_keeper(void)
{
    if (to_keeper < 0)
        return;
    close(to_keeper);
    to_keeper = -1;
    waitpid(keeper, NULL, 0);
}

static bool start_keeper(void)
{
    int commands[2], answers[2];
    if (pipe(commands) != 0 || pipe(answers) != 0)
        return false;
    int ours[] = {commands[1], answers[0], commands[0], answers[1]};
    for (size_t i = 0; i < COUNT(ours); i++)
        fcntl(ours[i], F_SETFD, FD_CLOEXEC);
    keeper = fork();
    if (keeper == 0) {
        close(commands[1]);
        close(answers[0]);
        keep(commands[0], answers[1]);
    }
    close(commands[0]);
    close(answers[1]);
    to_keeper = commands[1];
    from_keeper = answers[0];
    atexit(end_keeper);
    return keeper > 0;
}

/* ---- the server ---- */

static bool make_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/hikyaku-pg-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return false;
    if (geteuid() == 0) {
        const struct passwd *owner = getpwnam("postgres");
        if (!owner)
            owner = getpwnam("nobody");
        if (!owner)
            return false;
        has_owner = true;
        owner_uid = owner->pw_uid;
        owner_gid = owner->pw_gid;
        return chown(dir, owner_uid, owner_gid) == 0 && chmod(dir, 0711) == 0;
    }
    return true;
}

static bool make_cluster(void)
{
    char data[240];
    int status = 0;
    snprintf(data, sizeof data, "%s/data", dir);
    const char *const argv[] = {"initdb", "-D", data,   "-U",         "postgres",  "-A",
                                "trust",  "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
                                NULL};
    pid_t pid = fork();
    if (pid == 0)
        become("initdb.log", argv);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static void show_log(const char *name)
{
    char path[300], line[500];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        fprintf(stderr, "# %s: %s", name, line);
    if (file)
        fclose(file);
}

static bool answers_now(int port)
{
    char info[300];
    snprintf(info, sizeof info, "host=%s port=%d user=postgres dbname=postgres connect_timeout=5", dir, port);
    return PQping(info) == PQPING_OK;
}

static bool resume(bool second)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    const int port = second ? 5433 : 5432;
    if (!tell_keeper(second ? '2' : 's'))
        return false;
    for (int i = 0; i < 3000 && !answers_now(port); i++)
        nanosleep(&pause, NULL);
    return answers_now(port);
}

const int *pg_server_start(void)
{
    static const int skip = 0, failure = 1;
    if (!find_server()) {
        printf("1..0 # SKIP no PostgreSQL server (Debian: postgresql)\n");
        return &skip;
    }
    if (make_folder() && start_keeper() && make_cluster() && resume(false))
        return NULL;
    fprintf(stderr, "# cannot run a PostgreSQL server in %s\n", dir);
    show_log("initdb.log");
    show_log("server.log");
    return &failure;
}

const char *pg_server_dir(void)
{
    return dir;
}

void pg_server_become_owner(void)
{
    if (has_owner && (setgid(owner_gid) != 0 || setuid(owner_uid) != 0))
        _exit(126);
}

void pg_server_crash(void)
{
    assert_true(tell_keeper('q'));
}

void pg_server_stop(void)
{
    assert_true(tell_keeper('f'));
}

void pg_server_resume(void)
{
    assert_true(resume(false));
}

void pg_server_add_standby(void)
{
    pg_server_stop();
    run_shell("rm -rf -- \"$1/standby\" && cp -Rp -- \"$1/data\" \"$1/standby\" && "
              "rm -f -- \"$1/standby/postmaster.pid\" && "
              "cp -p -- \"$1/data/PG_VERSION\" \"$1/standby/standby.signal\"");
    pg_server_resume();
    assert_true(resume(true));
}

void pg_server_drop_standby(void)
{
    assert_true(tell_keeper('0'));
}

/* ---- databases ---- */

static const char *url_of(const char *user, const char *name, const char *more)
{
    static _Thread_local char urls[4][400];
    static _Thread_local unsigned next;
    char *url = urls[next++ % 4];
    snprintf(url, sizeof urls[0], "postgres:///%s?host=%s&port=5432&user=%s%s", name, dir,
             user ? user : "postgres", more);
    return url;
}

const char *pg_url(const char *user, const char *more)
{
    return url_of(user, database, more);
}

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

static PGconn *connect_to(const char *user, const char *name)
{
    PGconn *conn = PQconnectdb(url_of(user, name, ""));
    NOTE_IF(PQstatus(conn) != CONNECTION_OK, "%s", PQerrorMessage(conn));
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    PQsetNoticeProcessor(conn, ignore_notice, NULL);
    return conn;
}

PGconn *pg_connect(const char *user)
{
    return connect_to(user, database);
}

static void administer(const char *verb, const char *how)
{
    char sql[200];
    PGconn *conn = connect_to(NULL, "postgres");
    snprintf(sql, sizeof sql, "%s DATABASE %s %s", verb, database, how);
    pg_exec(conn, sql);
    PQfinish(conn);
}

static void make_database(const char *how)
{
    static unsigned count;
    snprintf(database, sizeof database, "hk%u", ++count);
    administer("CREATE", how);
    app = pg_connect(NULL);
}

bool pg_make_database(void)
{
    make_database("");
    return true;
}

/* As printed, one transaction for each version. */
void pg_make_version(const char *more, unsigned version)
{
    struct hk_buf sql;
    struct hk_store_inited done;
    hk_buf_init(&sql, 1 << 20);
    assert_int_equal(
        hk_store_postgres.init(pg_url(NULL, more), &(struct hk_store_init){.print = &sql}, &done, NULL),
        HK_OK);
    const char *end = hk_buf_cstr(&sql);
    for (unsigned i = 0; i < version; i++) {
        end = strstr(end, "COMMIT;\n");
        assert_non_null(end);
        end += strlen("COMMIT;\n");
    }
    char *script = strndup(hk_buf_cstr(&sql), (size_t)(end - hk_buf_cstr(&sql)));
    assert_non_null(script);
    PGconn *owner = pg_connect(NULL);
    pg_exec(owner, script);
    PQfinish(owner);
    free(script);
    hk_buf_fini(&sql);
}

const char *pg_database(void)
{
    return database;
}

/* Made once: a copy is cheaper than to create it all again. */
static bool make_template(void)
{
    struct hk_store_inited done;
    struct hk_err err = {0};
    snprintf(database, sizeof database, "hk_template");
    administer("CREATE", "");
    if (hk_store_postgres.init(pg_url(NULL, ""), &(struct hk_store_init){0}, &done, &err) == HK_OK)
        return true;
    print_error("make: %s\n", err.message);
    return false;
}

static bool make(void)
{
    static bool made;
    if (!made && !make_template())
        return false;
    made = true;
    make_database("TEMPLATE hk_template");
    return true;
}

static void drop(void)
{
    PQfinish(app);
    app = NULL;
    administer("DROP", "WITH (FORCE)");
}

static const char *get_url(void)
{
    return pg_url(NULL, "");
}

/* ---- SQL ---- */

void pg_exec(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    bool good = PQresultStatus(res) == PGRES_COMMAND_OK || PQresultStatus(res) == PGRES_TUPLES_OK;
    NOTE_IF(!good, "%s: %s\n", sql, PQerrorMessage(conn));
    PQclear(res);
    assert_true(good);
}

const char *pg_ask(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    bool good = PQresultStatus(res) == PGRES_COMMAND_OK || PQresultStatus(res) == PGRES_TUPLES_OK;
    NOTE_IF(!good, "%s: %s\n", sql, PQerrorMessage(conn));
    bool row = good && PQntuples(res) > 0 && PQnfields(res) > 0;
    snprintf(app_value, sizeof app_value, "%s", row ? PQgetvalue(res, 0, 0) : "");
    PQclear(res);
    assert_true(good);
    return app_value;
}

const char *pg_refusal(PGconn *conn, const char *sql)
{
    static char state[8];
    PGresult *res = PQexec(conn, sql);
    const char *given = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    snprintf(state, sizeof state, "%s", given ? given : PQstatus(conn) == CONNECTION_OK ? "" : "gone");
    PQclear(res);
    return state;
}

static void sql(const char *text)
{
    pg_exec(app, text);
}

static const char *get_value(const char *text)
{
    return pg_ask(app, text);
}

static void time_text(const char *column, char *out, size_t room)
{
    snprintf(out, room, "to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')", column);
}

static void guard(const char *table, const char *act, bool loud)
{
    char text[500];
    sql("DROP FUNCTION IF EXISTS keep_p2() CASCADE");
    if (!table)
        return;
    snprintf(
        text, sizeof text,
        "CREATE FUNCTION keep_p2() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s; END $$; "
        "CREATE TRIGGER keep_p2 BEFORE %s ON %s FOR EACH ROW WHEN (%s.payload = 'p2') EXECUTE FUNCTION keep_p2()",
        loud ? "RAISE EXCEPTION 'not p2'" : "RETURN NULL", act, table, act[0] == 'I' ? "new" : "old");
    sql(text);
}

const struct store_kind pg_kind = {
    .ops = &hk_store_postgres,
    .make = make,
    .drop = drop,
    .url = get_url,
    .sql = sql,
    .value = get_value,
    .brackets = "{}",
    .time_text = time_text,
    .guard = guard,
};
