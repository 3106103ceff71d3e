/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: greeting and log-in, answers by their number, and errors, which name a subject at best. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "hk_version.h"
#include "sink/nats/impl.h"

enum {
    OUT_MAX = 640 * 1024,
    JWT_MAX = 64 * 1024
};

#define ASK_STREAMS "$JS.API.STREAM.NAMES"
#define NO_STREAM   "no responders: no stream takes the subject"

static struct hk_nats_conn *of(struct hk_link *link)
{
    return (struct hk_nats_conn *)link;
}

/* ---- what errors mean ---- */

enum hk_fault hk_nats_fault(int64_t code, int64_t err_code)
{
    static const int64_t throttled[] = {10002, 10023, 10028, 10047, 10077};
    static const int64_t refused[] = {10039, 10054, 10060, 10076, 10109};
    for (size_t i = 0; i < sizeof throttled / sizeof throttled[0]; i++)
        if (err_code == throttled[i])
            return HK_FAULT_BROKER_THROTTLED;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (err_code == refused[i])
            return HK_FAULT_BROKER_REFUSED;
    if (code == 503 || code == 408)
        return HK_FAULT_BROKER_TRANSIENT;
    return code == 429 ? HK_FAULT_BROKER_THROTTLED : HK_FAULT_BROKER_UNKNOWN;
}

enum hk_fault hk_nats_err_fault(struct hk_str words)
{
    static const struct {
        const char *part;
        enum hk_fault fault;
    } rows[] = {{"permissions violation for subscription", HK_FAULT_BROKER_AUTH},
                {"permissions violation", HK_FAULT_NONE}, /* of one message */
                {"invalid subject", HK_FAULT_NONE},
                {"authorization", HK_FAULT_BROKER_AUTH},
                {"authentication", HK_FAULT_BROKER_AUTH},
                {"account", HK_FAULT_BROKER_AUTH},
                {"maximum connections", HK_FAULT_BROKER_THROTTLED},
                {"secure connection", HK_FAULT_TLS},
                {"maximum payload", HK_FAULT_PROTOCOL},
                {"maximum control line", HK_FAULT_PROTOCOL},
                {"parser error", HK_FAULT_PROTOCOL},
                {"unknown protocol", HK_FAULT_PROTOCOL}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (hk_str_containsi(words, hk_str_of(rows[i].part)))
            return rows[i].fault;
    return HK_FAULT_BROKER_TRANSIENT;
}

/* ---- greeting ---- */

static void add_login(struct hk_nats_conn *conn, struct hk_json *json, struct hk_buf *signature)
{
    const struct hk_servers *servers = &conn->link.servers;
    if (conn->has_key && conn->info.nonce[0]) {
        hk_json_key(json, "sig");
        hk_json_str(json, hk_nkey_sign(&conn->key, hk_str_of(conn->info.nonce), signature)
                              ? hk_buf_str(signature)
                              : hk_str_of(""));
    }
    if (conn->has_key) {
        hk_json_key(json, conn->jwt.len ? "jwt" : "nkey");
        hk_json_str(json, conn->jwt.len ? hk_buf_str(&conn->jwt) : hk_str_of(conn->key.public_key));
    } else if (conn->token) {
        hk_json_key(json, "auth_token");
        hk_json_cstr(json, conn->token);
    } else if (servers->user[0]) {
        hk_json_key(json, "user");
        hk_json_cstr(json, servers->user);
        hk_json_key(json, "pass");
        hk_json_cstr(json, conn->link.password ? conn->link.password : "");
    }
}

static void add_connect(struct hk_nats_conn *conn, struct hk_buf *signature)
{
    struct hk_json json;
    (void)hk_buf_adds(&conn->link.out, "CONNECT ");
    hk_json_init(&json, &conn->link.out, false);
    hk_json_object(&json);
    static const char *const on[] = {"headers", "no_responders"}, *const off[] = {"verbose", "pedantic"};
    for (size_t i = 0; i < 2; i++) {
        hk_json_key(&json, on[i]);
        hk_json_bool(&json, true);
        hk_json_key(&json, off[i]);
        hk_json_bool(&json, false);
    }
    static const char *const texts[][2] = {{"name", "hikyaku"}, {"lang", "c"}, {"version", HK_VERSION}};
    for (size_t i = 0; i < 3; i++) {
        hk_json_key(&json, texts[i][0]);
        hk_json_cstr(&json, texts[i][1]);
    }
    hk_json_key(&json, "protocol");
    hk_json_u64(&json, 1);
    hk_json_key(&json, "tls_required");
    hk_json_bool(&json, conn->link.secured);
    add_login(conn, &json, signature);
    hk_json_end(&json);
}

static void greet(struct hk_nats_conn *conn)
{
    struct hk_buf signature;
    hk_buf_init(&signature, 256);
    (void)snprintf(conn->prefix, sizeof conn->prefix, "%s.hk%016" PRIx64, conn->inbox,
                   hk_rng_next(&conn->link.rng));
    add_connect(conn, &signature);
    (void)hk_buf_addf(&conn->link.out, "\r\nSUB %s.* 1\r\nPING\r\n", conn->prefix);
    hk_buf_fini(&signature);
    conn->greeted = true;
    (void)hk_link_put(&conn->link);
}

static void learn(void *arg, struct hk_str url)
{
    struct hk_nats_conn *conn = arg;
    struct hk_server server;
    if (hk_server_parse(url, hk_scheme_nats.plain_port, &server))
        hk_link_learn(&conn->link, &server);
}

static void on_info(struct hk_nats_conn *conn, struct hk_str json)
{
    struct hk_link *link = &conn->link;
    if (!hk_nats_read_info(json, &conn->info, learn, conn))
        hk_link_fail(link, HK_FAULT_PROTOCOL, NULL, "the server's INFO cannot be read");
    else if (!conn->info.headers)
        hk_link_fail(link, HK_FAULT_PROTOCOL, NULL, "the server knows no headers: it is older than NATS 2.2");
    else if (conn->greeted)
        return; /* news of its cluster */
    else if (link->tls && !link->secured && !conn->info.tls)
        hk_link_fail(link, HK_FAULT_TLS, NULL, "the server offers no TLS");
    else if (link->tls && !link->secured)
        hk_link_secure(link);
    else
        greet(conn);
}

/* ---- answers ---- */

static void confirm(struct hk_flight *f, const struct hk_nats_ack *ack)
{
    bool first = f->attempt <= 1 && !f->msg->crashes && f->msg->life <= 1;
    if (ack->duplicate && first)
        hk_flight_fail(f, HK_FAULT_BROKER_REFUSED, false, "duplicate",
                       "the stream has another message with this Nats-Msg-Id, and dropped this one; "
                       "msg_id: destination keeps destinations apart",
                       NULL);
    else
        hk_flight_confirm(f, -1, (int64_t)ack->sequence);
}

static void refuse(struct hk_flight *f, const struct hk_nats_ack *ack)
{
    enum hk_fault fault = hk_nats_fault(ack->code, ack->err_code);
    char code[32];
    (void)snprintf(code, sizeof code, "%" PRId64, ack->err_code ? ack->err_code : ack->code);
    hk_flight_fail(f, fault, fault == HK_FAULT_BROKER_UNKNOWN, code, ack->description, NULL);
}

/* Nobody listens: is there no such stream, or is it away for now? JetStream knows. */
static void ask_for_stream(struct hk_nats_conn *conn, struct hk_flight *f)
{
    struct hk_nats_sink *n = (struct hk_nats_sink *)f->sink;
    struct hk_buf ask;
    struct hk_json json;
    f->returned = true;
    hk_buf_init(&ask, 4096);
    hk_json_init(&json, &ask, false);
    hk_json_object(&json);
    hk_json_key(&json, "subject");
    hk_json_str(&json, hk_broker_target(f->sink, n->subject, f->msg));
    hk_json_end(&json);
    (void)hk_buf_addf(&conn->link.out, "PUB " ASK_STREAMS " %s.q%" PRIu64 " %zu\r\n%s\r\n", conn->prefix,
                      f->number, ask.len, hk_buf_cstr(&ask));
    hk_buf_fini(&ask);
    (void)hk_link_put(&conn->link);
}

static void end_unheard(struct hk_nats_conn *conn, struct hk_flight *f, bool there)
{
    hk_flights_drop(&conn->flights, f->number);
    if (there)
        hk_flight_fail(f, HK_FAULT_BROKER_TRANSIENT, false, "503", "the stream does not answer", NULL);
    else
        hk_flight_fail(f, HK_FAULT_BROKER_REFUSED, false, "503", NO_STREAM, NULL);
}

/* The number behind the inbox's prefix; `out_asked`: the answer is to the question for a stream. */
static bool read_number(const struct hk_nats_conn *conn, struct hk_str subject, uint64_t *out,
                        bool *out_asked)
{
    struct hk_str prefix = hk_str_of(conn->prefix);
    if (!conn->greeted || subject.len < prefix.len + 2 || !hk_str_starts(subject, prefix))
        return false;
    struct hk_str rest = {subject.ptr + prefix.len + 1, subject.len - prefix.len - 1};
    *out_asked = rest.ptr[0] == 'q';
    if (*out_asked)
        rest = (struct hk_str){rest.ptr + 1, rest.len - 1};
    return hk_parse_u64(rest, out, NULL) == HK_OK;
}

static void on_answer(struct hk_nats_conn *conn, const struct hk_nats_op *op)
{
    struct hk_nats_ack ack = {.code = 0};
    uint64_t number = 0;
    bool asked = false;
    struct hk_flight *f =
        read_number(conn, op->subject, &number, &asked) ? hk_flights_get(&conn->flights, number) : NULL;
    if (!f || f->returned != asked) /* late, or not for us */
        return;
    bool read = hk_nats_read_ack(op->payload, &ack);
    if (asked) {
        end_unheard(conn, f, op->status == 503 || ack.code || ack.has_streams);
        return;
    }
    if (op->status == 503) {
        ask_for_stream(conn, f);
        return;
    }
    struct hk_broker *b = f->sink;
    hk_flights_drop(&conn->flights, number);
    if (read && ack.stored)
        confirm(f, &ack);
    else if (read && ack.code)
        refuse(f, &ack);
    else
        hk_flight_fail(f, HK_FAULT_PROTOCOL, true, NULL, NULL,
                       "the answer is none of JetStream's: somebody else has subscribed to the subject");
    hk_broker_pump(b);
}

/* ---- errors ---- */

static bool has_subject(struct hk_flight *f, struct hk_str words)
{
    char quoted[1100];
    struct hk_str subject = hk_broker_target(f->sink, ((struct hk_nats_sink *)f->sink)->subject, f->msg);
    int len = snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)subject.len, subject.ptr);
    return len > 0 && (size_t)len < sizeof quoted &&
           hk_str_containsi(words, (struct hk_str){quoted, (size_t)len});
}

/* It names a subject, and messages are read in order: so it is about the first that went there. */
static void blame(struct hk_nats_conn *conn, struct hk_str words)
{
    char text[512];
    bool asked = hk_str_containsi(words, hk_str_of(ASK_STREAMS));
    (void)snprintf(text, sizeof text, "%.*s", (int)words.len, words.ptr);
    for (uint64_t i = conn->flights.first; i < conn->flights.next; i++) {
        struct hk_flight *f = hk_flights_get(&conn->flights, i);
        if (!f || f->returned != asked || (!asked && !has_subject(f, words)))
            continue;
        if (asked) {
            end_unheard(conn, f, false); /* no right to ask: then it is as it looks */
            return;
        }
        hk_flights_drop(&conn->flights, i);
        hk_flight_fail(f, HK_FAULT_BROKER_AUTH, false, "-ERR", text, NULL);
        return;
    }
}

static void on_err(struct hk_nats_conn *conn, struct hk_str words)
{
    char text[HK_LINK_TEXT_MAX];
    enum hk_fault fault = hk_nats_err_fault(words);
    if (fault == HK_FAULT_NONE) {
        blame(conn, words);
        return;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)(words.len < sizeof text ? words.len : sizeof text - 1),
                   words.ptr);
    hk_link_fail(&conn->link, fault, "-ERR", text);
}

static void on_op(struct hk_nats_conn *conn, const struct hk_nats_op *op)
{
    switch (op->kind) {
    case HK_NATS_INFO:
        on_info(conn, op->text);
        break;
    case HK_NATS_MSG:
        on_answer(conn, op);
        break;
    case HK_NATS_PING:
        (void)hk_link_write(&conn->link, "PONG\r\n", 6);
        break;
    case HK_NATS_PONG:
        if (conn->link.phase == HK_LINK_GREETING && conn->greeted)
            hk_link_ready(&conn->link);
        break;
    case HK_NATS_OK:
        break;
    case HK_NATS_ERR:
        on_err(conn, op->text);
        break;
    }
}

static enum hk_next on_read(struct hk_link *link, struct hk_str in, size_t *used, const char **why)
{
    struct hk_nats_op op;
    enum hk_nats_next next = hk_nats_read(in, &op, used, why);
    if (next == HK_NATS_WHOLE)
        on_op(of(link), &op);
    return (enum hk_next)next;
}

/* ---- the link ---- */

static enum hk_code on_init(struct hk_link *link, const void *arg, struct hk_err *err)
{
    struct hk_nats_conn *conn = of(link);
    const struct hk_nats_options *o = arg;
    hk_buf_init(&conn->jwt, JWT_MAX);
    hk_flights_reset(&conn->flights, 1);
    conn->inbox = hk_mem_strdup(o->inbox ? o->inbox : HK_NATS_INBOX);
    conn->token = o->token ? hk_mem_strdup(o->token) : NULL;
    conn->has_key = o->creds_file != NULL;
    if (!conn->inbox || (o->token && !conn->token))
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return o->creds_file ? hk_nkey_load(o->creds_file, &conn->jwt, &conn->key, err) : HK_OK;
}

/* Its server speaks first. By TLS it has spoken in plain already. */
static void on_opened(struct hk_link *link)
{
    if (link->secured)
        greet(of(link));
}

static void on_lost(struct hk_link *link)
{
    struct hk_nats_conn *conn = of(link);
    conn->greeted = false;
    hk_flights_reset(&conn->flights, 1);
}

static void on_beat(struct hk_link *link)
{
    (void)hk_link_write(link, "PING\r\n", 6);
}

static void on_fini(struct hk_link *link)
{
    struct hk_nats_conn *conn = of(link);
    hk_flights_fini(&conn->flights);
    if (conn->token)
        hk_mem_wipe(conn->token, strlen(conn->token));
    hk_mem_free(conn->token);
    hk_mem_free(conn->inbox);
    hk_mem_wipe(&conn->key, sizeof conn->key);
    hk_buf_fini(&conn->jwt);
}

const struct hk_link_ops hk_nats_conn_ops = {.kind = "nats",
                                             .out_max = OUT_MAX,
                                             .init = on_init,
                                             .tls_later = true,
                                             .opened = on_opened,
                                             .read = on_read,
                                             .lost = on_lost,
                                             .beat = on_beat,
                                             .fini = on_fini};
