/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges and streams behind TLS, where the library has bytes in hand that no socket tells of: late replies, bodies, clients that leave,
 * and the server's end. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "admin/listen.h"
#include "admin/server.h"
#include "admin/tls.h"
#include "base/parse.h"
#include "base/str.h"
#include "check.h"

enum {
    BODY_MAX = 300000,
    HELD_MAX = 64
};

struct rig {
    char folder[64], cert[96], key[96];
    struct hk_health health;
    struct hk_metrics *metrics;
    struct hk_admin_tls *tls;
    struct hk_admin_server *server;
    struct sockaddr_in at;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct hk_admin_exchange *held[HELD_MAX];
    size_t n_held;
};

static const struct hk_metric_def defs[] = {{"t_total", "T.", HK_METRIC_COUNTER, 0, {{0}}, NULL, 0}};

static int64_t clock_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the service: everything is held, but for /echo ---- */

static size_t body_max(void *arg, const char *method, const char *path)
{
    (void)arg, (void)method, (void)path;
    return BODY_MAX;
}

static void reply_text(struct hk_admin_exchange *x, struct hk_str text)
{
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, 200);
    reply.content_type = "text/plain";
    (void)hk_buf_add(&reply.body, text.ptr, text.len);
    hk_admin_exchange_reply(x, &reply);
    hk_buf_fini(&reply.body);
}

static void handle(void *arg, struct hk_admin_exchange *x)
{
    struct rig *r = arg;
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    if (strcmp(ask->path, "/echo") == 0) {
        reply_text(x, ask->body);
        return;
    }
    (void)pthread_mutex_lock(&r->lock);
    r->held[r->n_held++] = x;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static struct hk_admin_exchange *wait_held(struct rig *r, size_t n)
{
    (void)pthread_mutex_lock(&r->lock);
    while (r->n_held < n)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    struct hk_admin_exchange *x = r->held[n - 1];
    (void)pthread_mutex_unlock(&r->lock);
    return x;
}

/* ---- a certificate ---- */

static void write_pem(const char *path, const gnutls_datum_t *pem)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(pem->data, 1, pem->size, file), pem->size);
    assert_int_equal(fclose(file), 0);
}

static void make_certificate(const struct rig *r)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t cert;
    gnutls_datum_t pem;
    time_t now = time(NULL);
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                                  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
                     0);
    assert_int_equal(gnutls_x509_crt_init(&cert), 0);
    assert_int_equal(gnutls_x509_crt_set_version(cert, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(cert, "\1", 1), 0);
    assert_int_equal(gnutls_x509_crt_set_dn(cert, "CN=relay", NULL), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(cert, now - 3600), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(cert, now + 86400), 0);
    assert_int_equal(gnutls_x509_crt_set_key(cert, key), 0);
    assert_int_equal(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &pem), 0);
    write_pem(r->cert, &pem);
    gnutls_free(pem.data);
    assert_int_equal(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem), 0);
    write_pem(r->key, &pem);
    gnutls_free(pem.data);
    gnutls_x509_crt_deinit(cert);
    gnutls_x509_privkey_deinit(key);
}

/* ---- the client ---- */

struct line {
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

static void dial(const struct rig *r, struct line *out)
{
    const struct timeval patience = {.tv_sec = 60};
    int rc = 0;
    out->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(out->fd >= 0);
    assert_int_equal(setsockopt(out->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(connect(out->fd, (const struct sockaddr *)&r->at, sizeof r->at), 0);
    assert_int_equal(gnutls_certificate_allocate_credentials(&out->credentials), 0);
    assert_int_equal(gnutls_init(&out->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL), 0);
    assert_int_equal(gnutls_set_default_priority(out->session), 0);
    assert_int_equal(gnutls_credentials_set(out->session, GNUTLS_CRD_CERTIFICATE, out->credentials), 0);
    gnutls_transport_set_int(out->session, out->fd);
    do
        rc = gnutls_handshake(out->session);
    while (rc < 0 && !gnutls_error_is_fatal(rc));
    assert_int_equal(rc, 0);
}

static void hang_up(struct line *line)
{
    (void)close(line->fd);
    gnutls_deinit(line->session);
    gnutls_certificate_free_credentials(line->credentials);
}

static void say(struct line *line, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = gnutls_record_send(line->session, bytes, len);
        assert_true(n > 0);
        bytes += n;
        len -= (size_t)n;
    }
}

static char heard[1 << 20];
static size_t heard_len;

/* Reads until `text` was there; false: it ended before. */
static bool hear(struct line *line, const char *text)
{
    heard_len = 0;
    heard[0] = '\0';
    while (!strstr(heard, text)) {
        ssize_t n = gnutls_record_recv(line->session, heard + heard_len, sizeof heard - 1 - heard_len);
        if (n == GNUTLS_E_INTERRUPTED)
            continue;
        if (n <= 0)
            return false;
        heard_len += (size_t)n;
        heard[heard_len] = '\0';
    }
    return true;
}

static void dial_held(const struct rig *r, struct line *out)
{
    static const char text[] = "GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n";
    dial(r, out);
    say(out, text, sizeof text - 1);
}

/* ---- set up ---- */

static int set_up(void **state)
{
    static struct rig r;
    char address[HK_LISTEN_TEXT_MAX];
    uint64_t port = 0;
    memset(&r, 0, sizeof r);
    (void)snprintf(r.folder, sizeof r.folder, "/tmp/hikyaku-tls-XXXXXX");
    assert_non_null(mkdtemp(r.folder));
    (void)snprintf(r.cert, sizeof r.cert, "%s/cert.pem", r.folder);
    (void)snprintf(r.key, sizeof r.key, "%s/key.pem", r.folder);
    make_certificate(&r);
    hk_health_init(&r.health, clock_ms());
    assert_int_equal(hk_metrics_new(defs, 1, &r.metrics, NULL), HK_OK);
    assert_int_equal(pthread_mutex_init(&r.lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&r.changed, NULL), 0);
    const struct hk_admin_tls_files files = {.cert = r.cert, .key = r.key};
    assert_int_equal(hk_admin_tls_open(&files, &r.tls, NULL), HK_OK);
    const struct hk_admin_site site = {.health = &r.health, .metrics = r.metrics, .now_ms = clock_ms};
    const struct hk_admin_service service = {.body_max = body_max, .handle = handle, .arg = &r};
    struct hk_admin_listener listener = {
        .role = HK_ROLE_NONE, .gate = {.way = HK_GATE_TLS}, .tls = r.tls, .service = &service};
    assert_int_equal(hk_listen("127.0.0.1:0", &listener.fd, address, NULL), HK_OK);
    assert_int_equal(hk_parse_u64(hk_str_of(strchr(address, ':') + 1), &port, NULL), HK_OK);
    r.at = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct hk_admin_room *room = hk_admin_room_new();
    assert_non_null(room);
    assert_int_equal(hk_admin_server_start(&site, room, &listener, 1, &r.server, NULL), HK_OK);
    hk_admin_room_unref(room);
    *state = &r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    hk_admin_server_stop(r->server);
    hk_admin_tls_close(r->tls);
    hk_metrics_free(r->metrics);
    (void)unlink(r->cert);
    (void)unlink(r->key);
    (void)rmdir(r->folder);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    return 0;
}

/* ---- tests ---- */

static void test_bodies_come_and_go_whole(void **state)
{
    struct rig *r = *state;
    static char text[BODY_MAX + 200];
    struct line line;
    dial(r, &line);
    for (int round = 0; round < 3; round++) {
        int head = snprintf(text, sizeof text,
                            "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", BODY_MAX);
        memset(text + head, 'x', BODY_MAX);
        memcpy(text + head + BODY_MAX - 3, "end", 3);
        say(&line, text, (size_t)head + BODY_MAX);
        assert_true(hear(&line, "xend"));
        const char *body = strstr(heard, "\r\n\r\n") + 4;
        assert_int_equal(heard_len - (size_t)(body - heard), BODY_MAX);
    }
    hang_up(&line);
}

static void test_replies_may_come_later(void **state)
{
    struct rig *r = *state;
    struct line line;
    dial_held(r, &line);
    reply_text(wait_held(r, 1), (struct hk_str){"late", 4});
    assert_true(hear(&line, "late"));
    /* two in one record: the second is in the library's hand while the first waits for us */
    static const char two[] =
        "GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    say(&line, two, sizeof two - 1);
    reply_text(wait_held(r, 2), (struct hk_str){"again", 5});
    assert_true(hear(&line, "\"ok\""));
    assert_non_null(strstr(heard, "again"));
    hang_up(&line);
}

static void test_streams_flow(void **state)
{
    struct rig *r = *state;
    struct line line;
    struct hk_admin_reply head;
    struct hk_admin_stream *stream = NULL;
    dial_held(r, &line);
    hk_admin_reply_init(&head, 200);
    head.content_type = "text/event-stream";
    assert_int_equal(hk_admin_exchange_stream(wait_held(r, 1), &head, &stream), HK_OK);
    hk_buf_fini(&head.body);
    for (int i = 0; i < 200; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "data: %d\n\n", i);
        assert_int_equal(hk_admin_stream_push(stream, hk_str_of(text)), HK_OK);
        if (i % 20 == 0)
            assert_true(hear(&line, text));
    }
    assert_true(hear(&line, "data: 199\n\n"));
    hang_up(&line);
    while (hk_admin_stream_push(stream, hk_str_of("data: x\n\n")) == HK_OK)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    hk_admin_stream_end(stream);
}

static void test_clients_may_leave_while_they_wait(void **state)
{
    struct rig *r = *state;
    struct line line;
    for (size_t i = 0; i < 10; i++) {
        dial_held(r, &line);
        (void)wait_held(r, i + 1);
        hang_up(&line);
    }
    for (size_t i = 0; i < 10; i++)
        reply_text(wait_held(r, i + 1), (struct hk_str){"to nobody", 9});
    dial_held(r, &line);
    reply_text(wait_held(r, 11), (struct hk_str){"somebody", 8});
    assert_true(hear(&line, "somebody"));
    hang_up(&line);
}

static void test_the_end_comes_while_clients_wait(void **state)
{
    struct rig *r = *state;
    struct line line;
    dial_held(r, &line);
    struct hk_admin_exchange *x = wait_held(r, 1);
    hk_admin_server_stop(r->server);
    r->server = NULL;
    assert_false(hear(&line, "anything"));
    hang_up(&line);
    reply_text(x, (struct hk_str){"too late", 8});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bodies_come_and_go_whole),
        TEST(test_replies_may_come_later),
        TEST(test_streams_flow),
        TEST(test_clients_may_leave_while_they_wait),
        TEST(test_the_end_comes_while_clients_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
