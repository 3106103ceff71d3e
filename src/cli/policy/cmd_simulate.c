/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku policy simulate: the same crowd twice, with the policy as it is, and without its jitter; or, when it has none,
 * with full jitter. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/chart.h"
#include "cli/policy/herd.h"
#include "cli/policy/policies.h"
#include "desk/put.h"

#define PICTURE_MAX ((size_t)4 << 20)

struct comparison {
    const struct hk_policy *policy;
    struct hk_herd_options options;
    bool has_jitter;
    struct hk_herd loads[HK_CHART_SERIES];
};

static const char *other_name(const struct comparison *c)
{
    return c->has_jitter ? "without jitter" : "with full jitter";
}

/* ---- figures ---- */

static const char *served(uint64_t ms, char out[HK_OUT_TEXT])
{
    return ms == UINT64_MAX ? "never" : hk_out_duration(ms, out);
}

static void print_figure(const char *what, const char *a, const char *b)
{
    (void)printf("  %-32s %20s %16s\n", what, a, b);
}

static void print_count(const char *what, uint64_t a, uint64_t b, const char *unit)
{
    char digits[HK_OUT_TEXT], left[HK_OUT_TEXT + 4], right[HK_OUT_TEXT + 4];

    (void)snprintf(left, sizeof left, "%s%s", hk_out_count(a, digits), unit);
    (void)snprintf(right, sizeof right, "%s%s", hk_out_count(b, digits), unit);
    print_figure(what, left, right);
}

static void print_served(const char *what, uint64_t a, uint64_t b)
{
    char left[HK_OUT_TEXT], right[HK_OUT_TEXT];
    print_figure(what, served(a, left), served(b, right));
}

static void print_figures(const struct comparison *c)
{
    const struct hk_herd *a = &c->loads[HK_CHART_POLICY], *b = &c->loads[HK_CHART_BASELINE];
    char left[HK_OUT_TEXT], right[HK_OUT_TEXT];

    print_figure("", hk_policy_name(c->policy), other_name(c));
    print_count("attempts in total", a->attempts, b->attempts, "");
    print_count("peak during the outage", a->peak_down, b->peak_down, "/s");
    print_count("peak after it", a->peak_up, b->peak_up, "/s");
    (void)snprintf(left, sizeof left, a->herding < 100 ? "%.1f" : "%.0f", a->herding);
    (void)snprintf(right, sizeof right, b->herding < 100 ? "%.1f" : "%.0f", b->herding);
    print_figure("herding (peak / mean after it)", left, right);
    print_served("50 % served, after recovery", a->half_ms, b->half_ms);
    print_served("99 % served", a->most_ms, b->most_ms);
    print_served("all served", a->all_ms, b->all_ms);
    print_count("dead letters", a->dead, b->dead, "");
    if (a->waiting > 0 || b->waiting > 0)
        print_count("still waiting a week later", a->waiting, b->waiting, "");
}

/* ---- the conclusion ---- */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* A herd of one is none: only what becomes of it. */
static void conclude_one(const struct comparison *c, struct hk_buf *out)
{
    const struct hk_herd *a = &c->loads[HK_CHART_POLICY];
    char attempts[HK_OUT_TEXT], after[HK_OUT_TEXT];

    (void)hk_out_count(a->attempts, attempts);
    if (a->dead > 0)
        (void)hk_buf_addf(
            out,
            "The only client gives up after %s attempt%s and becomes a dead letter: this policy does "
            "not outlast the outage.",
            attempts, plural(a->attempts));
    else if (a->waiting > 0)
        (void)hk_buf_adds(out, "The only client is still waiting a week later.");
    else
        (void)hk_buf_addf(out, "The only client is served at attempt %s, %s after recovery.", attempts,
                          hk_out_duration(a->all_ms, after));
}

static void conclude_dead(const struct comparison *c, struct hk_buf *out)
{
    const struct hk_herd *a = &c->loads[HK_CHART_POLICY], *b = &c->loads[HK_CHART_BASELINE];
    char dead[HK_OUT_TEXT], all[HK_OUT_TEXT];

    (void)hk_buf_addf(out, "%s of %s clients give up and become dead letters: ", hk_out_count(a->dead, dead),
                      hk_out_count(c->options.clients, all));
    if (a->dead == c->options.clients)
        (void)hk_buf_adds(out, "this policy does not outlast the outage.");
    else if (!c->has_jitter)
        (void)hk_buf_addf(
            out,
            "it has no jitter, so that its clients come back together. With 'jitter: full' it would "
            "be %s.",
            b->dead == 0 ? "none" : hk_out_count(b->dead, dead));
    else
        (void)hk_buf_adds(out, "allow more attempts or time, or more capacity.");
}

static void conclude_times(const struct comparison *c, struct hk_buf *out)
{
    const struct hk_herd *a = &c->loads[HK_CHART_POLICY], *b = &c->loads[HK_CHART_BASELINE];
    char left[HK_OUT_TEXT], right[HK_OUT_TEXT];

    if (a->most_ms == UINT64_MAX)
        return;
    (void)hk_buf_addf(out, ", and has served 99 %% of them %s after its recovery",
                      hk_out_duration(a->most_ms, left));
    if (b->most_ms == UINT64_MAX)
        (void)hk_buf_addf(out, " (%s: never)", other_name(c));
    else if (a->most_ms != b->most_ms)
        (void)hk_buf_addf(out, c->has_jitter ? " instead of %s" : " (with it: %s)",
                          hk_out_duration(b->most_ms, right));
}

/* One sentence for somebody who reads nothing else. */
static void conclude(const struct comparison *c, struct hk_buf *out)
{
    uint64_t a = c->loads[HK_CHART_POLICY].peak_up, b = c->loads[HK_CHART_BASELINE].peak_up;
    char left[HK_OUT_TEXT], right[HK_OUT_TEXT];

    (void)hk_out_count(a, left);
    (void)hk_out_count(b, right);
    if (c->options.clients == 1) {
        conclude_one(c, out);
        return;
    }
    if (c->loads[HK_CHART_POLICY].dead > 0) {
        conclude_dead(c, out);
        return;
    }
    if (c->has_jitter && a < b)
        (void)hk_buf_addf(out,
                          "Once it is back, the destination sees at most %s request%s a second instead of %s",
                          left, plural(a), right);
    else if (c->has_jitter)
        (void)hk_buf_addf(out, "Its jitter does not lower the peak here (%s request%s a second, %s without)",
                          left, plural(a), right);
    else if (b < a)
        (void)hk_buf_addf(
            out,
            "This policy has no jitter: once it is back, the destination sees up to %s request%s a "
            "second (with 'jitter: full': %s)",
            left, plural(a), right);
    else
        (void)hk_buf_addf(out,
                          "This policy has no jitter, and 'jitter: full' would not lower the peak here: the "
                          "destination sees up to %s request%s a second (with it: %s)",
                          left, plural(a), right);
    conclude_times(c, out);
    (void)hk_buf_addc(out, '.');
}

/* ---- JSON ---- */

static void member_u64(struct hk_json *json, const char *key, uint64_t value)
{
    hk_json_key(json, key);
    if (value == UINT64_MAX)
        hk_json_null(json);
    else
        hk_json_u64(json, value);
}

static void load_json(struct hk_json *json, const char *key, const struct hk_herd *load)
{
    hk_json_key(json, key);
    hk_json_object(json);
    member_u64(json, "attempts", load->attempts);
    member_u64(json, "peak_during_outage_per_s", load->peak_down);
    member_u64(json, "peak_after_outage_per_s", load->peak_up);
    hk_put_double(json, "herding_factor", load->herding);
    member_u64(json, "served_50_ms", load->half_ms);
    member_u64(json, "served_99_ms", load->most_ms);
    member_u64(json, "served_all_ms", load->all_ms);
    member_u64(json, "delivered", load->delivered);
    member_u64(json, "dead", load->dead);
    member_u64(json, "waiting", load->waiting);
    hk_json_end(json);
}

static int print_json(const struct comparison *c, const char *conclusion)
{
    struct hk_json json;
    struct hk_buf buf;

    hk_buf_init(&buf, 1 << 16);
    hk_json_init(&json, &buf, true);
    hk_json_object(&json);
    hk_put_cstr(&json, "policy", hk_policy_name(c->policy));
    member_u64(&json, "clients", c->options.clients);
    member_u64(&json, "outage_ms", c->options.outage_ms);
    member_u64(&json, "spread_ms", c->options.spread_ms);
    hk_put_double(&json, "capacity_per_s", c->options.capacity_per_s);
    hk_put_u64(&json, "seed", c->options.seed);
    load_json(&json, "as_is", &c->loads[HK_CHART_POLICY]);
    load_json(&json, c->has_jitter ? "without_jitter" : "with_full_jitter", &c->loads[HK_CHART_BASELINE]);
    hk_put_cstr(&json, "conclusion", conclusion);
    hk_json_end(&json);
    (void)hk_buf_addc(&buf, '\n');
    return hk_out_buffer(&buf);
}

/* ---- pictures ---- */

static struct hk_chart chart_of(const struct comparison *c)
{
    return (struct hk_chart){
        .policy = hk_policy_name(c->policy),
        .other = other_name(c),
        .options = &c->options,
        .series = {&c->loads[HK_CHART_POLICY], &c->loads[HK_CHART_BASELINE]},
        .span_ms = hk_chart_span_ms(&c->options, &c->loads[HK_CHART_POLICY]),
    };
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return true;
}

/* Beside the target and then renamed, so that nobody sees half a picture and a failure leaves the old one. */
static bool replace_file(const char *path, const char *temporary, int fd, const struct hk_buf *buf)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    bool written = fchmod(fd, 0666 & ~mask) == 0 && write_all(fd, hk_buf_cstr(buf), buf->len);
    int why = errno;

    if (close(fd) != 0 && written) {
        written = false;
        why = errno;
    }
    if (written && rename(temporary, path) == 0)
        return true;
    if (written)
        why = errno;
    (void)unlink(temporary);
    errno = why;
    return false;
}

/* A device, a pipe or a link is written through; only a file, or nothing, is replaced. */
static bool is_special(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static bool write_through(const char *path, const struct hk_buf *buf)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return false;
    bool written = write_all(fd, hk_buf_cstr(buf), buf->len);
    int why = errno;
    if (close(fd) != 0 && written)
        return false;
    errno = why;
    return written;
}

static bool write_picture(const char *path, char *temporary, const struct hk_buf *buf)
{
    if (is_special(path))
        return write_through(path, buf);
    int fd = mkstemp(temporary);
    return fd >= 0 && replace_file(path, temporary, fd, buf);
}

static int write_svg(const struct comparison *c, const char *path)
{
    struct hk_chart chart = chart_of(c);
    struct hk_buf buf, temporary;
    int code = HK_EXIT_OK;

    hk_buf_init(&buf, PICTURE_MAX);
    hk_buf_init(&temporary, 8192);
    hk_chart_svg(&chart, &buf);
    (void)hk_buf_addf(&temporary, "%s.XXXXXX", path);
    if (hk_buf_status(&buf) != HK_OK || hk_buf_status(&temporary) != HK_OK) {
        code = hk_out_error(HK_EXIT_FAILURE, "the picture does not fit in memory");
    } else if (!write_picture(path, temporary.data, &buf)) {
        code = hk_out_error(HK_EXIT_FAILURE, "cannot write '%s': %s", path, strerror(errno));
    }
    hk_buf_fini(&temporary);
    hk_buf_fini(&buf);
    return code;
}

static int print_text(const struct comparison *c, const char *conclusion)
{
    struct hk_chart_look look = {.width = hk_out_width(), .utf8 = hk_out_utf8(), .color = hk_out_color()};
    struct hk_chart chart = chart_of(c);
    char clients[HK_OUT_TEXT], outage[HK_OUT_TEXT], rate[HK_OUT_TEXT];
    struct hk_buf buf;

    (void)printf("%s: %s clients, destination down for %s, then it serves %s/s\n\n",
                 hk_policy_name(c->policy), hk_out_count(c->options.clients, clients),
                 hk_out_duration(c->options.outage_ms, outage), hk_out_rate(c->options.capacity_per_s, rate));
    hk_buf_init(&buf, PICTURE_MAX);
    hk_chart_text(&chart, &look, &buf);
    int code = hk_out_buffer(&buf);
    (void)printf("\n");
    print_figures(c);
    (void)printf("\n%s\n", conclusion);
    return code;
}

/* ---- the command ---- */

static int run_both(struct comparison *c)
{
    struct hk_policy *other = NULL;
    struct hk_herd_options options = c->options;
    struct hk_err err;

    c->has_jitter = hk_herd_has_jitter(c->policy);
    enum hk_code rc = c->has_jitter ? hk_herd_without_jitter(c->policy, &other, &err)
                                    : hk_herd_with_full_jitter(c->policy, &other, &err);
    if (rc == HK_OK)
        rc = hk_herd_run(&options, &c->loads[HK_CHART_POLICY], &err);
    options.policy = other;
    if (rc == HK_OK)
        rc = hk_herd_run(&options, &c->loads[HK_CHART_BASELINE], &err);
    hk_policy_free(other);
    return rc == HK_OK ? HK_EXIT_OK : hk_out_failure(&err);
}

static int show(const struct hk_cli *cli, const struct comparison *c)
{
    const char *svg = hk_args_value(cli, "svg");
    struct hk_buf conclusion;

    int code = svg != NULL ? write_svg(c, svg) : HK_EXIT_OK;
    if (code != HK_EXIT_OK)
        return code;
    hk_buf_init(&conclusion, 1024);
    conclude(c, &conclusion);
    if (hk_buf_status(&conclusion) != HK_OK)
        code = hk_out_error(HK_EXIT_FAILURE, "out of memory");
    else if (hk_args_flag(cli, "json"))
        code = print_json(c, hk_buf_cstr(&conclusion));
    else
        code = print_text(c, hk_buf_cstr(&conclusion));
    hk_buf_fini(&conclusion);
    return code;
}

static bool read_options(const struct hk_cli *cli, struct hk_herd_options *o)
{
    uint64_t clients = 10000;

    o->outage_ms = 60000;
    o->spread_ms = 1000;
    o->seed = 1;
    if (!hk_args_u64(cli, "clients", 1, HK_HERD_CLIENTS_MAX, &clients) ||
        !hk_args_duration(cli, "outage", 0, HK_HERD_OUTAGE_MAX, &o->outage_ms) ||
        !hk_args_duration(cli, "spread", 0, HK_HERD_OUTAGE_MAX, &o->spread_ms) ||
        !hk_args_u64(cli, "seed", 0, UINT64_MAX, &o->seed))
        return false;
    o->clients = (uint32_t)clients;
    o->capacity_per_s = clients > 10 ? (double)clients / 10.0 : 1.0;
    return hk_args_rate(cli, "capacity", 0.001, 1e9, &o->capacity_per_s);
}

int hk_cmd_policy_simulate(struct hk_cli *cli)
{
    struct comparison c = {.policy = NULL};
    struct hk_policies *policies = NULL;

    if (!read_options(cli, &c.options))
        return HK_EXIT_USAGE;
    int code = hk_cli_policy_to_run(cli, &policies, &c.policy);
    c.options.policy = c.policy;
    if (code == HK_EXIT_OK)
        code = run_both(&c);
    if (code == HK_EXIT_OK)
        code = show(cli, &c);
    hk_herd_fini(&c.loads[HK_CHART_POLICY]);
    hk_herd_fini(&c.loads[HK_CHART_BASELINE]);
    hk_policies_free(policies);
    return code;
}
