/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku doctor: looks at everything that a relay needs, says what is wrong, and what to do about it. Changes nothing. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

#include "alert/conf.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/policy/policies.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "daemon/guard.h"
#include "relay/wiring.h"
#include "sink/http/version.h"
#include "sink/kinds.h"

#define INTEGRITY_MS UINT64_C(10000)
#define MIB          (UINT64_C(1) << 20)

enum level {
    LEVEL_OK = 0,
    LEVEL_WARN,
    LEVEL_FAIL
};

static const char *const level_names[] = {[LEVEL_OK] = "ok", [LEVEL_WARN] = "warn", [LEVEL_FAIL] = "fail"};

struct doctor {
    const struct hk_cli *cli;
    struct hk_config *config;
    const char *url;
    bool complete; /* `config` with its secrets */
    bool as_json;
    unsigned found[3]; /* by level */
    struct hk_buf out;
    struct hk_json json;
};

/* One line: what was looked at, and what was found, with advice in it when something is wrong. */
static void finding(struct doctor *d, enum level level, const char *check, const char *fmt, ...)
    HK_PRINTF(4, 5);

static void finding(struct doctor *d, enum level level, const char *check, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    d->found[level]++;
    if (d->as_json) {
        hk_json_object(&d->json);
        hk_put_str(&d->json, "check", hk_str_of(check));
        hk_put_str(&d->json, "level", hk_str_of(level_names[level]));
        hk_put_str(&d->json, "message", hk_str_of(text));
        hk_json_end(&d->json);
        return;
    }
    (void)hk_buf_addf(&d->out, "%-4s  %-13s ", level_names[level], check);
    (void)hk_table_safe(&d->out, hk_str_of(text), 0);
    (void)hk_buf_addc(&d->out, '\n');
}

static const char *size_text(uint64_t bytes, char out[HK_SHOW_NUMBER])
{
    double mib = (double)bytes / (double)MIB;
    if (mib >= 10240)
        (void)snprintf(out, HK_SHOW_NUMBER, "%.0f GiB", mib / 1024);
    else
        (void)snprintf(out, HK_SHOW_NUMBER, mib >= 10 ? "%.0f MiB" : "%.1f MiB", mib);
    return out;
}

/* ---- without a store ---- */

/* An operator may lack them; a relay that is started like this may not. */
static void take_secrets(struct doctor *d)
{
    struct hk_config *whole = NULL;
    d->complete = hk_settings_config(d->cli, HK_FOR_SENDING, &whole) == HK_EXIT_OK;
    if (!d->complete) {
        finding(d, LEVEL_WARN, "secrets",
                "some cannot be had from here (see above): nothing can be sent from here without them");
        return;
    }
    hk_config_free(d->config);
    d->config = whole;
}

static bool look_at_config(struct doctor *d)
{
    const char *path = hk_cli_config_path(d->cli);
    size_t n = 0;
    if (hk_settings_config(d->cli, HK_FOR_ACTING, &d->config) != HK_EXIT_OK) {
        finding(d, LEVEL_FAIL, "configuration",
                "%s has errors: 'hikyaku config check' shows them; going on without it",
                path != NULL ? path : "the default");
        return hk_config_defaults(&d->config) == HK_OK;
    }
    while (hk_config_destination(d->config, n) != NULL)
        n++;
    if (path == NULL)
        finding(d, LEVEL_WARN, "configuration",
                "no file: nothing can be sent without destinations; "
                "write hikyaku.yaml ('hikyaku config schema' shows what may stand in it)");
    else if (n == 0)
        finding(d, LEVEL_WARN, "configuration", "%s names no destinations: everything becomes a dead letter",
                path);
    else
        finding(d, LEVEL_OK, "configuration", "%s: %zu destination%s", path, n, n == 1 ? "" : "s");
    take_secrets(d);
    return true;
}

/* What only shows when a destination is put to work: certificates, keys, addresses. Nothing is connected to. */
static void look_at_destination(struct doctor *d, const struct hk_conf_destination *conf,
                                struct hk_loop *loop)
{
    struct hk_sink *sink = NULL;
    struct hk_err err = {.message = ""};
    if (hk_sink_kind_of(conf)->nowhere)
        finding(d, LEVEL_WARN, "destination",
                "'%s' is null: its messages are confirmed and go nowhere; for benches and dry runs only",
                conf->name);
    if (!d->complete)
        return;
    if (hk_wiring_sink(conf, loop, &sink, &err) != HK_OK)
        finding(d, LEVEL_FAIL, "destination", "'%s' cannot be used: %s", conf->name, err.message);
    else
        sink->ops->close(sink);
}

static void look_at_destinations(struct doctor *d)
{
    const struct hk_conf_destination *conf = NULL;
    struct hk_loop *loop = NULL;
    struct hk_err err = {.message = ""};
    if (hk_loop_new(&loop, &err) != HK_OK) {
        finding(d, LEVEL_FAIL, "destination", "%s", err.message);
        return;
    }
    for (size_t i = 0; (conf = hk_config_destination(d->config, i)) != NULL; i++)
        look_at_destination(d, conf, loop);
    hk_loop_free(loop);
}

/* As a relay checks them when it starts. Nobody is told anything: `alerts test` does that. */
static void look_at_channels(struct doctor *d)
{
    const struct hk_conf_channel *conf = NULL;
    size_t n = 0, wrong = 0;
    for (; d->complete && (conf = hk_config_channel(d->config, n)) != NULL; n++) {
        struct hk_err err = {.message = ""};
        if (hk_channel_check_conf(d->config, conf, &err) == HK_OK)
            continue;
        wrong++;
        finding(d, LEVEL_FAIL, "channel", "'%s' cannot be used: %s", conf->name, err.message);
    }
    if (n > 0 && wrong == 0)
        finding(d, LEVEL_OK, "channels", "%zu; 'hikyaku alerts test NAME' sends a test notice", n);
}

static void look_at_limits(struct doctor *d)
{
    struct rlimit limit;
    uint64_t need = (uint64_t)d->config->relay.concurrency + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    uint64_t have = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
    if (have < need)
        finding(d, LEVEL_FAIL, "descriptors",
                "%" PRIu64 " allowed, a concurrency of %" PRIu32 " needs %" PRIu64
                ": raise it (ulimit -n, LimitNOFILE=) or lower relay.concurrency",
                have, d->config->relay.concurrency, need);
    else if (have < 2 * need)
        finding(d, LEVEL_WARN, "descriptors",
                "%" PRIu64 " allowed, hardly enough for a concurrency of %" PRIu32
                " with idle connections: raise it "
                "(ulimit -n, LimitNOFILE=)",
                have, d->config->relay.concurrency);
    else
        finding(d, LEVEL_OK, "descriptors", "enough for a concurrency of %" PRIu32,
                d->config->relay.concurrency);
}

static void look_at_libcurl(struct doctor *d)
{
    struct hk_http_version v = hk_http_version();
    if (v.trap != NULL)
        finding(d, LEVEL_FAIL, "libcurl", "%s: %s", v.version, v.trap);
    else
        finding(d, v.http2 ? LEVEL_OK : LEVEL_WARN, "libcurl", "%s, %s%s", v.version, v.tls,
                v.http2 ? "" : ": without HTTP/2");
}

/* What `run` would do to itself, started by whoever asks. */
static void look_at_sandbox(struct doctor *d)
{
    if (!hk_guard_can_lock())
        finding(d, LEVEL_WARN, "sandbox",
                "a relay keeps all system calls: no seccomp in this build or kernel");
    else if (hk_guard_is_root())
        finding(d, LEVEL_WARN, "sandbox",
                "seccomp is there; a relay that is started like this runs as root: "
                "start it as another user, or with --user");
    else
        finding(d, LEVEL_OK, "sandbox", "seccomp is there, and we are not root");
}

/* ---- the store ---- */

static void look_at_engine(struct doctor *d, const struct hk_store_health *h)
{
    static const enum level levels[] = {
        [HK_NOTE_OK] = LEVEL_OK, [HK_NOTE_WARN] = LEVEL_WARN, [HK_NOTE_FAIL] = LEVEL_FAIL};

    finding(d, h->trap != NULL ? LEVEL_FAIL : LEVEL_OK, "engine", "%s%s%s", h->engine,
            h->trap != NULL ? ": " : "", h->trap != NULL ? h->trap : "");
    if (h->schema != HK_OK)
        finding(d, LEVEL_FAIL, "schema", "%s", h->schema_error.message);
    else
        finding(d, LEVEL_OK, "schema", "version %" PRIu32, h->schema_version);
    for (size_t i = 0; i < h->n_notes; i++)
        finding(d, levels[h->notes[i].level], h->notes[i].about, "%s", h->notes[i].text);
}

static void look_at_file(struct doctor *d, const struct hk_store_health *h)
{
    char file[HK_SHOW_NUMBER], wal[HK_SHOW_NUMBER], left[HK_SHOW_NUMBER];
    if (hk_str_eq(hk_str_of(h->journal), hk_str_of("wal")))
        finding(d, LEVEL_OK, "journal", "WAL");
    else
        finding(d, LEVEL_WARN, "journal",
                "%s, not WAL: readers and writers wait for each other; 'hikyaku init --wal' switches",
                h->journal);
    if (h->integrity == HK_INTEGRITY_BAD)
        finding(d, LEVEL_FAIL, "integrity",
                "%s: stop every program on it, keep a copy, and try .recover of the sqlite3 shell",
                h->damage);
    else if (h->integrity == HK_INTEGRITY_UNFINISHED)
        finding(d, LEVEL_OK, "integrity", "nothing found in %" PRIu64 " s; the file is too large for more",
                INTEGRITY_MS / 1000);
    else
        finding(d, LEVEL_OK, "integrity", "quick check passed");
    finding(d, LEVEL_OK, "lock",
            "%s-relay, once a relay has run: leave it where it is, and out of backups; it is always empty",
            h->place);
    bool grown = h->wal_bytes > 256 * MIB;
    finding(d, grown ? LEVEL_WARN : LEVEL_OK, "size", "%s, WAL %s%s", size_text(h->file_bytes, file),
            size_text(h->wal_bytes, wal),
            grown ? ": some program keeps a transaction open, end it and the WAL shrinks" : "");
    if (h->free_bytes != UINT64_MAX)
        finding(d,
                h->free_bytes < 32 * MIB    ? LEVEL_FAIL
                : h->free_bytes < 512 * MIB ? LEVEL_WARN
                                            : LEVEL_OK,
                "disk", "%s free%s", size_text(h->free_bytes, left),
                h->free_bytes < 512 * MIB ? ": a full disk stops sending; make room" : "");
}

static void look_at_clock(struct doctor *d, const struct hk_store_health *h)
{
    char behind[HK_SHOW_NUMBER];
    int64_t lag_ms = h->high_water_ms - h->clock_ms;
    if (lag_ms > 2000)
        finding(
            d, LEVEL_WARN, "clock",
            "the host's clock is %s behind the time that the store has seen: nothing is lost, but until it has caught up "
            "leases and waits take longer (not_before and expires_at go by the clock); check the clock (NTP), and if it is right now see 'hikyaku clock show'",
            hk_show_duration((uint64_t)lag_ms, behind));
    else if (h->clock_ms < INT64_C(1704067200000)) /* 2024 */
        finding(d, LEVEL_FAIL, "clock",
                "the host's clock is in the past: set it (NTP); signatures will be refused");
    else
        finding(d, LEVEL_OK, "clock", "not behind what the store has seen");
}

/* ---- what is in it ---- */

static void look_at_relay(struct doctor *d, const struct hk_store_status *s)
{
    char text[HK_SHOW_NUMBER], n[48];
    if (s->relay.running)
        finding(d, LEVEL_OK, "relay", "%.*s is running (lane %" PRId64 ")", (int)s->relay.name.len,
                s->relay.name.ptr, s->relay.lane);
    else if (s->relay.known)
        finding(d, LEVEL_WARN, "relay",
                "%.*s stopped without a word %s ago: start it again with 'hikyaku run'",
                (int)s->relay.name.len, s->relay.name.ptr,
                hk_show_duration((uint64_t)(s->now_ms - s->relay.until_ms), text));
    else
        finding(d, LEVEL_WARN, "relay", "none is running: start one with 'hikyaku run'");
    if (s->due.n == 0) {
        finding(d, LEVEL_OK, "backlog", "nothing is due");
        return;
    }
    int64_t age_ms = s->oldest_due_ms != 0 && s->oldest_due_ms < s->now_ms ? s->now_ms - s->oldest_due_ms : 0;
    finding(d, age_ms > 60000 ? LEVEL_WARN : LEVEL_OK, "backlog", "%s due, the oldest for %s%s",
            hk_operate_count(s->due, n), hk_show_duration((uint64_t)age_ms, text),
            age_ms > 60000 ? ": 'hikyaku status' shows where; is a destination paused, slow or limited?"
                           : "");
}

static void look_at_dests(struct doctor *d, const struct hk_store_status *s)
{
    char n[48];
    for (size_t i = 0; i < s->n_dests; i++) {
        const struct hk_dest_status *x = &s->dests[i];
        struct hk_count live = {x->pending.n + x->retrying.n, x->pending.about || x->retrying.about};
        int len = x->name.len < 100 ? (int)x->name.len : 100;
        if (x->name.len > 0 && live.n > 0 && hk_config_destination_named(d->config, x->name) == NULL)
            finding(d, LEVEL_WARN, "destination",
                    "'%.*s' is not configured, %s messages name it: a relay makes them dead letters; add it",
                    len, x->name.ptr, hk_operate_count(live, n));
        if (x->paused)
            finding(
                d, LEVEL_WARN, "destination",
                "'%.*s' is paused by %.*s (%.*s), %s messages wait: 'hikyaku destinations resume' ends it",
                len, x->name.ptr, x->actor.len < 100 ? (int)x->actor.len : 100, x->actor.ptr,
                x->reason.len < 200 ? (int)x->reason.len : 200, x->reason.ptr, hk_operate_count(live, n));
    }
    if (s->dead.n > 0)
        finding(d, LEVEL_WARN, "dead letters", "%s open: 'hikyaku dead groups' shows why",
                hk_operate_count(s->dead, n));
    else
        finding(d, LEVEL_OK, "dead letters", "none is open");
}

static void look_inside(struct doctor *d, const struct hk_store_admin_ops *ops)
{
    struct hk_admin *admin = NULL;
    struct hk_err err = {.message = ""};
    const struct hk_store_status *status = NULL;
    enum hk_code rc = ops->open(d->url, &(struct hk_store_options){.busy_ms = 0}, &admin, &err);
    if (rc == HK_OK)
        rc = ops->status(admin, &status, &err);
    if (rc != HK_OK) {
        finding(d, LEVEL_FAIL, "messages", "%s", err.message);
    } else {
        look_at_relay(d, status);
        look_at_dests(d, status);
    }
    ops->close(admin);
}

static void look_at_store(struct doctor *d)
{
    struct hk_err err = {.message = ""};
    struct hk_store_health health;
    const struct hk_store_admin_ops *ops = hk_store_admin_by_url(d->url, &err);
    if (ops == NULL || ops->inspect(d->url, INTEGRITY_MS, &health, &err) != HK_OK) {
        finding(d, LEVEL_FAIL, "database", "%s", err.message);
        return;
    }
    finding(d, LEVEL_OK, "database", "%s can be reached", health.place);
    look_at_engine(d, &health);
    if (health.is_file) {
        look_at_file(d, &health);
        look_at_clock(d, &health);
    }
    if (health.schema == HK_OK)
        look_inside(d, ops);
}

static int finish(struct doctor *d)
{
    if (d->as_json) {
        hk_json_end(&d->json);
        hk_json_key(&d->json, "next");
        hk_json_null(&d->json);
        hk_put_bool(&d->json, "ok", d->found[LEVEL_FAIL] == 0);
        hk_json_end(&d->json);
        (void)hk_buf_addc(&d->out, '\n');
    } else {
        (void)hk_buf_addf(&d->out, "\n%u ok, %u to look at, %u wrong\n", d->found[LEVEL_OK],
                          d->found[LEVEL_WARN], d->found[LEVEL_FAIL]);
    }
    int printed = hk_out_buffer(&d->out);
    return d->found[LEVEL_FAIL] > 0 ? HK_EXIT_FAILURE : printed;
}

int hk_cmd_doctor(struct hk_cli *cli)
{
    struct doctor d = {.cli = cli, .as_json = hk_args_flag(cli, "json")};
    hk_buf_init(&d.out, HK_OPERATE_OUTPUT_MAX);
    hk_json_init(&d.json, &d.out, true);
    if (d.as_json) {
        hk_json_object(&d.json);
        hk_json_key(&d.json, "items");
        hk_json_array(&d.json);
    }
    if (!look_at_config(&d)) {
        hk_buf_fini(&d.out);
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    }
    d.url = hk_settings_url(cli, d.config);
    look_at_destinations(&d);
    look_at_channels(&d);
    look_at_limits(&d);
    look_at_sandbox(&d);
    look_at_libcurl(&d);
    look_at_store(&d);
    hk_config_free(d.config);
    return finish(&d);
}
