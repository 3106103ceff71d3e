/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP sink over HTTP/2: frames of our own, and a real nginx (skipped where there is none). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "frames.h"
#include "ports.h"

static struct {
    char dir[64], conf[96];
    int port, plain_port;
    pid_t pid;
} nginx;

static struct server *backend, *cutter;

static void write_conf(void)
{
    (void)snprintf(nginx.dir, sizeof nginx.dir, "/tmp/hk-nginx-XXXXXX");
    assert_non_null(mkdtemp(nginx.dir));
    (void)snprintf(nginx.conf, sizeof nginx.conf, "%s/nginx.conf", nginx.dir);
    nginx.port = free_port();
    nginx.plain_port = free_port();
    FILE *f = fopen(nginx.conf, "w");
    assert_non_null(f);
    (void)fprintf(
        f,
        "daemon off; master_process off; worker_processes 1; pid %s/pid; error_log stderr crit;\n"
        "events { worker_connections 512; }\n"
        "http { access_log off; client_body_temp_path %s/body; proxy_temp_path %s/proxy; fastcgi_temp_path %s/f;\n"
        "uwsgi_temp_path %s/u; scgi_temp_path %s/s; client_body_buffer_size 2m; client_max_body_size 10m;\n"
        "upstream back { server 127.0.0.1:%d; keepalive 32; }\n"
        "upstream cut { server 127.0.0.1:%d; keepalive 32; }\n"
        "server { listen 127.0.0.1:%d ssl http2; ssl_certificate %s; ssl_certificate_key %s;\n"
        "add_header X-Conn $connection always; add_header X-Proto $server_protocol always;\n"
        "location /early { return 204; }\n"
        "location /cut { proxy_pass http://cut; proxy_http_version 1.1; proxy_set_header Connection ''; }\n"
        "location / { proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ''; } }\n"
        "server { listen 127.0.0.1:%d http2; keepalive_requests 20; http2_max_concurrent_streams 8;\n"
        "add_header X-Conn $connection always; add_header X-Proto $server_protocol always;\n"
        "location / { proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ''; } } }\n",
        nginx.dir, nginx.dir, nginx.dir, nginx.dir, nginx.dir, nginx.dir, server_port(backend),
        server_port(cutter), nginx.port, certs.good, certs.key, nginx.plain_port);
    (void)fclose(f);
}

static bool start_nginx(void)
{
    write_conf();
    nginx.pid = fork();
    if (nginx.pid == 0) {
        execlp("nginx", "nginx", "-p", nginx.dir, "-c", nginx.conf, (char *)NULL);
        execl("/usr/sbin/nginx", "nginx", "-p", nginx.dir, "-c", nginx.conf, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 3000; i++) { /* a minute */
        int status;
        if (waitpid(nginx.pid, &status, WNOHANG) != 0)
            return false;
        char path[96];
        (void)snprintf(path, sizeof path, "%s/pid", nginx.dir);
        if (access(path, F_OK) == 0)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return false;
}

static int make_all(void **state)
{
    (void)begin_with_certs(state);
    static const struct step cuts[8] = {
        {OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"}, {OP_END}};
    bool h2 = by_h2;
    by_h2 = false; /* nginx speaks HTTP/1.1 to them */
    backend = server_start(polite, NULL);
    cutter = server_start(cuts, NULL);
    by_h2 = h2;
    if (!start_nginx())
        nginx.pid = 0;
    return 0;
}

static int end_all(void **state)
{
    if (nginx.pid > 0) {
        (void)kill(nginx.pid, SIGTERM);
        (void)waitpid(nginx.pid, NULL, 0);
    }
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", nginx.dir);
    (void)!system(command); /* NOLINT: our own temporary directory */
    server_stop(backend);
    server_stop(cutter);
    return end_with_certs(state);
}

enum {
    N = 300,
    AT_ONCE = 64
};

static void run_many_at(const char *url, size_t payload_bytes, struct outcome *got)
{
    if (nginx.pid <= 0)
        skip();
    struct hk_http_options options = options_for(url);
    options.ca_file = certs.ca;
    struct client client;
    client_open_http(&client, &options);
    char *payload = filled(payload_bytes);
    struct hk_message msg = message_of(payload, payload_bytes);
    for (int i = 0; i < N; i += AT_ONCE) {
        for (int k = i; k < N && k < i + AT_ONCE; k++)
            client_send(&client, &msg, 20000, &got[k]);
        client_wait(&client);
    }
    free(payload);
    client_close(&client);
}

static void run_many(const char *path, size_t payload_bytes, struct outcome *got)
{
    char url[96];
    (void)snprintf(url, sizeof url, "https://localhost:%d%s", nginx.port, path);
    run_many_at(url, payload_bytes, got);
}

static void requests_share_one_connection(void **state)
{
    (void)state;
    struct outcome *got = calloc(N, sizeof *got);
    assert_non_null(got);
    run_many("/hook", 900, got);
    char seen[8][16];
    size_t n_seen = 0;
    for (int i = 0; i < N; i++) {
        NOTE_IF(got[i].status != 200, "%d: %d %s\n", i, got[i].status, got[i].error);
        assert_int_equal(got[i].status, 200);
        assert_non_null(strstr(got[i].response_headers, "\"x-proto\":\"HTTP/2.0\""));
        const char *conn = strstr(got[i].response_headers, "\"x-conn\":");
        assert_non_null(conn);
        size_t k = 0;
        while (k < n_seen && strncmp(seen[k], conn, 15) != 0)
            k++;
        if (k < n_seen)
            continue;
        assert_true(n_seen < 2); /* not one for each request */
        (void)snprintf(seen[n_seen++], 16, "%s", conn);
    }
    free(got);
}

/* nginx answers before it has read the body, and then ends the stream without an error, which is how HTTP/2 says "that will
 * do": libcurl reports an error for most of these, and forgets the answers of many. */
static void the_status_counts_more_than_the_stream_error(void **state)
{
    (void)state;
    struct outcome *got = calloc(N, sizeof *got);
    assert_non_null(got);
    for (int round = 0; round < 3; round++) {
        memset(got, 0, N * sizeof *got);
        run_many("/early", 60000, got);
        for (int i = 0; i < N; i++) {
            NOTE_IF(got[i].status != 204, "%d, %s: %s\n", got[i].status, hk_fault_name(got[i].fault),
                    got[i].error);
            assert_int_equal(got[i].status, 204);
            assert_int_equal(got[i].fault, HK_FAULT_NONE);
        }
    }
    free(got);
}

/* An upstream says 200 and cuts its body: nginx sends the header block and resets the stream, often in one go. */
static void a_message_whose_answer_is_cut_off_arrives_once(void **state)
{
    (void)state;
    struct outcome *got = calloc(N, sizeof *got);
    assert_non_null(got);
    run_many("/cut", 900, got);
    for (int i = 0; i < N; i++) {
        NOTE_IF(got[i].status != 200, "%d, %s: %s\n", got[i].status, hk_fault_name(got[i].fault),
                got[i].error);
        assert_int_equal(got[i].status, 200);
    }
    assert_int_equal(server_requests(cutter), N);
    free(got);
}

/* ---- frames ---- */

/* What a stream may end with, all of it in one piece. */
static void a_status_that_came_whole_decides(void **state)
{
    (void)state;

    static const struct {
        const char *name, *frames;
        size_t n;
        int status;
        bool early; /* told before the request is out, and it is too long for its window */
    } cases[] = {
        {"200", BYTES(BLOCK_END(S200)), 200, false},
        {"200, reset", BYTES(BLOCK(S200) RST("\2")), 200, false},
        {"200, cancelled", BYTES(BLOCK(S200) RST("\x8")), 200, false},
        {"200, some body, reset", BYTES(BLOCK(S200) DATA RST("\2")), 200, false},
        {"200, ended and reset", BYTES(BLOCK_END(S200) RST("\2")), 200, false},
        {"204, ended and reset without error", BYTES(BLOCK_END(S204) RST("\0")), 204, false},
        {"200, reset without error", BYTES(BLOCK(S200) RST("\0")), 200, false},
        {"103, then 200, reset", BYTES(HINTS BLOCK(S200) RST("\2")), 200, false},
        {"400, reset", BYTES(BLOCK(S400) RST("\2")), 400, false},
        {"500, reset", BYTES(BLOCK(S500) RST("\2")), 500, false},
        {"200, going away", BYTES(BLOCK_END(S200) GOAWAY("\0")), 200, false},
        {"400, going away with an error", BYTES(BLOCK_END(S400) GOAWAY("\2")), 400, false},
        {"200, some body, closed", BYTES(BLOCK(S200) DATA), 200, false},
        {"part of a header block", BYTES(BLOCK_PART(S200)), 0, false},
        {"103, reset", BYTES(HINTS RST("\2")), 0, false},
        {"reset", BYTES(RST("\2")), 0, false},
        {"nothing", BYTES(SETTINGS), 0, false},
        {"early 200, that will do", BYTES(BLOCK_END(S200) RST("\0")), 200, true},
        {"early 200, reset", BYTES(BLOCK(S200) RST("\2")), 0, true},
        {"early 200, closed", BYTES(BLOCK_END(S200)), 0, true},
        {"early 400, reset", BYTES(BLOCK_END(S400) RST("\2")), 400, true},
        {"early 400", BYTES(BLOCK_END(S400) RST("\0")), 400, true},
    };

    const struct server_tls tls = {certs.good, certs.key, .h2 = true};
    size_t n = 1 << 20, wrong = 0;
    char *payload = filled(n);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct step steps[8] = {{OP_SEND, BYTES(SETTINGS)},
                                      {OP_H2, NULL, cases[i].early},
                                      {OP_SEND, cases[i].frames, cases[i].n},
                                      {OP_SLEEP, NULL, 200},
                                      {OP_END}};
        struct fixture f;
        struct outcome got;
        struct hk_message msg = message_of(payload, cases[i].early ? n : 100);
        set_up(&f, steps, &tls, "127.0.0.1");
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, &msg, 5000, &got);
        bool good = got.status == cases[i].status && got.possibly_delivered == !cases[i].status &&
                    (got.fault == HK_FAULT_NONE) == (cases[i].status != 0) && server_requests(f.server) == 1;
        NOTE_IF(!good, "%s: status %d, %s, possibly %d, \"%s\", %u requests\n", cases[i].name, got.status,
                hk_fault_name(got.fault), got.possibly_delivered, got.error, server_requests(f.server));
        wrong += !good;
        tear_down(&f);
    }
    free(payload);
    assert_int_equal(wrong, 0);
}

/* nginx ends a connection after 20 requests, and lets 8 streams be open: what its GOAWAY leaves behind goes over the next one, and
 * each message arrives once. Without TLS: by prior knowledge. */
static void connections_that_go_away_lose_and_repeat_nothing(void **state)
{
    (void)state;
    if (!by_h2) /* libcurl has no h2c */
        return;
    char url[96];
    struct outcome *got = calloc(N, sizeof *got);
    assert_non_null(got);
    unsigned before = server_requests(backend);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/hook", nginx.plain_port);
    run_many_at(url, 30000, got);
    for (int i = 0; i < N; i++) {
        NOTE_IF(got[i].status != 200, "%d, %s: %s\n", got[i].status, hk_fault_name(got[i].fault),
                got[i].error);
        assert_int_equal(got[i].status, 200);
        assert_non_null(strstr(got[i].response_headers, "\"x-proto\":\"HTTP/2.0\""));
    }
    assert_int_equal(server_requests(backend) - before, N);
    free(got);
}

int main(int argc, char **argv)
{
    choose_wire(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_share_one_connection),
        cmocka_unit_test(the_status_counts_more_than_the_stream_error),
        cmocka_unit_test(a_message_whose_answer_is_cut_off_arrives_once),
        cmocka_unit_test(a_status_that_came_whole_decides),
        cmocka_unit_test(connections_that_go_away_lose_and_repeat_nothing),
    };
    return cmocka_run_group_tests(tests, make_all, end_all);
}
