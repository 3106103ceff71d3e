/* SPDX-License-Identifier: Apache-2.0 */
/* hk_channel_send as a program, for tests/e2e/channels.py: {"channel": {…}, "notice": {…}, "id": "…"} on standard input, what
 * became of it as one line of JSON. With an argument nothing is sent: `words` shows title and text, `check` asks whether the
 * channel can be used at all. `threads` sends from many at once. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <jansson.h>

#include "alert/notice.h"
#include "base/json.h"
#include "base/str.h"

#define LIST_MAX 300

static const char *lists[3][LIST_MAX];
static struct hk_cidr ranges[LIST_MAX];

static void die(const char *why)
{
    (void)fprintf(stderr, "channel: %s\n", why);
    exit(2);
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static struct hk_str slice(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return (struct hk_str){json_string_value(value), json_string_length(value)};
}

static size_t list(const json_t *object, const char *key, const char **out)
{
    const json_t *array = json_object_get(object, key);
    size_t n = json_array_size(array);
    if (n > LIST_MAX)
        die("a list is too long");
    for (size_t i = 0; i < n; i++)
        out[i] = json_string_value(json_array_get(array, i));
    return n;
}

static size_t read_ranges(const json_t *from)
{
    size_t n = list(from, "allow", lists[1]);
    for (size_t i = 0; i < n; i++)
        if (hk_cidr_parse(hk_str_of(lists[1][i]), &ranges[i], NULL) != HK_OK)
            die("a range");
    return n;
}

/* The number of the value whose name it is. */
static unsigned choice(const json_t *object, const char *key, const char *names)
{
    const char *value = text(object, key);
    struct hk_str rest = hk_str_of(names);
    unsigned n = 0;
    if (!value)
        return 0;
    for (; rest.ptr; n++)
        if (hk_str_eq(hk_str_cut(&rest, ' '), hk_str_of(value)))
            return n;
    die(key);
    return 0;
}

static void read_channel(const json_t *from, struct hk_channel *c)
{
    *c = (struct hk_channel){
        .name = text(from, "name"),
        .kind = (enum hk_channel_kind)choice(from, "kind", "slack email webhook pagerduty exec"),
        .language = (enum hk_alert_language)choice(from, "language", "en ja"),
        .timeout_ms = (uint64_t)json_integer_value(json_object_get(from, "timeout_ms")),
        .url = text(from, "url"),
        .secret = text(from, "secret"),
        .user = text(from, "user"),
        .password = text(from, "password"),
        .from = text(from, "from"),
        .starttls_required = json_is_true(json_object_get(from, "starttls_required")),
        .ca_file = text(from, "ca_file"),
        .to = lists[0],
        .n_to = list(from, "to", lists[0]),
        .allow = ranges,
        .n_allow = read_ranges(from),
        .argv = lists[2],
        .n_argv = list(from, "argv", lists[2]),
    };
}

static void read_notice(const json_t *from, struct hk_notice *n)
{
    *n = (struct hk_notice){
        .kind = (enum hk_notice_kind)choice(from, "kind", "firing update resolved test"),
        .severity = (enum hk_severity_level)choice(from, "severity", "info warning critical"),
        .rule = text(from, "rule"),
        .fingerprint = text(from, "fingerprint"),
        .count = (uint64_t)json_integer_value(json_object_get(from, "count")),
        .since_ms = json_integer_value(json_object_get(from, "since_ms")),
        .at_ms = json_integer_value(json_object_get(from, "at_ms")),
        .destination = slice(from, "destination"),
        .reason = slice(from, "reason"),
        .event_type = slice(from, "event_type"),
        .example_id = slice(from, "example_id"),
        .detail = slice(from, "detail"),
        .value = json_number_value(json_object_get(from, "value")),
        .threshold = json_number_value(json_object_get(from, "threshold")),
        .relay = text(from, "relay"),
        .link = text(from, "link"),
    };
    if (text(from, "about") && !hk_alert_kind_of(hk_str_of(text(from, "about")), &n->about))
        die("about");
}

static void show_words(const struct hk_notice *notice, enum hk_alert_language language)
{
    struct hk_buf words;
    hk_buf_init(&words, (size_t)64 * 1024);
    hk_notice_title(notice, language, &words);
    hk_buf_adds(&words, "\n\n");
    hk_notice_text(notice, language, &words);
    (void)fwrite(hk_buf_cstr(&words), 1, words.len, stdout);
    hk_buf_fini(&words);
}

static void report(enum hk_code rc, const struct hk_err *err, uint64_t retry_ms)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, (size_t)64 * 1024);
    hk_json_init(&json, &out, false);
    hk_json_object(&json);
    hk_json_key(&json, "code");
    hk_json_cstr(&json, hk_code_name(rc));
    hk_json_key(&json, "error");
    hk_json_cstr(&json, rc == HK_OK ? NULL : err->message);
    hk_json_key(&json, "retry_ms");
    hk_json_u64(&json, retry_ms);
    hk_json_key(&json, "children"); /* that nobody has collected */
    hk_json_bool(&json, !(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD));
    hk_json_end(&json);
    (void)puts(hk_buf_cstr(&out));
    hk_buf_fini(&out);
}

/* ---- many at once ---- */

#define THREADS 8
#define EACH    10

struct sender {
    const struct hk_channel *channel;
    const struct hk_notice *notice;
    struct hk_err err;
    enum hk_code rc;
};

static void *send_some(void *arg)
{
    struct sender *s = arg;
    uint64_t retry_ms = 0;
    for (int i = 0; i < EACH && s->rc == HK_OK; i++)
        s->rc = hk_channel_send(s->channel, s->notice, "n-many", &retry_ms, &s->err);
    return NULL;
}

static enum hk_code send_many(const struct hk_channel *channel, const struct hk_notice *notice,
                              struct hk_err *err)
{
    pthread_t threads[THREADS];
    struct sender senders[THREADS];
    enum hk_code rc = HK_OK;
    for (int i = 0; i < THREADS; i++) {
        senders[i] = (struct sender){.channel = channel, .notice = notice};
        if (pthread_create(&threads[i], NULL, send_some, &senders[i]) != 0)
            die("no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        if (senders[i].rc != HK_OK) {
            rc = senders[i].rc;
            *err = senders[i].err;
        }
    }
    return rc;
}

int main(int argc, char **argv)
{
    json_error_t where;
    struct hk_channel channel;
    struct hk_notice notice;
    struct hk_err err = {.code = HK_OK};
    uint64_t retry_ms = 0;
    json_t *root = json_loadf(stdin, JSON_ALLOW_NUL, &where);
    if (!root)
        die(where.text);
    read_channel(json_object_get(root, "channel"), &channel);
    read_notice(json_object_get(root, "notice"), &notice);
    const char *mode = argc > 1 ? argv[1] : "send";
    if (strcmp(mode, "words") == 0)
        show_words(&notice, channel.language);
    else {
        enum hk_code rc = hk_channel_check(&channel, &err);
        if (strcmp(mode, "threads") == 0)
            rc = send_many(&channel, &notice, &err);
        else if (strcmp(mode, "check") != 0)
            rc = hk_channel_send(&channel, &notice, text(root, "id"), &retry_ms, &err);
        report(rc, &err, retry_ms);
    }
    json_decref(root);
    return 0;
}
