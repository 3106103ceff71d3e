/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: greeting, heartbeats, what the broker says of all channels. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "hk_version.h"
#include "sink/amqp/impl.h"

enum {
    CHANNEL_MAX = 2047,
    LEAST_CHANNELS = 16,
    OUT_MAX = HK_AMQP_FRAME_MAX + 64 * 1024 + 256 * 1024 /* one frame, and headers before they are counted */
};

static struct hk_amqp_conn *of(struct hk_link *link)
{
    return (struct hk_amqp_conn *)link;
}

bool hk_amqp_put_method(struct hk_amqp_conn *conn, unsigned channel, enum hk_amqp_id id)
{
    hk_amqp_end(&conn->link.out, hk_amqp_begin_method(&conn->link.out, channel, id));
    return hk_link_put(&conn->link);
}

bool hk_amqp_put_bye(struct hk_amqp_conn *conn, unsigned channel, enum hk_amqp_id id)
{
    struct hk_buf *out = &conn->link.out;
    size_t at = hk_amqp_begin_method(out, channel, id);
    hk_amqp_u16(out, 200);
    hk_amqp_short(out, hk_str_of("bye"));
    hk_amqp_u32(out, 0);
    hk_amqp_end(out, at);
    return hk_link_put(&conn->link);
}

/* ---- channels by number ---- */

static bool grow_channels(struct hk_amqp_conn *conn)
{
    size_t n = conn->n_channels ? 2 * conn->n_channels : LEAST_CHANNELS;
    struct hk_amqp_sink **channels = hk_mem_zalloc(n, sizeof(struct hk_amqp_sink *));
    unsigned char *taken = hk_mem_zalloc(n, 1);
    if (!channels || !taken) {
        hk_mem_free(channels);
        hk_mem_free(taken);
        return false;
    }
    if (conn->n_channels) {
        memcpy(channels, conn->channels, conn->n_channels * sizeof(struct hk_amqp_sink *));
        memcpy(taken, conn->taken, conn->n_channels);
    }
    hk_mem_free(conn->channels);
    hk_mem_free(conn->taken);
    conn->channels = channels;
    conn->taken = taken;
    conn->n_channels = n;
    return true;
}

uint16_t hk_amqp_take_channel(struct hk_amqp_conn *conn, struct hk_amqp_sink *owner)
{
    size_t number = 1;
    while (number < conn->n_channels && conn->taken[number])
        number++;
    if (number > conn->channel_max || (number >= conn->n_channels && !grow_channels(conn)))
        return 0;
    conn->taken[number] = 1;
    conn->channels[number] = owner;
    return (uint16_t)number;
}

void hk_amqp_leave_channel(struct hk_amqp_conn *conn, uint16_t channel, bool now)
{
    conn->channels[channel] = NULL;
    conn->taken[channel] = !now;
}

/* ---- greeting ---- */

static void add_true(struct hk_buf *out, const char *name)
{
    hk_amqp_short(out, hk_str_of(name));
    hk_amqp_u8(out, 't');
    hk_amqp_u8(out, 1);
}

static void add_text(struct hk_buf *out, const char *name, const char *value)
{
    hk_amqp_short(out, hk_str_of(name));
    hk_amqp_u8(out, 'S');
    hk_amqp_long(out, hk_str_of(value));
}

static void add_properties(struct hk_buf *out)
{
    size_t table = hk_amqp_begin_table(out);
    add_text(out, "product", "hikyaku");
    add_text(out, "version", HK_VERSION);
    add_text(out, "connection_name", "hikyaku");
    hk_amqp_short(out, hk_str_of("capabilities"));
    hk_amqp_u8(out, 'F');
    size_t inner = hk_amqp_begin_table(out);
    add_true(out, "publisher_confirms");
    add_true(out, "basic.nack");
    add_true(out, "connection.blocked");
    add_true(out, "authentication_failure_close"); /* else a wrong password is only a connection that ends */
    hk_amqp_end_table(out, inner);
    hk_amqp_end_table(out, table);
}

static bool has_word(struct hk_str list, const char *word)
{
    while (list.ptr)
        if (hk_str_eq(hk_str_cut(&list, ' '), hk_str_of(word)))
            return true;
    return false;
}

static void start(struct hk_amqp_conn *conn, const struct hk_amqp_method *m)
{
    const struct hk_link *link = &conn->link;
    bool external = link->has_cert && !link->servers.user[0] && !link->password;
    const char *mechanism = external ? "EXTERNAL" : "PLAIN";
    if (!has_word(m->mechanisms, mechanism)) {
        hk_link_fail(&conn->link, HK_FAULT_BROKER_AUTH, NULL,
                     external ? "the broker takes no certificate as a log-in (EXTERNAL): give a user"
                              : "the broker takes no user and password (PLAIN)");
        return;
    }
    size_t at = hk_amqp_begin_method(&conn->link.out, 0, HK_AMQP_START_OK);
    add_properties(&conn->link.out);
    hk_amqp_short(&conn->link.out, hk_str_of(mechanism));
    size_t response = hk_amqp_begin_table(&conn->link.out);
    if (!external) {
        (void)hk_buf_addc(&conn->link.out, '\0');
        (void)hk_buf_adds(&conn->link.out, link->servers.user[0] ? link->servers.user : "guest");
        (void)hk_buf_addc(&conn->link.out, '\0');
        (void)hk_buf_adds(&conn->link.out, link->password ? link->password : "guest");
    }
    hk_amqp_end_table(&conn->link.out, response);
    hk_amqp_short(&conn->link.out, hk_str_of("en_US"));
    hk_amqp_end(&conn->link.out, at);
    (void)hk_link_put(&conn->link);
}

static uint64_t less(uint64_t a, uint64_t b) /* 0 = no limit */
{
    return a == 0 ? b : b == 0 ? a : a < b ? a : b;
}

static void tune(struct hk_amqp_conn *conn, const struct hk_amqp_method *m)
{
    conn->frame_max = (uint32_t)less(m->frame_max, HK_AMQP_FRAME_MAX);
    conn->channel_max = (uint16_t)less(m->channel_max, CHANNEL_MAX);
    uint16_t heartbeat = m->heartbeat ? (uint16_t)less(m->heartbeat, conn->link.heartbeat_s) : 0;
    conn->link.beat_ms = (uint64_t)heartbeat * 500;
    if (conn->frame_max < 512) {
        hk_link_fail(&conn->link, HK_FAULT_PROTOCOL, NULL, "the broker allows no frames of a usable size");
        return;
    }
    size_t at = hk_amqp_begin_method(&conn->link.out, 0, HK_AMQP_TUNE_OK);
    hk_amqp_u16(&conn->link.out, conn->channel_max);
    hk_amqp_u32(&conn->link.out, conn->frame_max);
    hk_amqp_u16(&conn->link.out, heartbeat);
    hk_amqp_end(&conn->link.out, at);
    at = hk_amqp_begin_method(&conn->link.out, 0, HK_AMQP_OPEN);
    hk_amqp_short(&conn->link.out, hk_str_of(conn->link.servers.path[0] ? conn->link.servers.path : "/"));
    hk_amqp_u8(&conn->link.out, 0);
    hk_amqp_u8(&conn->link.out, 0);
    hk_amqp_end(&conn->link.out, at);
    (void)hk_link_put(&conn->link);
}

/* ---- methods of the connection ---- */

static void closed(struct hk_amqp_conn *conn, const struct hk_amqp_method *m)
{
    char code[8], text[HK_AMQP_SHORT_MAX + 64];
    (void)snprintf(code, sizeof code, "%u", m->code);
    (void)snprintf(text, sizeof text, "%u %.*s", m->code, (int)m->text.len, m->text.ptr);
    if (hk_amqp_put_method(conn, 0, HK_AMQP_CLOSE_OK)) {
        hk_link_flush(&conn->link);
        hk_link_fail(&conn->link, hk_amqp_fault(m->code), code, text);
    }
}

static void set_blocked(struct hk_amqp_conn *conn, bool blocked, struct hk_str why)
{
    conn->blocked = blocked;
    (void)snprintf(conn->blocked_text, sizeof conn->blocked_text,
                   "the broker takes no messages at the moment: %.*s", (int)why.len, why.ptr);
    for (struct hk_link_user *u = conn->link.users, *next; u && !blocked; u = next) {
        next = u->next;
        hk_broker_has_room(hk_broker_of(u));
    }
}

static void on_connection_method(struct hk_amqp_conn *conn, const struct hk_amqp_method *m)
{
    bool greeting = conn->link.phase == HK_LINK_GREETING;
    if (m->id == HK_AMQP_START && greeting)
        start(conn, m);
    else if (m->id == HK_AMQP_TUNE && greeting)
        tune(conn, m);
    else if (m->id == HK_AMQP_OPEN_OK && greeting && conn->frame_max)
        hk_link_ready(&conn->link);
    else if (m->id == HK_AMQP_CLOSE)
        closed(conn, m);
    else if (m->id == HK_AMQP_BLOCKED)
        set_blocked(conn, true, m->text);
    else if (m->id == HK_AMQP_UNBLOCKED)
        set_blocked(conn, false, hk_str_of(""));
    else if (m->id != HK_AMQP_CLOSE_OK)
        hk_link_fail(&conn->link, HK_FAULT_PROTOCOL, NULL,
                     "the broker says something that is not its turn to say");
}

static void on_channel_frame(struct hk_amqp_conn *conn, const struct hk_amqp_frame *frame,
                             const struct hk_amqp_method *m)
{
    bool known = frame->channel < conn->n_channels && conn->taken[frame->channel];
    struct hk_amqp_sink *owner = known ? conn->channels[frame->channel] : NULL;
    if (owner && frame->type == HK_AMQP_METHOD)
        hk_amqp_channel_method(owner, m);
    else if (owner && frame->type == HK_AMQP_HEADER)
        hk_amqp_channel_header(owner, frame->payload);
    else if (known && !owner && m->id == HK_AMQP_CHANNEL_CLOSE_OK)
        hk_amqp_leave_channel(conn, frame->channel, true);
    else if (known && !owner && m->id == HK_AMQP_CHANNEL_CLOSE) /* both at once */
        (void)hk_amqp_put_method(conn, frame->channel, HK_AMQP_CHANNEL_CLOSE_OK);
}

static void on_frame(struct hk_amqp_conn *conn, const struct hk_amqp_frame *frame)
{
    struct hk_amqp_method m = {.id = 0};
    if (frame->type == HK_AMQP_METHOD && !hk_amqp_read_method(frame->payload, &m))
        hk_link_fail(&conn->link, HK_FAULT_PROTOCOL, NULL, "the broker sends a method that is cut short");
    else if (frame->channel)
        on_channel_frame(conn, frame, &m);
    else if (frame->type == HK_AMQP_METHOD)
        on_connection_method(conn, &m);
}

static enum hk_next on_read(struct hk_link *link, struct hk_str in, size_t *used, const char **why)
{
    struct hk_amqp_frame frame;
    enum hk_amqp_next next = hk_amqp_read_frame(in, &frame, used, why);
    if (next == HK_AMQP_WHOLE)
        on_frame(of(link), &frame);
    return (enum hk_next)next;
}

static void on_opened(struct hk_link *link)
{
    (void)hk_link_write(link, "AMQP\0\0\x09\x01", 8);
}

static void on_lost(struct hk_link *link)
{
    struct hk_amqp_conn *conn = of(link);
    conn->blocked = false;
    conn->frame_max = 0;
    if (conn->n_channels) {
        memset(conn->channels, 0, conn->n_channels * sizeof(struct hk_amqp_sink *));
        memset(conn->taken, 0, conn->n_channels);
    }
}

static void on_beat(struct hk_link *link)
{
    hk_amqp_end(&link->out, hk_amqp_begin(&link->out, HK_AMQP_HEARTBEAT, 0));
    (void)hk_link_put(link);
}

static void on_bye(struct hk_link *link)
{
    (void)hk_amqp_put_bye(of(link), 0, HK_AMQP_CLOSE);
}

static void on_fini(struct hk_link *link)
{
    struct hk_amqp_conn *conn = of(link);
    hk_mem_free(conn->channels);
    hk_mem_free(conn->taken);
}

const struct hk_link_ops hk_amqp_conn_ops = {.kind = "amqp",
                                             .out_max = OUT_MAX,
                                             .opened = on_opened,
                                             .read = on_read,
                                             .lost = on_lost,
                                             .beat = on_beat,
                                             .bye = on_bye,
                                             .fini = on_fini};
