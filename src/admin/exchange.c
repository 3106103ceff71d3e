/* SPDX-License-Identifier: Apache-2.0 */
/* An exchange has two holders once it is out: the connection, on the server's thread, and the service, on any. Whichever lets go last
 * frees it. Neither waits for the other: all that they share is under the hub's lock, which is held for a few instructions. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "admin/exchange.h"
#include "base/mem.h"
#include "base/str.h"
#include "observe/gzip.h"

/* ---- what all servers of a process share ---- */

struct hk_admin_room {
    atomic_size_t refs;    /* whoever made it, and each hub */
    atomic_size_t bodies;  /* bytes */
    atomic_size_t streams; /* that a client listens to */
};

struct hk_admin_room *hk_admin_room_new(void)
{
    struct hk_admin_room *room = hk_mem_zalloc(1, sizeof *room);
    if (room)
        atomic_init(&room->refs, 1);
    return room;
}

void hk_admin_room_unref(struct hk_admin_room *room)
{
    if (room && atomic_fetch_sub(&room->refs, 1) == 1)
        hk_mem_free(room);
}

static bool take_room(atomic_size_t *used, size_t n, size_t max)
{
    size_t now = atomic_load(used);
    while (n <= max - now)
        if (atomic_compare_exchange_weak(used, &now, now + n))
            return true;
    return false;
}

static void leave_room(atomic_size_t *used, size_t n)
{
    (void)atomic_fetch_sub(used, n);
}

/* ---- where threads meet ---- */

/* Waits on a clock that nobody sets. */
static bool init_sync(struct hk_hub *hub)
{
    pthread_condattr_t how;
    if (pthread_condattr_init(&how) != 0)
        return false;
    bool good =
        pthread_condattr_setclock(&how, CLOCK_MONOTONIC) == 0 && pthread_mutex_init(&hub->lock, NULL) == 0;
    if (good && pthread_cond_init(&hub->taken, &how) != 0) {
        (void)pthread_mutex_destroy(&hub->lock);
        good = false;
    }
    (void)pthread_condattr_destroy(&how);
    return good;
}

static void free_hub(struct hk_hub *hub)
{
    (void)pthread_cond_destroy(&hub->taken);
    (void)pthread_mutex_destroy(&hub->lock);
    hk_admin_room_unref(hub->room);
    hk_mem_free(hub);
}

struct hk_hub *hk_hub_new(struct hk_admin_room *room)
{
    struct hk_hub *hub = hk_mem_zalloc(1, sizeof *hub);
    if (!hub || !init_sync(hub)) {
        hk_mem_free(hub);
        return NULL;
    }
    atomic_fetch_add(&room->refs, 1);
    hub->room = room;
    if (pipe(hub->wake) != 0) {
        free_hub(hub);
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(hub->wake[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(hub->wake[i], F_SETFL, O_NONBLOCK);
    }
    hub->refs = 1;
    return hub;
}

void hk_hub_unref(struct hk_hub *hub)
{
    if (!hub)
        return;
    (void)pthread_mutex_lock(&hub->lock);
    bool last = --hub->refs == 0;
    (void)pthread_mutex_unlock(&hub->lock);
    if (!last)
        return;
    (void)close(hub->wake[0]);
    (void)close(hub->wake[1]);
    free_hub(hub);
}

void hk_hub_rouse(struct hk_hub *hub)
{
    ssize_t n = 0;
    do
        n = write(hub->wake[1], "", 1);
    while (n < 0 && errno == EINTR); /* EAGAIN: it is full, so the thread will wake */
}

void hk_hub_awoken(struct hk_hub *hub)
{
    char bytes[256];
    while (read(hub->wake[0], bytes, sizeof bytes) == sizeof bytes)
        continue;
}

struct hk_admin_exchange *hk_hub_take(struct hk_hub *hub)
{
    (void)pthread_mutex_lock(&hub->lock);
    struct hk_admin_exchange *list = hub->ready;
    for (struct hk_admin_exchange *x = list; x; x = x->next) {
        x->listed = false;
        x->taken = x->next; /* `next` changes when it is listed again, which may be at once */
    }
    hub->ready = NULL;
    (void)pthread_mutex_unlock(&hub->lock);
    return list;
}

bool hk_hub_has_room(struct hk_hub *hub, uint64_t bytes)
{
    return bytes <= HK_ADMIN_BODIES_MAX - atomic_load(&hub->room->bodies);
}

/* ---- a request ---- */

static void free_exchange(struct hk_admin_exchange *x)
{
    struct hk_hub *hub = x->hub;
    leave_room(&hub->room->bodies, x->body.len);
    hk_buf_fini(&x->body);
    hk_buf_fini(&x->reply.body);
    hk_buf_fini(&x->out);
    hk_pool_wipe(&x->pool); /* tokens stand in headers */
    hk_mem_free(x);
    hk_hub_unref(hub);
}

struct hk_admin_exchange *hk_exchange_new(struct hk_hub *hub, const char *target)
{
    struct hk_str path, query;
    struct hk_admin_exchange *x = hk_mem_zalloc(1, sizeof *x);
    if (!x)
        return NULL;
    hk_head_split(hk_str_of(target), &path, &query);
    x->ask.path = hk_pool_copy_str(&x->pool, path);
    x->ask.query = query.ptr ? hk_pool_copy_str(&x->pool, query) : NULL;
    if (!x->ask.path || (query.ptr && !x->ask.query)) {
        hk_pool_fini(&x->pool);
        hk_mem_free(x);
        return NULL;
    }
    x->ask.uid = -1;
    x->headers_end = &x->headers;
    x->hub = hub;
    (void)pthread_mutex_lock(&hub->lock);
    hub->refs++;
    (void)pthread_mutex_unlock(&hub->lock);
    return x;
}

bool hk_exchange_add_header(struct hk_admin_exchange *x, const char *name, const char *value)
{
    struct hk_exchange_header *h = hk_pool_alloc(&x->pool, 1, sizeof *h);
    if (!h)
        return false;
    h->name = hk_pool_copy_str(&x->pool, hk_str_of(name));
    h->value = hk_pool_copy_str(&x->pool, hk_str_of(value));
    *x->headers_end = h;
    x->headers_end = &h->next;
    return h->name && h->value;
}

enum hk_code hk_exchange_add_body(struct hk_admin_exchange *x, const char *bytes, size_t len)
{
    struct hk_admin_room *room = x->hub->room;
    if (len > x->body_max - x->body.len)
        return HK_TOOBIG;
    if (!take_room(&room->bodies, len, HK_ADMIN_BODIES_MAX))
        return HK_BUSY;
    enum hk_code rc = hk_buf_add(&x->body, bytes, len);
    if (rc != HK_OK)
        leave_room(&room->bodies, len);
    return rc;
}

const struct hk_admin_ask *hk_admin_exchange_ask(const struct hk_admin_exchange *x)
{
    return &x->ask;
}

const char *hk_admin_exchange_header(const struct hk_admin_exchange *x, const char *name)
{
    for (const struct hk_exchange_header *h = x->headers; h; h = h->next) {
        if (hk_str_eqi(hk_str_of(h->name), hk_str_of(name)))
            return h->value;
    }
    return NULL;
}

const char *hk_exchange_join(struct hk_admin_exchange *x, const char *name)
{
    size_t len = 0;
    for (const struct hk_exchange_header *h = x->headers; h; h = h->next)
        len += hk_str_eqi(hk_str_of(h->name), hk_str_of(name)) ? strlen(h->value) + 1 : 0;
    char *out = len > 0 ? hk_pool_alloc(&x->pool, 1, len) : NULL, *end = out;
    for (const struct hk_exchange_header *h = x->headers; out && h; h = h->next) {
        if (!hk_str_eqi(hk_str_of(h->name), hk_str_of(name)))
            continue;
        size_t n = strlen(h->value);
        memcpy(end, h->value, n);
        end[n] = ',';
        end += n + 1;
    }
    if (out)
        end[-1] = '\0';
    return out;
}

/* ---- there and back ---- */

void hk_exchange_hand_out(struct hk_admin_exchange *x)
{
    x->ask.body = (struct hk_str){hk_buf_cstr(&x->body), x->body.len};
    x->state = HK_EXCHANGE_OUT; /* nobody else knows it yet */
}

enum hk_exchange_state hk_exchange_state(struct hk_admin_exchange *x)
{
    (void)pthread_mutex_lock(&x->hub->lock);
    enum hk_exchange_state state = x->state;
    (void)pthread_mutex_unlock(&x->hub->lock);
    return state;
}

/* With the lock held. */
static void list_ready(struct hk_admin_exchange *x)
{
    if (x->left || x->listed)
        return;
    x->listed = true;
    x->next = x->hub->ready;
    x->hub->ready = x;
    hk_hub_rouse(x->hub);
}

static bool is_with_service(const struct hk_admin_exchange *x)
{
    return x->state == HK_EXCHANGE_OUT || x->state == HK_EXCHANGE_STREAM;
}

void hk_exchange_leave(struct hk_admin_exchange *x)
{
    struct hk_hub *hub = x->hub;
    (void)pthread_mutex_lock(&hub->lock);
    x->left = true;
    (void)pthread_cond_broadcast(&hub->taken);
    leave_room(&hub->room->streams, x->streams);
    bool last = !is_with_service(x);
    struct hk_admin_exchange **at = &hub->ready;
    while (x->listed && *at != x)
        at = &(*at)->next;
    if (x->listed)
        *at = x->next;
    (void)pthread_mutex_unlock(&hub->lock);
    if (last)
        free_exchange(x);
}

/* In place of the body when the client takes it and it is shorter. */
static bool compress_reply(struct hk_admin_exchange *x, struct hk_admin_reply *reply)
{
    struct hk_buf packed;
    if (!x->takes_gzip || reply->body.len <= HK_ADMIN_GZIP_MIN)
        return false;
    hk_buf_init(&packed, reply->body.len);
    if (hk_gzip(hk_buf_str(&reply->body), &packed) != HK_OK) {
        hk_buf_fini(&packed);
        return false;
    }
    hk_buf_fini(&reply->body);
    reply->body = packed;
    return true;
}

void hk_admin_exchange_reply(struct hk_admin_exchange *x, struct hk_admin_reply *reply)
{
    struct hk_hub *hub = x->hub;
    if (hk_buf_status(&reply->body) != HK_OK)
        hk_admin_problem(reply, 503, "out of memory for the answer");
    bool gzipped = compress_reply(x, reply);
    (void)pthread_mutex_lock(&hub->lock);
    x->reply = *reply;
    x->gzipped = gzipped;
    x->state = HK_EXCHANGE_BACK;
    bool left = x->left;
    list_ready(x);
    (void)pthread_mutex_unlock(&hub->lock); /* from here on the exchange may be gone, and the hub with it */
    hk_buf_init(&reply->body, HK_ADMIN_REPLY_MAX);
    if (left)
        free_exchange(x);
}

/* ---- streams ---- */

/* A stream is its exchange: the same two holders, the same end. */
static struct hk_admin_exchange *exchange_of(struct hk_admin_stream *stream)
{
    return (struct hk_admin_exchange *)(void *)stream;
}

enum hk_code hk_admin_exchange_stream(struct hk_admin_exchange *x, const struct hk_admin_reply *head,
                                      struct hk_admin_stream **out_stream)
{
    struct hk_hub *hub = x->hub;
    (void)pthread_mutex_lock(&hub->lock);
    bool room = take_room(&hub->room->streams, 1, HK_ADMIN_STREAMS);
    if (room) {
        x->reply = *head;
        hk_buf_init(&x->reply.body, 0);
        hk_buf_init(&x->out, HK_ADMIN_STREAM_MAX);
        x->streams = !x->left;
        leave_room(&hub->room->streams, x->left);
        x->state = HK_EXCHANGE_STREAM;
        list_ready(x);
    }
    (void)pthread_mutex_unlock(&hub->lock);
    if (!room)
        return HK_BUSY;
    *out_stream = (struct hk_admin_stream *)(void *)x;
    return HK_OK;
}

/* With the lock held. What has gone makes room when there is none. */
static enum hk_code add_out(struct hk_admin_exchange *x, struct hk_str bytes)
{
    if (x->left || x->broken || x->finished)
        return HK_UNAVAILABLE;
    size_t waiting = x->out.len - x->out_gone;
    if (x->out_gone > 0 && bytes.len > x->out.max - x->out.len) {
        memmove(x->out.data, x->out.data + x->out_gone, waiting);
        x->out.len = waiting;
        x->out_gone = 0;
    }
    if (hk_buf_add(&x->out, bytes.ptr, bytes.len) == HK_OK)
        return HK_OK;
    x->broken = x->overrun = true; /* it has not read for too long, or there is no memory for it */
    return HK_UNAVAILABLE;
}

enum hk_code hk_admin_stream_push(struct hk_admin_stream *stream, struct hk_str bytes)
{
    struct hk_admin_exchange *x = exchange_of(stream);
    (void)pthread_mutex_lock(&x->hub->lock);
    enum hk_code rc = add_out(x, bytes);
    if (bytes.len > 0)
        list_ready(x);
    (void)pthread_mutex_unlock(&x->hub->lock);
    return rc;
}

bool hk_admin_stream_is_cut(struct hk_admin_stream *stream)
{
    struct hk_admin_exchange *x = exchange_of(stream);
    (void)pthread_mutex_lock(&x->hub->lock);
    bool cut = x->overrun;
    (void)pthread_mutex_unlock(&x->hub->lock);
    return cut;
}

/* With the lock held: until the client has read so much that `len` more bytes may wait for it. */
static enum hk_code wait_for_room(struct hk_admin_exchange *x, size_t len)
{
    struct timespec until;
    int rc = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += HK_ADMIN_DOWNLOAD_MS / 1000;
    while (!x->left && !x->broken && !x->finished && x->out.max - (x->out.len - x->out_gone) < len) {
        if (rc == ETIMEDOUT) {
            x->broken = true;
            list_ready(x);
            return HK_TIMEOUT;
        }
        rc = pthread_cond_timedwait(&x->hub->taken, &x->hub->lock, &until);
    }
    return x->left || x->broken || x->finished ? HK_UNAVAILABLE : HK_OK;
}

enum hk_code hk_admin_stream_write(struct hk_admin_stream *stream, struct hk_str bytes)
{
    struct hk_admin_exchange *x = exchange_of(stream);
    enum hk_code rc = HK_OK;
    (void)pthread_mutex_lock(&x->hub->lock);
    while (rc == HK_OK && bytes.len > 0) {
        size_t len = bytes.len < HK_ADMIN_DOWNLOAD_PIECE ? bytes.len : HK_ADMIN_DOWNLOAD_PIECE;
        rc = wait_for_room(x, len);
        if (rc == HK_OK)
            rc = add_out(x, (struct hk_str){bytes.ptr, len});
        list_ready(x);
        bytes = (struct hk_str){bytes.ptr + len, bytes.len - len};
    }
    (void)pthread_mutex_unlock(&x->hub->lock);
    return rc;
}

static void end_stream(struct hk_admin_stream *stream, bool well)
{
    struct hk_admin_exchange *x = exchange_of(stream);
    (void)pthread_mutex_lock(&x->hub->lock);
    x->finished = well;
    x->broken = x->broken || !well;
    x->state = HK_EXCHANGE_BACK;
    bool left = x->left;
    list_ready(x);
    (void)pthread_mutex_unlock(&x->hub->lock);
    if (left)
        free_exchange(x);
}

void hk_admin_stream_end(struct hk_admin_stream *stream)
{
    end_stream(stream, true);
}

void hk_admin_stream_fail(struct hk_admin_stream *stream)
{
    end_stream(stream, false);
}

enum hk_stream_read hk_stream_read(struct hk_admin_exchange *x, char *out, size_t max, size_t *out_len)
{
    enum hk_stream_read what = HK_STREAM_SOME;
    (void)pthread_mutex_lock(&x->hub->lock);
    size_t waiting = x->out.len - x->out_gone, n = waiting < max ? waiting : max;
    if (x->broken) {
        what = HK_STREAM_BROKEN;
    } else if (n == 0) {
        what = x->finished ? HK_STREAM_END : HK_STREAM_NONE;
    } else {
        memcpy(out, x->out.data + x->out_gone, n);
        x->out_gone += n;
        if (x->out_gone == x->out.len) {
            hk_buf_reset(&x->out);
            x->out_gone = 0;
        }
        (void)pthread_cond_broadcast(&x->hub->taken);
    }
    (void)pthread_mutex_unlock(&x->hub->lock);
    *out_len = n;
    return what;
}

void hk_stream_beat(struct hk_admin_exchange *x)
{
    static const char comment[] = ":\n\n";
    (void)pthread_mutex_lock(&x->hub->lock);
    if (!x->reply.download)
        (void)add_out(x, (struct hk_str){comment, sizeof comment - 1});
    (void)pthread_mutex_unlock(&x->hub->lock);
}

bool hk_stream_is_broken(struct hk_admin_exchange *x)
{
    (void)pthread_mutex_lock(&x->hub->lock);
    bool broken = x->broken;
    (void)pthread_mutex_unlock(&x->hub->lock);
    return broken;
}

void hk_stream_break(struct hk_admin_exchange *x)
{
    (void)pthread_mutex_lock(&x->hub->lock);
    x->broken = true;
    (void)pthread_cond_broadcast(&x->hub->taken);
    (void)pthread_mutex_unlock(&x->hub->lock);
}

void hk_stream_finish(struct hk_admin_exchange *x)
{
    (void)pthread_mutex_lock(&x->hub->lock);
    if (x->reply.download && x->state == HK_EXCHANGE_STREAM)
        x->broken = true;
    else
        x->finished = true;
    (void)pthread_cond_broadcast(&x->hub->taken);
    (void)pthread_mutex_unlock(&x->hub->lock);
}
