/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/check.h"
#include "base/str.h"
#include "fake_amqp.h"
#include "sink/amqp/wire.h"

enum {
    BODY_MAX = 1 << 20
};

struct session {
    struct amqp_script *script;
    int fd;
    struct hk_buf out, body;
    uint64_t tag, unconfirmed, size;
    struct hk_str header;
    char header_bytes[4096];
    bool open, over; /* confirms go on: the channel has not been closed */
};

static bool flush(struct session *s)
{
    assert_int_equal(hk_buf_status(&s->out), HK_OK);
    bool ok = fake_write(s->fd, s->out.data, s->out.len);
    hk_buf_reset(&s->out);
    return ok;
}

static void simple(struct session *s, unsigned channel, enum hk_amqp_id id)
{
    size_t at = hk_amqp_begin_method(&s->out, channel, id);
    if (id == HK_AMQP_CHANNEL_OPEN_OK)
        hk_amqp_u32(&s->out, 0);
    hk_amqp_end(&s->out, at);
}

static void send_close(struct session *s, unsigned channel, unsigned code, const char *text)
{
    size_t at = hk_amqp_begin_method(&s->out, channel, channel ? HK_AMQP_CHANNEL_CLOSE : HK_AMQP_CLOSE);
    hk_amqp_u16(&s->out, code);
    hk_amqp_short(&s->out, hk_str_of(text));
    hk_amqp_u32(&s->out, HK_AMQP_PUBLISH);
    hk_amqp_end(&s->out, at);
    s->open = false;
}

static void confirm(struct session *s, enum hk_amqp_id id, uint64_t tag, bool multiple)
{
    size_t at = hk_amqp_begin_method(&s->out, 1, id);
    hk_amqp_u64(&s->out, tag);
    hk_amqp_u8(&s->out, multiple);
    hk_amqp_end(&s->out, at);
}

static void send_start(struct session *s)
{
    size_t at = hk_amqp_begin_method(&s->out, 0, HK_AMQP_START);
    hk_amqp_u8(&s->out, 0);
    hk_amqp_u8(&s->out, 9);
    hk_amqp_u32(&s->out, 0);
    hk_amqp_long(&s->out, hk_str_of(s->script->no_plain ? "EXTERNAL" : "AMQPLAIN PLAIN"));
    hk_amqp_long(&s->out, hk_str_of("en_US"));
    hk_amqp_end(&s->out, at);
}

static void send_tune(struct session *s)
{
    size_t at = hk_amqp_begin_method(&s->out, 0, HK_AMQP_TUNE);
    hk_amqp_u16(&s->out, 2047);
    hk_amqp_u32(&s->out, s->script->frame_max ? s->script->frame_max : 131072);
    hk_amqp_u16(&s->out, 60);
    hk_amqp_end(&s->out, at);
}

static void send_return(struct session *s)
{
    size_t at = hk_amqp_begin_method(&s->out, 1, HK_AMQP_RETURN);
    hk_amqp_u16(&s->out, 312);
    hk_amqp_short(&s->out, hk_str_of("NO_ROUTE"));
    hk_amqp_short(&s->out, hk_str_of("events"));
    hk_amqp_short(&s->out, hk_str_of("key"));
    hk_amqp_end(&s->out, at);
    at = hk_amqp_begin(&s->out, HK_AMQP_HEADER, 1);
    (void)hk_buf_add(&s->out, s->header.ptr, s->header.len);
    hk_amqp_end(&s->out, at);
    at = hk_amqp_begin(&s->out, HK_AMQP_BODY, 1);
    (void)hk_buf_add(&s->out, s->body.data, s->body.len);
    hk_amqp_end(&s->out, at);
}

static void block(struct session *s)
{
    const struct timespec a_while = {.tv_nsec = 200000000};
    size_t at = hk_amqp_begin_method(&s->out, 0, HK_AMQP_BLOCKED);
    hk_amqp_short(&s->out, hk_str_of("low on memory"));
    hk_amqp_end(&s->out, at);
    (void)flush(s);
    (void)nanosleep(&a_while, NULL);
    simple(s, 0, HK_AMQP_UNBLOCKED);
}

static bool every(unsigned n, uint64_t tag)
{
    return n && tag % n == 0;
}

static void published(struct session *s)
{
    struct amqp_script *script = s->script;
    unsigned n = ++script->published;
    uint64_t tag = ++s->tag;
    if (script->block && n == 1)
        block(s);
    if (n == script->cut_at) {
        s->over = true;
        return;
    }
    if (n == script->close_at) {
        send_close(s, 0, 320, "CONNECTION_FORCED - the operator says so");
        return;
    }
    if (script->poison && hk_str_eq(hk_buf_str(&s->body), hk_str_of(script->poison))) {
        send_close(s, 1, script->poison_code, "the broker's words about the poison");
        return;
    }
    if (script->silent_from && n >= script->silent_from)
        return;
    if (every(script->return_every, tag))
        send_return(s);
    if (every(script->nack_every, tag))
        confirm(s, HK_AMQP_NACK, tag, false);
    else if (!script->confirm_after)
        confirm(s, HK_AMQP_ACK, tag, false);
    else if (++s->unconfirmed == script->confirm_after) {
        confirm(s, HK_AMQP_ACK, tag, true);
        s->unconfirmed = 0;
    }
}

static void on_method(struct session *s, uint32_t id, unsigned channel)
{
    const struct amqp_script *script = s->script;
    if (id == HK_AMQP_START_OK)
        send_tune(s);
    else if (id == HK_AMQP_OPEN && script->login_code)
        send_close(s, 0, script->login_code, "ACCESS_REFUSED - the broker's words");
    else if (id == HK_AMQP_OPEN)
        simple(s, 0, HK_AMQP_OPEN_OK);
    else if (id == HK_AMQP_CHANNEL_OPEN) {
        simple(s, channel, HK_AMQP_CHANNEL_OPEN_OK);
        s->script->channels++;
        s->open = true;
        s->tag = s->unconfirmed = 0;
    } else if (id == HK_AMQP_SELECT)
        simple(s, channel, HK_AMQP_SELECT_OK);
    else if (id == HK_AMQP_DECLARE && script->declare_code)
        send_close(s, channel, script->declare_code, "NOT_FOUND - no exchange 'events' in vhost '/'");
    else if (id == HK_AMQP_DECLARE)
        simple(s, channel, HK_AMQP_DECLARE_OK);
    else if (id == HK_AMQP_CHANNEL_CLOSE)
        simple(s, channel, HK_AMQP_CHANNEL_CLOSE_OK);
    else if (id == HK_AMQP_CLOSE) {
        simple(s, 0, HK_AMQP_CLOSE_OK);
        s->over = true;
    } else if (id == HK_AMQP_CLOSE_OK)
        s->over = true;
}

static void on_frame(struct session *s, const struct hk_amqp_frame *f)
{
    struct hk_amqp_method m;
    if (f->type == HK_AMQP_HEARTBEAT)
        s->script->heartbeats++;
    if (f->type == HK_AMQP_METHOD) {
        assert_true(hk_amqp_read_method(f->payload, &m));
        on_method(s, m.id, f->channel);
    }
    if (f->type == HK_AMQP_HEADER) {
        assert_in_range(f->payload.len, 14, sizeof s->header_bytes);
        memcpy(s->header_bytes, f->payload.ptr, f->payload.len);
        s->header = (struct hk_str){s->header_bytes, f->payload.len};
        s->size = 0;
        for (size_t i = 4; i < 12; i++)
            s->size = s->size << 8 | (unsigned char)f->payload.ptr[i];
        hk_buf_reset(&s->body);
    }
    if (f->type == HK_AMQP_BODY)
        assert_int_equal(hk_buf_add(&s->body, f->payload.ptr, f->payload.len), HK_OK);
    bool whole = f->type != HK_AMQP_METHOD && f->type != HK_AMQP_HEARTBEAT && s->body.len == s->size;
    if (whole && s->open) /* what comes after a close is dropped */
        published(s);
}

static bool read_frame(struct session *s, char *room)
{
    struct hk_amqp_frame frame;
    const char *why = "";
    size_t used = 0;
    if (!fake_read(s->fd, room, 7))
        return false;
    size_t len = (size_t)(unsigned char)room[3] << 24 | (size_t)(unsigned char)room[4] << 16 |
                 (size_t)(unsigned char)room[5] << 8 | (unsigned char)room[6];
    assert_true(len <= (s->script->frame_max ? s->script->frame_max : HK_AMQP_FRAME_MAX) - 8);
    if (!fake_read(s->fd, room + 7, len + 1))
        return false;
    assert_int_equal(hk_amqp_read_frame((struct hk_str){room, len + 8}, &frame, &used, &why), HK_AMQP_WHOLE);
    on_frame(s, &frame);
    return true;
}

void fake_amqp_serve(int fd, void *arg)
{
    struct session s = {.script = arg, .fd = fd};
    char *room = malloc(HK_AMQP_FRAME_MAX + 8);
    assert_non_null(room);
    hk_buf_init(&s.out, BODY_MAX);
    hk_buf_init(&s.body, BODY_MAX);
    if (fake_read(fd, room, 8)) {
        assert_memory_equal(room, "AMQP\0\0\x09\x01", 8);
        if (s.script->garbage)
            (void)fake_write(fd, s.script->garbage, strlen(s.script->garbage));
        else if (!s.script->mute)
            send_start(&s);
        while (flush(&s) && !s.over && read_frame(&s, room))
            ;
    }
    hk_buf_fini(&s.out);
    hk_buf_fini(&s.body);
    free(room);
}
