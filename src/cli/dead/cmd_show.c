/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead show: everything about one letter, first what requirement 011 asks for in its order; or the request as curl. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/view.h"
#include "desk/dead.h"
#include "desk/dead_look.h"
#include "payload/pretty.h"
#include "payload/target.h"

/* The page that is written, and what it is about. */
struct show {
    const struct hk_dead_shown *is;
    const struct hk_letter_shown *shown; /* the same, as it is now */
    struct hk_buf *out;
};

/* ---- for reading ---- */

static void fact(struct show *s, const char *name, struct hk_str value)
{
    hk_say_fact(s->out, name, value);
}

static void fact_number(struct show *s, const char *name, uint64_t n)
{
    char text[HK_SHOW_NUMBER];
    if (n != 0)
        fact(s, name, hk_str_of(hk_show_count(n, text)));
}

static void fact_time(struct show *s, const char *name, int64_t ms)
{
    char at[HK_TIME_TEXT_MAX], ago[64], line[128];
    if (ms == 0)
        return;
    (void)hk_format_rfc3339(ms, at);
    (void)snprintf(line, sizeof line, "%s (%s)", at, hk_show_ago(ms, s->shown->now_ms, ago));
    fact(s, name, hk_str_of(line));
}

static void write_cut(struct show *s)
{
    bool present = s->is->letter.version == s->shown->letter.version;
    (void)hk_buf_addc(s->out, '(');
    if (present)
        hk_say_cut(s->out, s->is->letter.payload_bytes, "dead_letters WHERE id", s->is->letter.id);
    else
        hk_say_cut(s->out, s->is->letter.payload_bytes, "dead_letter_versions WHERE letter_id",
                   s->is->letter.id);
    if (!present)
        (void)hk_buf_addf(s->out, " AND version = %" PRIu32, s->is->letter.version);
    (void)hk_buf_adds(s->out, ")\n");
}

/* JSON on one line is laid out: who wants the bytes asks for --json. */
static void write_payload(struct show *s)
{
    char size[HK_SHOW_NUMBER];
    struct hk_buf pretty;
    if (!s->is->letter.has_payload) {
        fact(s, "payload", hk_str_of("(none)"));
        return;
    }
    (void)hk_buf_addf(s->out, "%-16s %s bytes, version %" PRIu32 "%s\n", "payload",
                      hk_show_count(s->is->letter.payload_bytes, size), s->is->letter.version,
                      s->is->letter.version == 1 ? " (as the application wrote it)" : "");
    hk_buf_init(&pretty, HK_OUTPUT_MAX);
    if (hk_pretty_write(s->is->letter.payload, &pretty) == HK_OK) {
        hk_table_safe_lines(s->out, hk_buf_str(&pretty));
    } else {
        hk_table_safe_lines(s->out, s->is->letter.payload);
        (void)hk_buf_addc(s->out, '\n');
    }
    if (s->is->cut)
        write_cut(s);
    hk_buf_fini(&pretty);
}

/* Reason, last error, count and last attempt, payload, correlation id: requirement 011. */
static void write_first(struct show *s)
{
    const struct hk_letter *l = &s->shown->letter;
    char line[160];
    (void)snprintf(line, sizeof line, "%" PRId64 ", %s", l->id, hk_letter_state(l));
    fact(s, "letter", hk_str_of(line));
    fact(s, "reason", l->reason);
    fact(s, "last error", l->error);
    if (s->is->near != NULL) {
        fact(s, "did you mean", hk_str_of(s->is->near));
        (void)snprintf(line, sizeof line, "hikyaku dead requeue %" PRId64 " --to NAME sends it there", l->id);
        fact(s, "", hk_str_of(line));
    }
    (void)snprintf(line, sizeof line, "%" PRIu32 " in life %" PRIu32 ", requeued %" PRIu32 " times",
                   l->attempts, l->life, l->requeues);
    fact(s, "attempts", hk_str_of(line));
    fact_time(s, "last attempt", l->last_attempt_ms);
    if (l->last_attempt_ms == 0)
        fact(s, "last attempt", hk_str_of("never sent"));
    write_payload(s);
    fact(s, "correlation id", l->correlation_id);
    fact(s, "traceparent", l->traceparent);
}

static void write_rest(struct show *s)
{
    const struct hk_letter *l = &s->shown->letter;
    (void)hk_buf_addc(s->out, '\n');
    fact(s, "message", l->message_id);
    fact(s, "requeued as", l->requeued_as);
    fact_number(s, "outbox id", (uint64_t)l->outbox_id);
    fact(s, "destination", hk_say_to(l->destination));
    fact(s, "event type", l->event_type);
    fact(s, "class", l->failure_class);
    fact(s, "fault",
         hk_str_eq(l->blame, hk_str_of("pipeline")) ? hk_str_of("our pipeline broke")
                                                    : hk_str_of("the destination refused"));
    fact(s, "group", l->fingerprint);
    fact_time(s, "written", l->message_created_ms);
    fact_time(s, "first failed", l->first_failed_ms);
    fact_time(s, "last failed", l->last_failed_ms);
    fact_time(s, "edited", l->edited_ms);
    fact_time(s, "requeued", l->requeued_ms);
    fact_time(s, "sent by hand", l->sending_ms);
    fact_time(s, l->status == HK_LETTER_DISCARDED ? "discarded" : "resolved", l->resolved_ms);
    fact(s, "resolution", l->resolution);
    fact_number(s, "redrive", (uint64_t)l->redrive);
    fact_number(s, "crashes", l->crashes);
    if (l->possibly_delivered)
        fact(s, "delivered?", hk_str_of("an attempt may have arrived though nobody confirmed it"));
    fact(s, "key", l->key);
    fact_number(s, "waiting behind", s->shown->blocked);
    fact(s, "policy", l->policy);
    fact_number(s, "max attempts", l->max_attempts);
    fact(s, "expires", l->expires_at);
    fact(s, "idempotency key", l->idempotency_key);
    fact(s, "content type", l->content_type);
    fact(s, "encoding", l->encoding);
    fact(s, "headers", l->headers);
}

static void write_attempt(struct show *s, const struct hk_tried *a)
{
    char at[HK_TIME_TEXT_MAX], took[HK_SHOW_NUMBER], status[24];
    bool said = a->response_body.len > 0; /* by a broker, which has no status */
    (void)snprintf(status, sizeof status, "%s", said ? "failed" : "no answer");
    (void)hk_format_rfc3339(a->started_ms, at);
    if (a->status > 0)
        (void)snprintf(status, sizeof status, "HTTP %d", a->status);
    if (a->n > 0)
        (void)hk_buf_addf(s->out, "\nattempt %" PRIu32 " of life %" PRIu32 ", %s, %s after %s\n", a->n,
                          a->life, at, status, hk_show_duration(a->duration_ms, took));
    else
        (void)hk_buf_addf(s->out, "\nan attempt without an outcome in life %" PRIu32 ", %s\n", a->life, at);
    fact(s, "  class", a->failure_class);
    fact(s, "  cause", a->cause);
    fact(s, "  error", a->error);
    fact(s, "  address", a->address);
    fact(s, "  request", a->request_headers);
    fact(s, "  response", a->response_headers);
    fact(s, "  body", a->response_body);
    if (a->possibly_delivered)
        fact(s, "  delivered?", hk_str_of("perhaps"));
}

static void write_trail(struct show *s)
{
    char at[HK_TIME_TEXT_MAX];
    if (s->shown->n_versions > 0)
        (void)hk_buf_adds(s->out, "\nearlier payloads (dead show ID --payload-version N)\n");
    for (size_t i = 0; i < s->shown->n_versions; i++) {
        const struct hk_letter_version *v = &s->shown->versions[i];
        (void)hk_format_rfc3339(v->replaced_ms, at);
        (void)hk_buf_addf(s->out, "  version %" PRIu32 ", %" PRIu64 " bytes, replaced %s by ", v->version,
                          v->payload_bytes, at);
        (void)hk_table_safe(s->out, v->actor, 60);
        (void)hk_buf_adds(s->out, ": ");
        (void)hk_table_safe(s->out, v->reason, 200);
        (void)hk_buf_addc(s->out, '\n');
    }
    if (s->shown->n_acts > 0)
        (void)hk_buf_adds(s->out, "\nwho did what\n");
    for (size_t i = 0; i < s->shown->n_acts; i++) {
        const struct hk_audit_row *row = &s->shown->acts[i];
        (void)hk_format_rfc3339(row->at_ms, at);
        (void)hk_buf_addf(s->out, "  %s ", at);
        (void)hk_table_safe(s->out, row->act, 30);
        (void)hk_buf_adds(s->out, " by ");
        (void)hk_table_safe(s->out, row->actor, 60);
        (void)hk_buf_adds(s->out, ": ");
        (void)hk_table_safe(s->out, row->reason, 300);
        (void)hk_buf_addc(s->out, '\n');
    }
}

static void write_text(struct show *s)
{
    write_first(s);
    write_rest(s);
    for (size_t i = 0; i < s->shown->n_attempts; i++)
        write_attempt(s, &s->shown->attempts[i]);
    if (s->shown->n_attempts == 0)
        (void)hk_buf_adds(s->out, "\nno attempts are on record\n");
    write_trail(s);
}

/* ---- curl ---- */

/* Could a terminal take any of it for more than text? */
static bool is_harmless(struct hk_str text)
{
    struct hk_buf safe;
    hk_buf_init(&safe, HK_OUTPUT_MAX);
    hk_table_safe_lines(&safe, text);
    bool same = hk_buf_status(&safe) == HK_OK && hk_str_eq(hk_buf_str(&safe), text);
    hk_buf_fini(&safe);
    return same;
}

/* In single quotes, which a shell takes as they are; with bytes that a terminal must not see, as $'…' (bash, zsh, ksh). */
static void add_quoted(struct hk_buf *out, struct hk_str text)
{
    bool plain = is_harmless(text);
    (void)hk_buf_adds(out, plain ? "'" : "$'");
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '\'')
            (void)hk_buf_adds(out, plain ? "'\\''" : "\\'");
        else if (!plain && (c < ' ' || c > '~' || c == '\\'))
            (void)hk_buf_addf(out, "\\%03o", (unsigned)c);
        else
            (void)hk_buf_addc(out, (char)c);
    }
    (void)hk_buf_addc(out, '\'');
}

/* Those that curl makes itself, and those that are only right in the request that they were made for. */
static bool is_own(struct hk_str name)
{
    static const char *const own[] = {"host",   "content-length",    "user-agent",
                                      "accept", "webhook-signature", "webhook-timestamp"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strlen(own[i]) == name.len && strncasecmp(own[i], name.ptr, name.len) == 0)
            return true;
    return false;
}

static void add_header(struct hk_buf *out, struct hk_str name, struct hk_str value)
{
    struct hk_buf line;
    if (is_own(name) || name.len == 0 || hk_target_is_name(name) ||
        name.ptr[0] == '@') /* curl would read a file */
        return;
    hk_buf_init(&line, HK_OUTPUT_MAX);
    (void)hk_buf_add(&line, name.ptr, name.len);
    (void)hk_buf_adds(&line, ": ");
    (void)hk_buf_add(&line, value.ptr, value.len);
    (void)hk_buf_adds(out, " \\\n  -H ");
    hk_buf_inherit(out, &line);
    add_quoted(out, hk_buf_str(&line));
    hk_buf_fini(&line);
}

/* In the quotes that our requests have it in (RFC 8941). */
static void add_key(struct hk_buf *out, struct hk_str key)
{
    struct hk_buf quoted;
    hk_buf_init(&quoted, HK_OUTPUT_MAX);
    (void)hk_buf_addf(&quoted, "\"%.*s\"", (int)key.len, key.ptr);
    hk_buf_inherit(out, &quoted);
    add_header(out, hk_str_of("idempotency-key"), hk_buf_str(&quoted));
    hk_buf_fini(&quoted);
}

/* Members of a JSON object whose values are texts. */
static bool add_headers(struct hk_buf *out, struct hk_str object)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_buf name, value;
    bool any = false;
    hk_buf_init(&name, HK_OUTPUT_MAX);
    hk_buf_init(&value, HK_OUTPUT_MAX);
    hk_scan_init(&scan, object);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (kind == HK_SCAN_KEY) {
            hk_buf_reset(&name);
            (void)hk_scan_text(token.raw, &name);
        } else if (kind == HK_SCAN_STRING && name.len > 0) {
            hk_buf_reset(&value);
            (void)hk_scan_text(token.raw, &value);
            hk_buf_inherit(out, &name);
            hk_buf_inherit(out, &value);
            add_header(out, hk_buf_str(&name), hk_buf_str(&value));
            any = true;
        }
    }
    hk_buf_fini(&name);
    hk_buf_fini(&value);
    return any;
}

static struct hk_str last_request(const struct hk_letter_shown *shown)
{
    for (size_t i = shown->n_attempts; i > 0; i--)
        if (shown->attempts[i - 1].request_headers.len > 0)
            return shown->attempts[i - 1].request_headers;
    return (struct hk_str){"", 0};
}

/* The header fields of a batch are not those of one message. */
static bool is_batched(const struct hk_letter_shown *shown)
{
    return hk_str_containsi(last_request(shown), hk_str_of("\"hikyaku-batch\":"));
}

/* As the last attempt was sent, when that is on record; else what every request of ours has. */
static void add_request_headers(struct show *s)
{
    const struct hk_letter *l = &s->shown->letter;
    if (is_batched(s->shown) || !add_headers(s->out, last_request(s->shown))) {
        add_header(s->out, hk_str_of("content-type"),
                   l->content_type.len > 0 ? l->content_type : hk_str_of("application/json"));
        add_header(s->out, hk_str_of("webhook-id"), l->message_id);
        add_key(s->out, l->idempotency_key.len > 0 ? l->idempotency_key : l->message_id);
        (void)add_headers(s->out, l->headers);
    }
}

static int write_curl(struct show *s)
{
    struct hk_str payload = s->is->letter.payload;
    char shown[HK_SHOW_MAX], method[HK_TARGET_METHOD_MAX];
    if (!hk_target_read(s->is->letter.headers, HK_TARGET_METHOD, method, sizeof method) ||
        !hk_target_method_ok(hk_str_of(method)))
        (void)snprintf(method, sizeof method, "POST");
    if (s->is->url == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "destination %s is not an HTTP one in this configuration",
                            hk_show(s->shown->letter.destination, shown));
    if (payload.len > 0 && memchr(payload.ptr, '\0', payload.len) != NULL)
        return hk_out_error(HK_EXIT_FAILURE, "the payload holds bytes that no command line can");
    if (s->is->masked)
        (void)hk_buf_adds(s->out, "# masked: --reveal shows the request as it is\n");
    if (is_batched(s->shown))
        (void)hk_buf_adds(
            s->out, "# the message travelled in a batch; this sends its payload in a request of its own\n");
    (void)hk_buf_adds(s->out,
                      "# without a signature, and with *** or … where secrets stand\ncurl -sS -i -X ");
    (void)hk_buf_addf(s->out, "%s ", method);
    add_quoted(s->out, hk_str_of(s->is->url));
    add_request_headers(s);
    if (hk_target_method_has_body(hk_str_of(method))) {
        (void)hk_buf_adds(s->out, " \\\n  --data-raw ");
        add_quoted(s->out, payload);
    }
    (void)hk_buf_addc(s->out, '\n');
    return HK_EXIT_OK;
}

/* ---- the whole ---- */

static void print_letter(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dead_shown *is = result;
    struct show s = {.is = is, .shown = &is->all, .out = out};
    (void)ask;
    write_text(&s);
}

static int print_curl(const struct hk_ask *ask)
{
    const struct hk_dead_shown *is = ask->result;
    struct hk_buf out;
    struct show s = {.is = is, .shown = &is->all, .out = &out};
    hk_buf_init(&out, HK_OUTPUT_MAX);
    int code = write_curl(&s);
    if (code == HK_EXIT_OK)
        return hk_out_buffer(&out);
    hk_buf_fini(&out);
    return code;
}

enum hk_code hk_view_letter(struct hk_desk *desk, int64_t id, struct hk_buf *out, struct hk_err *err)
{
    const struct hk_caller caller = {.role = HK_ROLE_VIEWER};
    struct hk_dead_shown is = {.cut = false};
    struct hk_pool mem = {.blocks = NULL};
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, id);
    enum hk_code rc =
        hk_desk_ask(desk, &hk_op_dead_show, &caller, &(struct hk_dead_show_ask){.id = text}, &mem, &is, err);
    if (rc == HK_OK)
        print_letter(NULL, &is, out);
    hk_pool_fini(&mem);
    return rc;
}

int hk_cmd_dead_show(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK)
        code = hk_args_flag(cli, "curl") ? print_curl(&ask) : hk_ask_print(&ask, print_letter);
    hk_ask_end(&ask);
    return code;
}
