/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: log-in, replies in the order of the commands. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/redis/impl.h"

enum {
    OUT_MAX = 512 * 1024
};

static struct hk_redis_conn *of(struct hk_link *link)
{
    return (struct hk_redis_conn *)link;
}

/* ---- what errors mean ---- */

static struct hk_str code_of(struct hk_str error)
{
    struct hk_str rest = error;
    return hk_str_cut(&rest, ' ');
}

enum hk_fault hk_redis_fault(struct hk_str error)
{
    static const struct {
        const char *code;
        enum hk_fault fault;
    } rows[] = {{"OOM", HK_FAULT_BROKER_THROTTLED},        {"BUSY", HK_FAULT_BROKER_THROTTLED},
                {"NOAUTH", HK_FAULT_BROKER_AUTH},          {"WRONGPASS", HK_FAULT_BROKER_AUTH},
                {"NOPERM", HK_FAULT_BROKER_AUTH},          {"DENIED", HK_FAULT_BROKER_AUTH},
                {"LOADING", HK_FAULT_BROKER_TRANSIENT},    {"READONLY", HK_FAULT_BROKER_TRANSIENT},
                {"MASTERDOWN", HK_FAULT_BROKER_TRANSIENT}, {"CLUSTERDOWN", HK_FAULT_BROKER_TRANSIENT},
                {"TRYAGAIN", HK_FAULT_BROKER_TRANSIENT},   {"MISCONF", HK_FAULT_BROKER_TRANSIENT},
                {"NOREPLICAS", HK_FAULT_BROKER_TRANSIENT}, {"MOVED", HK_FAULT_BROKER_TRANSIENT},
                {"ASK", HK_FAULT_BROKER_TRANSIENT},        {"UNBLOCKED", HK_FAULT_BROKER_TRANSIENT},
                {"WRONGTYPE", HK_FAULT_BROKER_REFUSED},    {"ERR", HK_FAULT_BROKER_REFUSED},
                {"CROSSSLOT", HK_FAULT_BROKER_REFUSED},    {"NOSCRIPT", HK_FAULT_BROKER_REFUSED}};
    struct hk_str code = code_of(error);
    if (hk_str_starts(error, hk_str_of("ERR max number of clients")))
        return HK_FAULT_BROKER_THROTTLED;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (hk_str_eq(code, hk_str_of(rows[i].code)))
            return rows[i].fault;
    return HK_FAULT_BROKER_UNKNOWN;
}

/* ---- greeting ---- */

static void on_opened(struct hk_link *link)
{
    struct hk_redis_conn *conn = of(link);
    const struct hk_servers *servers = &link->servers;
    conn->greetings = 1;
    if (link->password) {
        conn->greetings++;
        hk_resp_begin(&conn->link.out, servers->user[0] ? 3 : 2);
        hk_resp_text(&conn->link.out, "AUTH");
        if (servers->user[0])
            hk_resp_text(&conn->link.out, servers->user);
        hk_resp_text(&conn->link.out, link->password);
    }
    if (servers->path[0] && strcmp(servers->path, "0") != 0) {
        conn->greetings++;
        hk_resp_begin(&conn->link.out, 2);
        hk_resp_text(&conn->link.out, "SELECT");
        hk_resp_text(&conn->link.out, servers->path);
    }
    hk_resp_begin(&conn->link.out, 1);
    hk_resp_text(&conn->link.out, "PING");
    (void)hk_link_put(&conn->link);
}

static void copy_text(char *out, size_t room, struct hk_str s)
{
    (void)snprintf(out, room, "%.*s", (int)(s.len < room ? s.len : room - 1), s.ptr);
}

static void on_greeting(struct hk_redis_conn *conn, const struct hk_resp *reply)
{
    char code[32], text[HK_LINK_TEXT_MAX];
    bool may_not_ping = reply->kind == HK_RESP_ERROR && conn->greetings == 1 &&
                        hk_str_starts(reply->text, hk_str_of("NOPERM")); /* it is logged in nevertheless */
    if (reply->kind == HK_RESP_ERROR && !may_not_ping) {
        copy_text(code, sizeof code, code_of(reply->text));
        copy_text(text, sizeof text, reply->text);
        enum hk_fault fault = hk_redis_fault(reply->text);
        bool login = fault == HK_FAULT_BROKER_REFUSED; /* ERR AUTH …, ERR DB index is out of range */
        hk_link_fail(&conn->link, login ? HK_FAULT_BROKER_AUTH : fault, code, text);
    } else if (--conn->greetings == 0) {
        hk_link_ready(&conn->link);
    }
}

/* ---- replies ---- */

static void refuse(struct hk_flight *f, struct hk_str error)
{
    char code[32], words[512];
    enum hk_fault fault = hk_redis_fault(error);
    struct hk_str code_text = code_of(error);
    size_t behind = code_text.len < error.len ? code_text.len + 1 : code_text.len;
    copy_text(code, sizeof code, code_text);
    copy_text(words, sizeof words, (struct hk_str){error.ptr + behind, error.len - behind});
    hk_flight_fail(f, fault, fault == HK_FAULT_BROKER_UNKNOWN, code, words, NULL);
}

static bool redirect(struct hk_flight *f, struct hk_str error)
{
    struct hk_str where;
    struct hk_server to;
    bool ask = false;
    struct hk_redis_sink *r = (struct hk_redis_sink *)f->sink;
    if (!hk_resp_moved(error, &where, &ask) || f->redirects >= HK_REDIS_REDIRECTS_MAX)
        return false;
    if (!hk_server_parse(where, hk_scheme_redis.plain_port, &to))
        return false;
    hk_flight_requeue(f);
    hk_redis_move(r, &to, ask);
    return true;
}

static void on_reply(struct hk_redis_conn *conn, const struct hk_resp *reply)
{
    uint64_t number = conn->answered++;
    struct hk_flight *f = hk_flights_get(&conn->flights, number);
    int64_t ms = 0;
    if (number >= conn->flights.next) {
        hk_link_fail(&conn->link, HK_FAULT_PROTOCOL, NULL, "the server replies to what was never asked");
        return;
    }
    hk_flights_drop(&conn->flights, number);
    if (!f) /* its time was up, or it was a beat */
        return;
    struct hk_broker *b = f->sink;
    if (reply->kind == HK_RESP_TEXT && hk_resp_entry(reply->text, &ms)) {
        copy_text(f->words, sizeof f->words, reply->text);
        hk_flight_confirm(f, -1, ms);
    } else if (reply->kind == HK_RESP_NIL) {
        hk_flight_fail(f, HK_FAULT_BROKER_REFUSED, false, "nil",
                       "there is no such stream, and create is false", NULL);
    } else if (reply->kind != HK_RESP_ERROR) {
        hk_flight_fail(f, HK_FAULT_PROTOCOL, true, NULL, NULL,
                       "the server's reply is not the id of an entry");
    } else if (!redirect(f, reply->text)) {
        refuse(f, reply->text);
    }
    hk_broker_pump(b);
}

static enum hk_next on_read(struct hk_link *link, struct hk_str in, size_t *used, const char **why)
{
    struct hk_resp reply;
    enum hk_resp_next next = hk_resp_read(in, &reply, used, why);
    if (next == HK_RESP_WHOLE && link->phase == HK_LINK_GREETING)
        on_greeting(of(link), &reply);
    else if (next == HK_RESP_WHOLE)
        on_reply(of(link), &reply);
    return (enum hk_next)next;
}

/* ---- the link ---- */

/* Replies are counted from 1 on each connection. */
static void count_anew(struct hk_redis_conn *conn)
{
    hk_flights_reset(&conn->flights, 1);
    conn->answered = 1;
}

static enum hk_code on_init(struct hk_link *link, const void *arg, struct hk_err *err)
{
    (void)arg;
    (void)err;
    count_anew(of(link));
    return HK_OK;
}

static void on_lost(struct hk_link *link)
{
    of(link)->greetings = 0;
    count_anew(of(link));
}

static void on_beat(struct hk_link *link)
{
    if (!hk_flights_skip(&of(link)->flights))
        return;
    hk_resp_begin(&link->out, 1);
    hk_resp_text(&link->out, "PING");
    (void)hk_link_put(link);
}

static void on_fini(struct hk_link *link)
{
    struct hk_redis_conn *conn = of(link);
    hk_flights_fini(&conn->flights);
}

const struct hk_link_ops hk_redis_conn_ops = {.kind = "redis",
                                              .out_max = OUT_MAX,
                                              .init = on_init,
                                              .opened = on_opened,
                                              .read = on_read,
                                              .lost = on_lost,
                                              .beat = on_beat,
                                              .fini = on_fini};
