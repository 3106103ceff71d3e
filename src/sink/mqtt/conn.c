/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: log-in, acknowledgements by packet identifier, and what the broker allows at once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/mqtt/impl.h"

enum {
    OUT_MAX = 2 * 1024 * 1024,
    ADD_USER = 0x80,
    ADD_PASSWORD = 0x40,
    CLEAN_START = 0x02,
    NOBODY = 0x10,
    REFUSED = 0x80 /* and all codes above */
};

static struct hk_mqtt_conn *of(struct hk_link *link)
{
    return (struct hk_mqtt_conn *)link;
}

enum hk_fault hk_mqtt_fault(uint8_t code)
{
    static const struct {
        uint8_t code;
        enum hk_fault fault;
    } rows[] = {{0x88, HK_FAULT_BROKER_TRANSIENT}, {0x89, HK_FAULT_BROKER_TRANSIENT},
                {0x8b, HK_FAULT_BROKER_TRANSIENT}, {0x8d, HK_FAULT_BROKER_TRANSIENT},
                {0x8e, HK_FAULT_BROKER_UNKNOWN},   {0x91, HK_FAULT_BROKER_TRANSIENT},
                {0x98, HK_FAULT_BROKER_TRANSIENT}, {0x9c, HK_FAULT_BROKER_TRANSIENT},
                {0x9d, HK_FAULT_BROKER_TRANSIENT}, {0xa0, HK_FAULT_BROKER_TRANSIENT},
                {0x93, HK_FAULT_BROKER_THROTTLED}, {0x96, HK_FAULT_BROKER_THROTTLED},
                {0x97, HK_FAULT_BROKER_THROTTLED}, {0x9f, HK_FAULT_BROKER_THROTTLED},
                {0x85, HK_FAULT_BROKER_AUTH},      {0x86, HK_FAULT_BROKER_AUTH},
                {0x87, HK_FAULT_BROKER_AUTH},      {0x8a, HK_FAULT_BROKER_AUTH},
                {0x10, HK_FAULT_BROKER_REFUSED},   {0x90, HK_FAULT_BROKER_REFUSED},
                {0x95, HK_FAULT_BROKER_REFUSED},   {0x99, HK_FAULT_BROKER_REFUSED},
                {0x9a, HK_FAULT_BROKER_REFUSED},   {0x9b, HK_FAULT_BROKER_REFUSED},
                {0x81, HK_FAULT_PROTOCOL},         {0x82, HK_FAULT_PROTOCOL},
                {0x84, HK_FAULT_PROTOCOL}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return rows[i].fault;
    return HK_FAULT_BROKER_UNKNOWN;
}

/* ---- packet identifiers ---- */

bool hk_mqtt_has_slot(const struct hk_mqtt_conn *conn)
{
    return conn->n_used < conn->receive_maximum;
}

uint16_t hk_mqtt_take_slot(struct hk_mqtt_conn *conn, struct hk_flight *f)
{
    do
        conn->next = conn->next % HK_MQTT_IDS + 1;
    while (conn->slots[conn->next].phase != HK_MQTT_FREE);
    conn->slots[conn->next] = (struct hk_mqtt_slot){.phase = HK_MQTT_SENT, .flight = f};
    conn->n_used++;
    f->number = conn->next;
    return (uint16_t)conn->next;
}

static void free_slot(struct hk_mqtt_conn *conn, struct hk_mqtt_slot *slot)
{
    bool was_full = !hk_mqtt_has_slot(conn);
    *slot = (struct hk_mqtt_slot){.phase = HK_MQTT_FREE};
    conn->n_used--;
    for (struct hk_link_user *u = conn->link.users, *next; was_full && u && conn->link.phase == HK_LINK_READY;
         u = next) {
        next = u->next;
        hk_broker_pump(hk_broker_of(u)); /* what the broker allows at once is for all of them */
    }
}

/* ---- log-in ---- */

static void on_opened(struct hk_link *link)
{
    struct hk_mqtt_conn *conn = of(link);
    char id[32];
    struct hk_buf body;
    bool user = link->servers.user[0] != '\0';
    hk_buf_init(&body, (size_t)16 * 1024);
    (void)snprintf(id, sizeof id, "hikyaku-%012" PRIx64, hk_rng_next(&link->rng) & UINT64_C(0xffffffffffff));
    hk_mqtt_text(&body, hk_str_of("MQTT"));
    hk_mqtt_u8(&body, 5);
    hk_mqtt_u8(&body, CLEAN_START | (user ? ADD_USER : 0u) | (link->password ? ADD_PASSWORD : 0u));
    hk_mqtt_u16(&body, link->heartbeat_s < UINT16_MAX ? link->heartbeat_s : UINT16_MAX);
    hk_mqtt_size(&body, 0); /* no session to be kept, and no bounds of ours */
    hk_mqtt_text(&body, hk_str_of(conn->client_id ? conn->client_id : id));
    if (user)
        hk_mqtt_text(&body, hk_str_of(link->servers.user));
    if (link->password)
        hk_mqtt_text(&body, hk_str_of(link->password));
    hk_mqtt_u8(&conn->link.out, HK_MQTT_CONNECT << 4);
    hk_mqtt_size(&conn->link.out, body.len);
    (void)hk_buf_add(&conn->link.out, body.data, body.len);
    hk_buf_inherit(&conn->link.out, &body);
    hk_mem_wipe(body.data, body.len);
    hk_buf_fini(&body);
    (void)hk_link_put(link);
}

static void name_reason(const struct hk_mqtt_packet *p, char code[32], char words[512])
{
    const char *name = hk_mqtt_reason(p->code);
    (void)snprintf(code, 32, "0x%02x", p->code);
    (void)snprintf(words, 512, "%s%s%.*s", name, name[0] && p->reason.len ? ": " : "",
                   (int)(p->reason.len < 400 ? p->reason.len : 400), p->reason.ptr);
}

static void fail_link(struct hk_mqtt_conn *conn, const struct hk_mqtt_packet *p)
{
    char code[32], words[512], text[560];
    name_reason(p, code, words);
    (void)snprintf(text, sizeof text, "%s %s", code, words);
    hk_link_fail(&conn->link, hk_mqtt_fault(p->code), code, text);
}

static void on_connack(struct hk_mqtt_conn *conn, const struct hk_mqtt_packet *p)
{
    if (p->code >= REFUSED) {
        fail_link(conn, p);
        return;
    }
    conn->receive_maximum = p->receive_maximum < HK_MQTT_IDS ? p->receive_maximum : HK_MQTT_IDS;
    conn->maximum_packet = p->maximum_packet;
    conn->maximum_qos = p->maximum_qos;
    conn->retains = p->retains;
    conn->link.beat_ms = (uint64_t)(p->keep_alive ? p->keep_alive : conn->link.heartbeat_s) * 500;
    hk_link_ready(&conn->link);
}

/* ---- acknowledgements ---- */

static void settle(struct hk_mqtt_conn *conn, struct hk_flight *f, const struct hk_mqtt_packet *p)
{
    const struct hk_mqtt_sink *m = f ? (struct hk_mqtt_sink *)f->sink : NULL;
    char code[32], words[512];
    if (!f)
        return;
    bool unheard = p->code == NOBODY && m->require_subscriber;
    if (p->code < REFUSED && !unheard) {
        hk_flight_confirm(f, -1, (int64_t)++conn->sequence);
        return;
    }
    enum hk_fault fault = hk_mqtt_fault(p->code);
    name_reason(p, code, words);
    hk_flight_fail(f, fault, fault == HK_FAULT_BROKER_UNKNOWN || fault == HK_FAULT_PROTOCOL, code, words,
                   NULL);
}

static void release(struct hk_mqtt_conn *conn, struct hk_mqtt_slot *slot, const struct hk_mqtt_packet *p)
{
    slot->phase = HK_MQTT_RELEASED;
    if (slot->flight)
        slot->flight->returned = p->code == NOBODY;
    hk_mqtt_u8(&conn->link.out, HK_MQTT_PUBREL << 4 | 2);
    hk_mqtt_size(&conn->link.out, 2);
    hk_mqtt_u16(&conn->link.out, p->id);
    (void)hk_link_put(&conn->link);
}

static void on_ack(struct hk_mqtt_conn *conn, const struct hk_mqtt_packet *p)
{
    struct hk_mqtt_slot *slot = p->id >= 1 && p->id <= HK_MQTT_IDS ? &conn->slots[p->id] : NULL;
    enum hk_mqtt_slot_phase expected = p->type == HK_MQTT_PUBCOMP ? HK_MQTT_RELEASED : HK_MQTT_SENT;
    if (!slot || slot->phase != expected) {
        hk_link_fail(&conn->link, HK_FAULT_PROTOCOL, NULL, "the broker acknowledges what was never sent");
        return;
    }
    if (p->type == HK_MQTT_PUBREC && p->code < REFUSED) {
        release(conn, slot, p);
        return;
    }
    struct hk_mqtt_packet last = *p;
    if (p->type == HK_MQTT_PUBCOMP && slot->flight && slot->flight->returned && !p->code)
        last.code = NOBODY; /* PUBREC has said so */
    settle(conn, slot->flight, &last);
    free_slot(conn, slot);
}

static void on_packet(struct hk_mqtt_conn *conn, const struct hk_mqtt_packet *p)
{
    bool greeting = conn->link.phase == HK_LINK_GREETING;
    if (p->type == HK_MQTT_DISCONNECT)
        fail_link(conn, p);
    else if (greeting != (p->type == HK_MQTT_CONNACK))
        hk_link_fail(&conn->link, HK_FAULT_PROTOCOL, NULL,
                     "the broker says something that is not its turn to say");
    else if (greeting)
        on_connack(conn, p);
    else if (p->type != HK_MQTT_PINGRESP)
        on_ack(conn, p);
}

static enum hk_next on_read(struct hk_link *link, struct hk_str in, size_t *used, const char **why)
{
    struct hk_mqtt_packet packet;
    enum hk_mqtt_next next = hk_mqtt_read(in, &packet, used, why);
    if (next == HK_MQTT_WHOLE)
        on_packet(of(link), &packet);
    return (enum hk_next)next;
}

/* ---- the link ---- */

static enum hk_code on_init(struct hk_link *link, const void *arg, struct hk_err *err)
{
    const struct hk_mqtt_options *o = arg;
    char **id = &of(link)->client_id;
    *id = o->client_id ? hk_mem_strdup(o->client_id) : NULL;
    return o->client_id && !*id ? hk_err_set(err, HK_NOMEM, "out of memory") : HK_OK;
}

static void on_lost(struct hk_link *link)
{
    struct hk_mqtt_conn *conn = of(link);
    memset(conn->slots, 0, sizeof conn->slots);
    conn->n_used = conn->receive_maximum = 0;
}

/* A packet without a body. */
static void put_empty(struct hk_link *link, enum hk_mqtt_type type)
{
    hk_mqtt_u8(&link->out, (unsigned)type << 4);
    hk_mqtt_size(&link->out, 0);
    (void)hk_link_put(link);
}

static void on_beat(struct hk_link *link)
{
    put_empty(link, HK_MQTT_PINGREQ);
}

static void on_bye(struct hk_link *link)
{
    put_empty(link, HK_MQTT_DISCONNECT);
}

static void on_fini(struct hk_link *link)
{
    hk_mem_free(of(link)->client_id);
}

const struct hk_link_ops hk_mqtt_conn_ops = {.kind = "mqtt",
                                             .out_max = OUT_MAX,
                                             .init = on_init,
                                             .opened = on_opened,
                                             .read = on_read,
                                             .lost = on_lost,
                                             .beat = on_beat,
                                             .bye = on_bye,
                                             .fini = on_fini};
