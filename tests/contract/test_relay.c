/* SPDX-License-Identifier: Apache-2.0 */
/* The relay itself, on a real store and with a sink of our own in the place of the null sink: what no destination can
 * provoke from outside. */
#include <stdlib.h>
#include <unistd.h>

#include "../unit/check.h"
#include "base/str.h"
#include "config/diag.h"
#include "relay/relay.h"
#include "sink/null/null.h"
#include "store/admin.h"

static const char config_text[] = "policies:\n"
                                  "  soon: { backoff: { kind: fixed, base: 1ms }, jitter: none }\n"
                                  "destinations:\n"
                                  "  a: { \"null\": {}, policy: soon }\n";

/* Refuses to begin the first sends, and confirms later ones. */
struct fickle {
    struct hk_sink sink;
    struct hk_timer *timer;
    unsigned refuse, busy;
    bool full; /* it says later that it has room */
    hk_sink_done_fn *done;
    void *arg;
};

static unsigned refuse_sends, busy_sends;
static unsigned flushes;
static struct hk_relay *relay;

static struct hk_sink_shown show(const struct hk_sink_result *result)
{
    (void)result;
    return (struct hk_sink_shown){hk_str_of("{}"), hk_str_of("{}")};
}

static void confirm(void *arg)
{
    struct fickle *self = arg;
    if (self->full) {
        self->full = false;
        hk_sink_has_room(&self->sink);
        return;
    }
    struct hk_sink_result result = {
        .facts = {.status = 200, .error = hk_str_of("")}, .show = show, .address = hk_str_of("")};
    self->done(self->arg, &result);
    hk_relay_drain(relay, 5000);
}

static enum hk_code fickle_send(struct hk_sink *sink, const struct hk_delivery *delivery, struct hk_err *err)
{
    struct fickle *self = (struct fickle *)sink;
    if (self->refuse) {
        self->refuse--;
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    if (self->busy) {
        self->busy--;
        self->full = true;
        hk_timer_start(self->timer, 5);
        return hk_err_set(err, HK_BUSY, "no room");
    }
    self->done = delivery->done;
    self->arg = delivery->arg;
    hk_timer_start(self->timer, 0);
    return HK_OK;
}

static void fickle_flush(struct hk_sink *sink)
{
    (void)sink;
    flushes++;
}

static void fickle_abort(struct hk_sink *sink)
{
    (void)sink;
}

static void fickle_close(struct hk_sink *sink)
{
    struct fickle *self = (struct fickle *)sink;
    hk_timer_free(self->timer);
    free(self);
}

/* In the place of the real one. */
enum hk_code hk_null_open(struct hk_loop *loop, uint64_t latency_ms, struct hk_sink **out_sink,
                          struct hk_err *err)
{
    static const struct hk_sink_ops ops = {.name = "fickle",
                                           .send = fickle_send,
                                           .flush = fickle_flush,
                                           .abort = fickle_abort,
                                           .close = fickle_close};
    (void)latency_ms, (void)err;
    struct fickle *self = calloc(1, sizeof *self);
    assert_non_null(self);
    *self = (struct fickle){.sink.ops = &ops, .refuse = refuse_sends, .busy = busy_sends};
    assert_int_equal(hk_timer_new(loop, confirm, self, &self->timer), HK_OK);
    *out_sink = &self->sink;
    return HK_OK;
}

static void stopped(void *arg, enum hk_code rc)
{
    assert_int_equal(rc, HK_OK);
    hk_loop_stop(arg);
}

static void enqueue(const char *url, const char *id)
{
    const struct hk_store_admin_ops *ops = hk_store_admin_by_url(url, NULL);
    struct hk_store_inited done;
    struct hk_admin *admin = NULL;
    const struct hk_str *ids = NULL;
    struct hk_enqueue item = {
        .message = {
            .destination = "a", .event_type = "T", .payload = "{}", .payload_len = 2, .message_id = id}};
    assert_int_equal(hk_store_sqlite.init(url, &(struct hk_store_init){.allow_wal = true}, &done, NULL),
                     HK_OK);
    assert_int_equal(ops->open(url, &(struct hk_store_options){.busy_ms = 0}, &admin, NULL), HK_OK);
    assert_int_equal(ops->enqueue(admin, &item, 1, &ids, NULL), HK_OK);
    ops->close(admin);
}

static struct hk_config *parse_config(void)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(config_text, strlen(config_text), "test", NULL, &diags, &config);
    NOTE_IF(rc != HK_OK, "%s\n", diags.n ? diags.items[0].message : "");
    assert_int_equal(rc, HK_OK);
    hk_diags_fini(&diags);
    return config;
}

static void run_until_confirmed(const char *url, const char *event_log)
{
    struct hk_config *config = parse_config();
    struct hk_loop *loop = NULL;
    struct hk_log log;
    struct hk_err err = {.message = ""};
    hk_log_init(&log, STDERR_FILENO, HK_LOG_ERROR);
    assert_int_equal(hk_loop_new(&loop, NULL), HK_OK);
    struct hk_relay_options options = {.loop = loop,
                                       .config = config,
                                       .url = url,
                                       .name = "r",
                                       .boot = "boot",
                                       .log = &log,
                                       .event_log = event_log,
                                       .stopped = stopped,
                                       .arg = loop};
    assert_int_equal(hk_relay_start(&options, &relay, &err), HK_OK);
    hk_loop_run(loop);
    hk_relay_free(relay);
    hk_loop_free(loop);
    hk_config_free(config);
}

/* Which of these events the log has of the message, in their order, by their first letters. */
static void story_of(const char *event_log, const char *id, char *out, size_t room)
{
    static const char *const events[] = {"\"send\"", "\"fail\"", "\"confirm\"", "\"busy\""};
    char line[4096], of_it[64];
    size_t n = 0;
    FILE *f = fopen(event_log, "r");
    assert_non_null(f);
    (void)snprintf(of_it, sizeof of_it, "\"m\":\"%s\"", id);
    while (fgets(line, sizeof line, f))
        for (size_t i = 0; i < COUNT(events); i++)
            if (strstr(line, of_it) && strstr(line, events[i]) && n + 1 < room)
                out[n++] = events[i][1];
    out[n] = '\0';
    (void)fclose(f);
}

static void run_story(unsigned refuse, unsigned busy, const char *wanted)
{
    char dir[] = "/tmp/hikyaku-test-XXXXXX", url[100], log[100], story[32];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(url, sizeof url, "sqlite:%s/outbox.db", dir);
    (void)snprintf(log, sizeof log, "%s/events", dir);
    refuse_sends = refuse;
    busy_sends = busy;
    flushes = 0;
    enqueue(url, "m1");
    run_until_confirmed(url, log);
    story_of(log, "m1", story, sizeof story);
    assert_string_equal(story, wanted);
    assert_int_equal(flushes, 1); /* after the round in which something was sent */
    static const char *const made[] = {"outbox.db", "outbox.db-wal", "outbox.db-shm", "outbox.db-relay",
                                       "events"};
    for (size_t i = 0; i < COUNT(made); i++) {
        char path[100];
        (void)snprintf(path, sizeof path, "%s/%s", dir, made[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void a_send_that_could_not_begin_is_a_failure_in_the_event_log(void **state)
{
    (void)state;
    run_story(2, 0, "sfsfsc");
}

static void a_sink_without_room_is_asked_again_when_it_has_some(void **state)
{
    (void)state;
    run_story(0, 2, "sbsbsc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_send_that_could_not_begin_is_a_failure_in_the_event_log),
        cmocka_unit_test(a_sink_without_room_is_asked_again_when_it_has_some),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
