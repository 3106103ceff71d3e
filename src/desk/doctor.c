/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at everything that a relay needs, says what is wrong, and what to do about it. Changes nothing. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "alert/conf.h"
#include "base/named.h"
#include "base/show.h"
#include "base/str.h"
#include "config/definition.h"
#include "desk/definitions.h"
#include "desk/doctor.h"
#include "desk/forms.h"
#include "exec/clock.h"
#include "relay/wiring.h"
#include "sink/http/version.h"
#include "sink/kinds.h"

#define INTEGRITY_MS UINT64_C(10000)
#define MIB          (UINT64_C(1) << 20)

enum {
    PROBE_MS = 3000,  /* one of the other side */
    PROBES_MS = 10000 /* all of them */
};

const char *const hk_note_names[] = {[HK_NOTE_OK] = "ok", [HK_NOTE_WARN] = "warn", [HK_NOTE_FAIL] = "fail"};

struct doctor {
    struct hk_desk *desk;
    const struct hk_doctor_ask *ask;
    struct hk_pool *mem;
    struct hk_diagnosis *out;
    size_t room; /* of its items */
    bool nomem;
    struct hk_definitions kept; /* destinations of the store, once it was asked */
    struct hk_figures figures;  /* what relays say of them */
    unsigned held;              /* of them, those that some cannot use */
    uint64_t probes_ms;         /* that asking destinations has taken */
};

static struct hk_symptom *add(struct doctor *d)
{
    struct hk_diagnosis *out = d->out;
    if (out->n == d->room) {
        size_t room = d->room > 0 ? d->room * 2 : 64;
        struct hk_symptom *items = hk_pool_alloc(d->mem, room, sizeof *items);
        if (!items)
            return NULL;
        if (out->n > 0)
            memcpy(items, out->items, out->n * sizeof *items);
        out->items = items;
        d->room = room;
    }
    return &out->items[out->n++];
}

/* Its texts are in the pool, or NULL where there was no memory for them. */
static void keep(struct doctor *d, const struct hk_symptom *symptom)
{
    struct hk_symptom *f = symptom->check && symptom->text && symptom->values.ptr ? add(d) : NULL;
    d->out->found[symptom->level]++;
    if (f)
        *f = *symptom;
    else
        d->nomem = true;
}

/* Adds one line: what the doctor looked at, and what it found, with advice where something is wrong. A sentence has its own code, and
 * `values` are those in it: web/words says the same in Japanese, from these two. */
static void finding(struct doctor *d, enum hk_note_level level, const char *check, const char *code,
                    const struct hk_named *values, const char *fmt, ...) HK_PRINTF(6, 7);

static void finding(struct doctor *d, enum hk_note_level level, const char *check, const char *code,
                    const struct hk_named *values, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *about = hk_pool_copy(d->mem, check, strlen(check));
    const char *copy = hk_pool_copy(d->mem, text, strlen(text));
    keep(d, &(struct hk_symptom){level, about, copy, code, hk_named_keep(values, d->mem)});
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

static void look_at_config(struct doctor *d)
{
    const char *file = d->ask->file;
    size_t n = 0;
    if (d->ask->broken) {
        finding(d, HK_NOTE_FAIL, "configuration", "config_broken",
                HK_NAMED(hk_named_cstr("file", file ? file : "")),
                "%s has errors: 'hikyaku config check' shows them; going on without it",
                file ? file : "the default");
        return;
    }
    while (hk_config_destination(d->desk->config, n))
        n++;
    if (!d->ask->known)
        finding(d, n == 0 ? HK_NOTE_WARN : HK_NOTE_OK, "configuration", "config_of_relay",
                HK_NAMED(hk_named_count("n", n)), "the relay that answers has %zu destination%s of its file",
                n, n == 1 ? "" : "s");
    else if (!file)
        finding(d, HK_NOTE_WARN, "configuration", "config_none", HK_NAMED_NONE,
                "no file: nothing can be sent without destinations; "
                "write hikyaku.yaml ('hikyaku config schema' shows what may stand in it)");
    else if (n == 0)
        finding(d, HK_NOTE_WARN, "configuration", "config_no_destinations",
                HK_NAMED(hk_named_cstr("file", file)),
                "%s names no destinations: only those of the store, if there are any, can be sent to", file);
    else
        finding(d, HK_NOTE_OK, "configuration", "config_ok",
                HK_NAMED(hk_named_cstr("file", file), hk_named_count("n", n)), "%s: %zu destination%s", file,
                n, n == 1 ? "" : "s");
    if (d->ask->known && !d->ask->complete)
        finding(d, HK_NOTE_WARN, "secrets", "secrets_missing", HK_NAMED_NONE,
                "this machine lacks some secrets (see above), and cannot send without them");
}

/* Each key, as it can be had from here. */
static void look_at_keys(struct doctor *d)
{
    struct hk_keyring *keys = d->desk->config->keys;
    size_t n = keys ? hk_keyring_count(keys) : 0;
    for (size_t i = 0; i < n; i++) {
        struct hk_key key = {.id = ""};
        struct hk_err err = {.message = ""};
        if (hk_keyring_get(keys, hk_str_of(hk_keyring_id(keys, i)), &key, &err) == HK_OK)
            finding(d, HK_NOTE_OK, "key", i == 0 ? "key_seals" : "key_ok",
                    HK_NAMED(hk_named_cstr("key", key.id)), "%s can be read%s", key.id,
                    i == 0 ? ", and seals" : "");
        else
            finding(d, HK_NOTE_FAIL, "key", "key_unreadable", HK_NAMED(hk_named_cstr("error", err.message)),
                    "%s: messages that it sealed wait, and none of them dies of it", err.message);
        hk_key_wipe(&key);
    }
}

/* Brokers are asked whether they would take messages, some seconds for all of them together. */
static void ask_destination(struct doctor *d, const struct hk_conf_destination *conf)
{
    const struct hk_sink_kind *kind = hk_sink_kind_of(conf);
    char text[HK_SINK_PROBE_MAX] = "";
    struct hk_err err = {.message = ""};
    if (!kind->probe)
        return;
    int64_t began_us = hk_clock_us();
    uint64_t left_ms = PROBES_MS > d->probes_ms ? PROBES_MS - d->probes_ms : 0;
    if (!left_ms) {
        finding(d, HK_NOTE_WARN, "destination", "destination_not_asked",
                HK_NAMED(hk_named_cstr("destination", conf->name), hk_named_int("took_ms", PROBES_MS)),
                "'%s' was not asked: others took %d s to answer; 'hikyaku destinations test %s' asks it",
                conf->name, PROBES_MS / 1000, conf->name);
        return;
    }
    enum hk_code rc = kind->probe(conf, left_ms < PROBE_MS ? left_ms : PROBE_MS, text, &err);
    d->probes_ms += (uint64_t)(hk_clock_us() - began_us) / 1000;
    if (rc == HK_OK)
        finding(d, HK_NOTE_OK, "destination", "destination_answers",
                HK_NAMED(hk_named_cstr("destination", conf->name), hk_named_cstr("answer", text)), "'%s': %s",
                conf->name, text);
    else
        finding(d, HK_NOTE_FAIL, "destination", "destination_refuses",
                HK_NAMED(hk_named_cstr("destination", conf->name), hk_named_cstr("error", err.message)),
                "'%s': %s", conf->name, err.message);
}

/* Opens the destination as a relay would, which finds bad certificates, keys and addresses. Nothing is sent to HTTP receivers. */
static void look_at_destination(struct doctor *d, const struct hk_conf_destination *conf,
                                struct hk_loop *loop)
{
    struct hk_sink *sink = NULL;
    struct hk_err err = {.message = ""};
    if (hk_sink_kind_of(conf)->nowhere)
        finding(d, HK_NOTE_WARN, "destination", "destination_null",
                HK_NAMED(hk_named_cstr("destination", conf->name)),
                "'%s' is null: its messages are confirmed and go nowhere; for benches and dry runs only",
                conf->name);
    if (!d->ask->complete)
        return;
    if (hk_wiring_sink(conf, loop, &sink, &err) != HK_OK)
        finding(d, HK_NOTE_FAIL, "destination", "destination_unusable",
                HK_NAMED(hk_named_cstr("destination", conf->name), hk_named_cstr("error", err.message)),
                "'%s' cannot be used: %s", conf->name, err.message);
    else
        sink->ops->close(sink);
    if (sink)
        ask_destination(d, conf);
}

static void look_at_destinations(struct doctor *d)
{
    const struct hk_conf_destination *conf = NULL;
    struct hk_loop *loop = NULL;
    struct hk_err err = {.message = ""};
    if (hk_loop_new(&loop, &err) != HK_OK) {
        finding(d, HK_NOTE_FAIL, "destination", "destinations_unseen",
                HK_NAMED(hk_named_cstr("error", err.message)), "%s", err.message);
        return;
    }
    for (size_t i = 0; (conf = hk_config_destination(d->desk->config, i)) != NULL; i++)
        look_at_destination(d, conf, loop);
    hk_loop_free(loop);
}

/* Checks channels as a relay does when it starts. It sends no notice: `alerts test` does that. */
static void look_at_channels(struct doctor *d)
{
    const struct hk_conf_channel *conf = NULL;
    size_t n = 0, wrong = 0;
    for (; d->ask->complete && (conf = hk_config_channel(d->desk->config, n)) != NULL; n++) {
        struct hk_err err = {.message = ""};
        if (hk_channel_check_conf(d->desk->config, conf, &err) == HK_OK)
            continue;
        wrong++;
        finding(d, HK_NOTE_FAIL, "channel", "channel_unusable",
                HK_NAMED(hk_named_cstr("channel", conf->name), hk_named_cstr("error", err.message)),
                "'%s' cannot be used: %s", conf->name, err.message);
    }
    if (n > 0 && wrong == 0)
        finding(d, HK_NOTE_OK, "channels", "channels_ok", HK_NAMED(hk_named_count("n", n)),
                "%zu; 'hikyaku alerts test NAME' sends a test notice", n);
}

static void look_at_limits(struct doctor *d)
{
    struct rlimit limit;
    uint64_t need = (uint64_t)d->desk->config->relay.concurrency + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    uint64_t have = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
    if (have < need)
        finding(d, HK_NOTE_FAIL, "descriptors", "descriptors_few",
                HK_NAMED(hk_named_count("have", have),
                         hk_named_int("concurrency", d->desk->config->relay.concurrency),
                         hk_named_count("need", need)),
                "%" PRIu64 " allowed, a concurrency of %" PRIu32 " needs %" PRIu64
                ": raise it (ulimit -n, LimitNOFILE=) or lower relay.concurrency",
                have, d->desk->config->relay.concurrency, need);
    else if (have < 2 * need)
        finding(d, HK_NOTE_WARN, "descriptors", "descriptors_tight",
                HK_NAMED(hk_named_count("have", have),
                         hk_named_int("concurrency", d->desk->config->relay.concurrency)),
                "%" PRIu64 " allowed, hardly enough for a concurrency of %" PRIu32
                " with idle connections: raise it "
                "(ulimit -n, LimitNOFILE=)",
                have, d->desk->config->relay.concurrency);
    else
        finding(d, HK_NOTE_OK, "descriptors", "descriptors_ok",
                HK_NAMED(hk_named_int("concurrency", d->desk->config->relay.concurrency)),
                "enough for a concurrency of %" PRIu32, d->desk->config->relay.concurrency);
}

static void look_at_libcurl(struct doctor *d)
{
    struct hk_http_version v = hk_http_version();
    if (v.trap)
        finding(d, HK_NOTE_FAIL, "libcurl", "libcurl_trap",
                HK_NAMED(hk_named_cstr("version", v.version), hk_named_cstr("trap", v.trap)), "%s: %s",
                v.version, v.trap);
    else
        finding(d, v.http2 ? HK_NOTE_OK : HK_NOTE_WARN, "libcurl",
                v.http2 ? "libcurl_ok" : "libcurl_no_http2",
                HK_NAMED(hk_named_cstr("version", v.version), hk_named_cstr("tls", v.tls)), "%s, %s%s",
                v.version, v.tls, v.http2 ? "" : ": without HTTP/2");
}

/* What a relay could give up, if this user started it in this way. */
static void look_at_sandbox(struct doctor *d)
{
    if (!d->ask->known)
        return;
    if (!d->ask->can_lock)
        finding(d, HK_NOTE_WARN, "sandbox", "sandbox_none", HK_NAMED_NONE,
                "a relay keeps all system calls: no seccomp in this build or kernel");
    else if (d->ask->is_root)
        finding(d, HK_NOTE_WARN, "sandbox", "sandbox_root", HK_NAMED_NONE,
                "seccomp is there; a relay that is started like this runs as root: "
                "start it as another user, or with --user");
    else
        finding(d, HK_NOTE_OK, "sandbox", "sandbox_ok", HK_NAMED_NONE,
                "seccomp is there, and we are not root");
}

/* ---- the store ---- */

static enum hk_note_level level_of(const struct doctor *d, const struct hk_health_note *note)
{
    bool writes = d->desk->config && d->desk->config->queues.on;
    return writes && strcmp(note->about, HK_NOTE_WRITING) == 0 ? HK_NOTE_WARN : note->level;
}

/* A store writes its notes itself, values and all. */
static void keep_note(struct doctor *d, const struct hk_health_note *note)
{
    const char *about = hk_pool_copy_str(d->mem, hk_str_of(note->about));
    const char *text = hk_pool_copy_str(d->mem, hk_str_of(note->text));
    const char *json = hk_pool_copy_str(d->mem, hk_str_of(note->values));
    keep(d, &(struct hk_symptom){level_of(d, note), about, text, note->code, hk_str_of(json)});
}

static void look_at_engine(struct doctor *d, const struct hk_store_health *h)
{
    finding(d, h->trap ? HK_NOTE_FAIL : HK_NOTE_OK, "engine", h->trap ? "engine_trap" : "engine_ok",
            HK_NAMED(hk_named_cstr("engine", h->engine), hk_named_cstr("trap", h->trap ? h->trap : "")),
            "%s%s%s", h->engine, h->trap ? ": " : "", h->trap ? h->trap : "");
    if (h->schema != HK_OK)
        finding(d, HK_NOTE_FAIL, "schema", "schema_unusable",
                HK_NAMED(hk_named_cstr("error", h->schema_error.message)), "%s", h->schema_error.message);
    else
        finding(d, HK_NOTE_OK, "schema", "schema_ok", HK_NAMED(hk_named_int("version", h->schema_version)),
                "version %" PRIu32, h->schema_version);
    for (size_t i = 0; i < h->n_notes; i++)
        keep_note(d, &h->notes[i]);
}

static void look_at_file(struct doctor *d, const struct hk_store_health *h)
{
    char file[HK_SHOW_NUMBER], wal[HK_SHOW_NUMBER], left[HK_SHOW_NUMBER];
    if (hk_str_eq(hk_str_of(h->journal), hk_str_of("wal")))
        finding(d, HK_NOTE_OK, "journal", "journal_ok", HK_NAMED_NONE, "WAL");
    else
        finding(d, HK_NOTE_WARN, "journal", "journal_not_wal", HK_NAMED(hk_named_cstr("journal", h->journal)),
                "%s, not WAL: readers and writers wait for each other; 'hikyaku init --wal' switches",
                h->journal);
    if (h->integrity == HK_INTEGRITY_BAD)
        finding(d, HK_NOTE_FAIL, "integrity", "integrity_bad", HK_NAMED(hk_named_cstr("damage", h->damage)),
                "%s: stop every program on it, keep a copy, and try .recover of the sqlite3 shell",
                h->damage);
    else if (h->integrity == HK_INTEGRITY_UNFINISHED)
        finding(d, HK_NOTE_OK, "integrity", "integrity_unfinished",
                HK_NAMED(hk_named_int("took_ms", INTEGRITY_MS)),
                "nothing found in %" PRIu64 " s; the file is too large for more", INTEGRITY_MS / 1000);
    else
        finding(d, HK_NOTE_OK, "integrity", "integrity_ok", HK_NAMED_NONE, "quick check passed");
    finding(d, HK_NOTE_OK, "lock", "lock_file", HK_NAMED(hk_named_cstr("file", h->place)),
            "a relay creates %s-relay, which is always empty: do not move it, and leave it out of backups",
            h->place);
    bool grown = h->wal_bytes > 256 * MIB;
    finding(d, grown ? HK_NOTE_WARN : HK_NOTE_OK, "size", grown ? "size_wal_grown" : "size_ok",
            HK_NAMED(hk_named_count("file_bytes", h->file_bytes), hk_named_count("wal_bytes", h->wal_bytes)),
            "%s, WAL %s%s", size_text(h->file_bytes, file), size_text(h->wal_bytes, wal),
            grown ? ": some program keeps a transaction open, end it and the WAL shrinks" : "");
    if (h->free_bytes != UINT64_MAX)
        finding(d,
                h->free_bytes < 32 * MIB    ? HK_NOTE_FAIL
                : h->free_bytes < 512 * MIB ? HK_NOTE_WARN
                                            : HK_NOTE_OK,
                "disk", h->free_bytes < 512 * MIB ? "disk_low" : "disk_ok",
                HK_NAMED(hk_named_count("free_bytes", h->free_bytes)), "%s free%s",
                size_text(h->free_bytes, left),
                h->free_bytes < 512 * MIB ? ": a full disk stops sending; make room" : "");
}

static void look_at_clock(struct doctor *d, const struct hk_store_health *h)
{
    char behind[HK_SHOW_NUMBER];
    int64_t lag_ms = h->high_water_ms - h->clock_ms;
    if (lag_ms > 2000)
        finding(
            d, HK_NOTE_WARN, "clock", "clock_behind", HK_NAMED(hk_named_int("lag_ms", lag_ms)),
            "the host's clock is %s behind the time that the store has seen: nothing is lost, but until it has caught up "
            "leases and waits take longer (not_before and expires_at go by the clock); check the clock (NTP), and if it is right now see 'hikyaku clock show'",
            hk_show_duration((uint64_t)lag_ms, behind));
    else if (h->clock_ms < INT64_C(1704067200000)) /* 2024 */
        finding(d, HK_NOTE_FAIL, "clock", "clock_past", HK_NAMED_NONE,
                "the host's clock is in the past: set it (NTP); signatures will be refused");
    else
        finding(d, HK_NOTE_OK, "clock", "clock_ok", HK_NAMED_NONE, "not behind the store's time");
}

/* ---- what is in it ---- */

static const char *about(struct hk_count count, char out[HK_SHOW_NUMBER])
{
    return hk_show_about(count.n, count.about, out);
}

static void look_at_relay(struct doctor *d, const struct hk_store_status *s)
{
    char text[HK_SHOW_NUMBER], n[48];
    if (s->relay.running)
        finding(d, HK_NOTE_OK, "relay", "relay_running",
                HK_NAMED(hk_named_str("relay", s->relay.name), hk_named_id("lane", s->relay.lane)),
                "%.*s is running (lane %" PRId64 ")", (int)s->relay.name.len, s->relay.name.ptr,
                s->relay.lane);
    else if (s->relay.known)
        finding(d, HK_NOTE_WARN, "relay", "relay_stopped",
                HK_NAMED(hk_named_str("relay", s->relay.name),
                         hk_named_int("ago_ms", s->now_ms - s->relay.until_ms)),
                "%.*s stopped without a word %s ago: start it again with 'hikyaku run'",
                (int)s->relay.name.len, s->relay.name.ptr,
                hk_show_duration((uint64_t)(s->now_ms - s->relay.until_ms), text));
    else
        finding(d, HK_NOTE_WARN, "relay", "relay_none", HK_NAMED_NONE,
                "no relay is running: start one with 'hikyaku run'");
    if (s->due.n == 0) {
        finding(d, HK_NOTE_OK, "backlog", "backlog_none", HK_NAMED_NONE, "nothing is due");
        return;
    }
    int64_t age_ms = s->oldest_due_ms != 0 && s->oldest_due_ms < s->now_ms ? s->now_ms - s->oldest_due_ms : 0;
    finding(d, age_ms > 60000 ? HK_NOTE_WARN : HK_NOTE_OK, "backlog",
            age_ms > 60000 ? "backlog_old" : "backlog_ok",
            HK_NAMED(hk_named_count("n", s->due.n), hk_named_count("estimate", s->due.about),
                     hk_named_int("oldest_ms", age_ms)),
            "%s due, the oldest for %s%s", about(s->due, n), hk_show_duration((uint64_t)age_ms, text),
            age_ms > 60000 ? ": 'hikyaku status' shows where; is a destination paused, slow or limited?"
                           : "");
}

static bool is_kept(const struct doctor *d, struct hk_str name)
{
    for (size_t i = 0; i < d->kept.n; i++)
        if (hk_str_eq(d->kept.items[i].name, name))
            return true;
    return false;
}

enum {
    HELD_LINES = 20
};

/* A relay that runs says that it cannot use it. */
static bool look_at_held(struct doctor *d, const char *name)
{
    struct hk_unusable u;
    char text[HK_SHOW_NUMBER];
    hk_figures_unusable(&d->figures, hk_str_of(name), &u);
    if (!u.relays)
        return false;
    if (++d->held > HELD_LINES)
        return true;
    int64_t ms = u.since_ms < d->figures.now_ms ? d->figures.now_ms - u.since_ms : 0;
    finding(d, HK_NOTE_WARN, "destination", "destination_of_store_unusable",
            HK_NAMED(hk_named_cstr("destination", name), hk_named_count("n", u.relays),
                     hk_named_int("for_ms", ms), hk_named_str("error", u.why)),
            "'%s' of the store cannot be used by %" PRIu64
            " %s, for %s now, and its messages wait: %.*s; mend "
            "that, and relays use it within 5 s",
            name, u.relays, u.relays == 1 ? "relay" : "relays", hk_show_duration((uint64_t)ms, text),
            (int)u.why.len, u.why.ptr);
    return true;
}

/* Destinations of the store, as far as this configuration can judge them. A relay's secrets are its own. */
static void look_at_kept(struct doctor *d)
{
    size_t used = 0;
    for (size_t i = 0; i < d->kept.n; i++) {
        const struct hk_definition *kept = &d->kept.items[i];
        struct hk_conf_destination conf;
        struct hk_err err = {.message = ""};
        const char *name = hk_pool_copy_str(d->mem, kept->name);
        bool of_file = hk_config_destination_named(d->desk->config, kept->name) != NULL;
        if (name && of_file)
            finding(d, HK_NOTE_WARN, "destination", "destination_twice",
                    HK_NAMED(hk_named_cstr("destination", name)),
                    "'%s' is defined in the configuration file and in the store: the file's is used; "
                    "'hikyaku destinations delete' removes the other",
                    name);
        if (!name || of_file || look_at_held(d, name))
            continue;
        const struct hk_definition_ask ask = {.config = d->desk->config, .name = name, .text = kept->text};
        if (hk_config_define(&ask, d->mem, &conf, NULL, &err) == HK_OK)
            used++;
        else
            finding(d, HK_NOTE_WARN, "destination", "destination_of_store_invalid",
                    HK_NAMED(hk_named_cstr("destination", name), hk_named_cstr("error", err.message)),
                    "'%s' of the store cannot be used with this configuration, its messages wait: %s", name,
                    err.message);
    }
    if (d->held > HELD_LINES)
        finding(d, HK_NOTE_WARN, "destination", "destinations_of_store_more",
                HK_NAMED(hk_named_int("n", d->held - HELD_LINES)),
                "%u more of the store that relays cannot use: 'hikyaku destinations list' shows them",
                d->held - HELD_LINES);
    if (used > 0)
        finding(d, HK_NOTE_OK, "destination", "destinations_of_store_ok", HK_NAMED(hk_named_count("n", used)),
                "%zu of the store", used);
    if (d->kept.n > d->desk->config->definitions.max)
        finding(
            d, HK_NOTE_WARN, "destination", "destinations_of_store_too_many",
            HK_NAMED(hk_named_count("n", d->kept.n), hk_named_count("max", d->desk->config->definitions.max)),
            "the store has %zu, and \"definitions.max\" lets in %lu: messages for the others wait", d->kept.n,
            (unsigned long)d->desk->config->definitions.max);
}

static void look_at_dests(struct doctor *d, const struct hk_store_status *s)
{
    char n[48];
    for (size_t i = 0; i < s->n_dests; i++) {
        const struct hk_dest_status *x = &s->dests[i];
        struct hk_count live = {x->pending.n + x->retrying.n, x->pending.about || x->retrying.about};
        int len = x->name.len < 100 ? (int)x->name.len : 100;
        if (x->name.len > 0 && live.n > 0 && !hk_config_destination_named(d->desk->config, x->name) &&
            !is_kept(d, x->name))
            finding(d, HK_NOTE_WARN, "destination", "destination_unknown",
                    HK_NAMED(hk_named_str("destination", x->name), hk_named_count("n", live.n),
                             hk_named_count("estimate", live.about)),
                    "'%.*s' is not configured, %s messages name it: a relay makes them dead letters; add it",
                    len, x->name.ptr, about(live, n));
        if (x->paused)
            finding(
                d, HK_NOTE_WARN, "destination", "destination_paused",
                HK_NAMED(hk_named_str("destination", x->name), hk_named_str("by", x->actor),
                         hk_named_str("reason", x->reason), hk_named_count("n", live.n),
                         hk_named_count("estimate", live.about)),
                "'%.*s' is paused by %.*s (%.*s), %s messages wait: 'hikyaku destinations resume' ends it",
                len, x->name.ptr, x->actor.len < 100 ? (int)x->actor.len : 100, x->actor.ptr,
                x->reason.len < 200 ? (int)x->reason.len : 200, x->reason.ptr, about(live, n));
    }
    if (s->dead.n > 0)
        finding(d, HK_NOTE_WARN, "dead letters", "dead_open",
                HK_NAMED(hk_named_count("n", s->dead.n), hk_named_count("estimate", s->dead.about)),
                "%s open: 'hikyaku dead groups' shows why", about(s->dead, n));
    else
        finding(d, HK_NOTE_OK, "dead letters", "dead_none", HK_NAMED_NONE, "no open dead letters");
}

/* Without them all but the word of relays is known. */
static void read_figures(struct doctor *d)
{
    const struct hk_figures *figures = NULL;
    struct hk_err err = {.message = ""};
    if (d->desk->ops->figures(d->desk->admin, &figures, &err) != HK_OK)
        return;
    d->figures = *figures;
    hk_desk_keep(d->desk, d->mem);
}

static void look_inside(struct doctor *d)
{
    struct hk_err err = {.message = ""};
    const struct hk_store_status *status = NULL;
    const struct hk_definitions *kept = NULL;
    enum hk_code rc = hk_desk_open(d->desk, &err);
    if (rc == HK_OK)
        rc = d->desk->ops->definitions(d->desk->admin, NULL, &kept, &err);
    if (rc == HK_OK) {
        d->kept = *kept;
        hk_desk_keep(d->desk, d->mem);
        read_figures(d);
        look_at_kept(d);
        rc = d->desk->ops->status(d->desk->admin, &status, &err);
    }
    if (rc != HK_OK) {
        finding(d, HK_NOTE_FAIL, "messages", "messages_unreadable",
                HK_NAMED(hk_named_cstr("error", err.message)), "%s", err.message);
        return;
    }
    look_at_relay(d, status);
    look_at_dests(d, status);
}

static void look_at_store(struct doctor *d)
{
    struct hk_err err = {.message = ""};
    struct hk_store_health health;
    const struct hk_store_admin_ops *ops = hk_store_admin_by_url(d->desk->url, &err);
    if (!ops || ops->inspect(d->desk->url, INTEGRITY_MS, &health, &err) != HK_OK) {
        finding(d, HK_NOTE_FAIL, "database", "database_unreachable",
                HK_NAMED(hk_named_cstr("error", err.message)), "%s", err.message);
        return;
    }
    finding(d, HK_NOTE_OK, "database", "database_ok", HK_NAMED(hk_named_cstr("database", health.place)),
            "%s can be reached", health.place);
    look_at_engine(d, &health);
    if (health.is_file) {
        look_at_file(d, &health);
        look_at_clock(d, &health);
    }
    if (health.schema == HK_OK)
        look_inside(d);
}

static enum hk_code doctor(struct hk_desk *desk, const struct hk_caller *caller,
                           const struct hk_doctor_ask *ask, struct hk_pool *mem, struct hk_diagnosis *out,
                           struct hk_err *err)
{
    struct doctor d = {.desk = desk, .ask = ask, .mem = mem, .out = out};
    (void)caller;
    *out = (struct hk_diagnosis){.n = 0};
    look_at_config(&d);
    look_at_keys(&d);
    look_at_destinations(&d);
    look_at_channels(&d);
    look_at_limits(&d);
    look_at_sandbox(&d);
    look_at_libcurl(&d);
    look_at_store(&d);
    return d.nomem ? hk_err_set(err, HK_NOMEM, "out of memory") : HK_OK;
}

/* ---- the table ---- */

HK_OP_RUN(doctor)

const struct hk_op hk_op_doctor = {.noun = "doctor",
                                   .summary = "check everything that a relay needs",
                                   .details = "Exit code 1 when something is wrong; a warning alone is 0.",
                                   .route = "GET /doctor",
                                   .role = HK_ROLE_VIEWER,
                                   .request_size = sizeof(struct hk_doctor_ask),
                                   .result_size = sizeof(struct hk_diagnosis),
                                   .run = doctor_op,
                                   .form = hk_form_diagnosis};
