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

#include "base/str.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/chart.h"
#include "cli/policy/policies.h"
#include "cli/table.h"
#include "config/text.h"

#define PICTURE_MAX ((size_t)4 << 20)

/* ---- figures ---- */

static const char *served(uint64_t ms, char out[HK_SHOW_NUMBER])
{
    return ms == UINT64_MAX ? "never" : hk_show_duration(ms, out);
}

static void add_figure(struct hk_buf *out, const char *what, const char *a, const char *b)
{
    (void)hk_buf_addf(out, "  %-32s %20s %16s\n", what, a, b);
}

static void add_count(struct hk_buf *out, const char *what, uint64_t a, uint64_t b, const char *unit)
{
    char digits[HK_SHOW_NUMBER], left[HK_SHOW_NUMBER + 4], right[HK_SHOW_NUMBER + 4];

    (void)snprintf(left, sizeof left, "%s%s", hk_show_count(a, digits), unit);
    (void)snprintf(right, sizeof right, "%s%s", hk_show_count(b, digits), unit);
    add_figure(out, what, left, right);
}

static void add_served(struct hk_buf *out, const char *what, uint64_t a, uint64_t b)
{
    char left[HK_SHOW_NUMBER], right[HK_SHOW_NUMBER];
    add_figure(out, what, served(a, left), served(b, right));
}

static void add_figures(struct hk_buf *out, const struct hk_policy_simulated *c)
{
    const struct hk_herd *a = &c->as_is, *b = &c->other;
    char left[HK_SHOW_NUMBER], right[HK_SHOW_NUMBER];

    add_figure(out, "", c->name, hk_policy_other_text(c));
    add_count(out, "attempts in total", a->attempts, b->attempts, "");
    add_count(out, "peak during the outage", a->peak_down, b->peak_down, "/s");
    add_count(out, "peak after it", a->peak_up, b->peak_up, "/s");
    (void)snprintf(left, sizeof left, a->herding < 100 ? "%.1f" : "%.0f", a->herding);
    (void)snprintf(right, sizeof right, b->herding < 100 ? "%.1f" : "%.0f", b->herding);
    add_figure(out, "herding (peak / mean after it)", left, right);
    add_served(out, "50 % served, after recovery", a->half_ms, b->half_ms);
    add_served(out, "99 % served", a->most_ms, b->most_ms);
    add_served(out, "all served", a->all_ms, b->all_ms);
    add_count(out, "dead letters", a->dead, b->dead, "");
    if (a->waiting > 0 || b->waiting > 0)
        add_count(out, "still waiting a week later", a->waiting, b->waiting, "");
}

/* ---- pictures ---- */

static struct hk_chart chart_of(const struct hk_policy_simulated *c)
{
    return (struct hk_chart){
        .policy = c->name,
        .other = hk_policy_other_text(c),
        .options = &c->options,
        .series = {&c->as_is, &c->other},
        .span_ms = hk_chart_span_ms(&c->options, &c->as_is),
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

static int write_svg(const struct hk_policy_simulated *c, const char *path)
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

static void print_simulation(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_policy_simulated *c = result;
    struct hk_chart_look look = {.width = hk_out_width(), .utf8 = hk_out_utf8(), .color = hk_out_color()};
    struct hk_chart chart = chart_of(c);
    char clients[HK_SHOW_NUMBER], outage[HK_SHOW_NUMBER], rate[HK_SHOW_NUMBER];

    (void)ask;
    (void)hk_buf_addf(out, "%s: %s clients, destination down for %s, then it serves %s/s\n\n", c->name,
                      hk_show_count(c->options.clients, clients),
                      hk_show_duration(c->options.outage_ms, outage),
                      hk_show_rate(c->options.capacity_per_s, rate));
    hk_chart_text(&chart, &look, out);
    (void)hk_buf_addc(out, '\n');
    add_figures(out, c);
    (void)hk_buf_addc(out, '\n');
    (void)hk_table_safe(out, c->conclusion, 0);
    (void)hk_buf_addc(out, '\n');
}

/* ---- the command ---- */

/* What no run can give would be drawn without an end: a server may answer anything. */
static bool is_possible(const struct hk_policy_simulated *c)
{
    const struct hk_herd *both[] = {&c->as_is, &c->other};
    uint64_t end_ms = HK_HERD_OUTAGE_MAX + HK_HERD_HORIZON_MS;
    for (size_t i = 0; i < 2; i++)
        if (both[i]->last_ms > end_ms || (both[i]->most_ms != UINT64_MAX && both[i]->most_ms > end_ms))
            return false;
    return c->name != NULL && hk_text_is_name(hk_str_of(c->name)) &&
           c->options.outage_ms <= HK_HERD_OUTAGE_MAX && c->options.capacity_per_s > 0 &&
           c->options.capacity_per_s <= 1e9;
}

static int draw(const struct hk_ask *ask)
{
    struct hk_policy_simulated *c = ask->result;
    const char *svg = hk_args_value(ask->cli, "svg");
    if (!is_possible(c))
        return hk_out_error(HK_EXIT_FAILURE, "the server's answer is no simulation");
    int code = svg != NULL ? write_svg(c, svg) : HK_EXIT_OK;
    if (hk_args_flag(ask->cli, "json") && !hk_args_flag(ask->cli, "details"))
        c->as_is.slots = c->other.slots = NULL; /* asked for the picture's sake only */
    return code;
}

int hk_cmd_policy_simulate(struct hk_cli *cli)
{
    return hk_policy_ask(cli, draw, print_simulation);
}
