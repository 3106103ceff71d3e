/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables for people: as YAML to start from, and as the tables of docs/configuration.md. */
#include <string.h>

#include "base/buf.h"
#include "config/tables.h"

/* ---- YAML: what has a default stands there, the rest is commented out ---- */

#define SEEN_MAX 64

struct writer {
    struct hk_buf *out;
    unsigned indent;
    bool commented;             /* inside an item that is an example */
    unsigned comment_at;        /* column of its # */
    const char *bullet;         /* "- " before the next key of a list's item */
    const void *seen[SEEN_MAX]; /* tables written in full already */
    size_t n_seen;
};

static void add_spaces(struct hk_buf *out, unsigned n)
{
    while (n--)
        hk_buf_addc(out, ' ');
}

static void begin_line(struct writer *w, bool commented)
{
    unsigned at = w->commented ? w->comment_at : w->indent;
    if (!commented && !w->commented) {
        add_spaces(w->out, w->indent);
    } else {
        add_spaces(w->out, at);
        hk_buf_adds(w->out, "# ");
        add_spaces(w->out, w->indent - at);
    }
    if (w->bullet) {
        hk_buf_adds(w->out, w->bullet);
        w->bullet = NULL;
        w->indent += 2;
    }
}

/* A part that ran out of memory spoils the whole. */
static void finish(struct hk_buf *part, struct hk_buf *out)
{
    if (hk_buf_status(part) != HK_OK && hk_buf_status(out) == HK_OK)
        out->status = hk_buf_status(part);
    hk_buf_fini(part);
}

static void add_facts(const struct hk_opt *opt, struct hk_buf *out)
{
    struct hk_buf range;
    hk_buf_init(&range, 128);
    hk_schema_range_text(opt, &range);
    hk_buf_addf(out, "  # %s (%s%s", opt->help, opt->flags & HK_OPT_REQUIRED ? "required " : "",
                opt->flags & HK_OPT_CHOICE ? "exactly one of these: " : "");
    hk_schema_type_text(opt, out);
    hk_buf_addf(out, "%s%s", range.len ? ", " : "", hk_buf_cstr(&range));
    if (opt->otherwise)
        hk_buf_addf(out, "; default: %s", opt->otherwise);
    hk_buf_adds(out, ")\n");
    finish(&range, out);
}

static bool seen_before(struct writer *w, const struct hk_opt_table *table)
{
    for (size_t i = 0; i < w->n_seen; i++) {
        if (w->seen[i] == table)
            return true;
    }
    if (w->n_seen < SEEN_MAX)
        w->seen[w->n_seen++] = table;
    return false;
}

static void write_table(struct writer *w, const struct hk_opt_table *table);

/* Quoted where other readers of YAML would take it for something that is no text. */
static void add_key(const struct hk_opt *opt, struct hk_buf *out)
{
    const char *quote = strcmp(opt->key, "null") == 0 ? "\"" : "";
    hk_buf_addf(out, "%s%s%s:", quote, opt->key, quote);
}

static void write_scalar(struct writer *w, const struct hk_opt *opt)
{
    bool live = opt->fallback && *opt->fallback;
    begin_line(w, !live);
    add_key(opt, w->out);
    hk_buf_addf(w->out, " %s", live ? opt->fallback : hk_schema_example(opt));
    add_facts(opt, w->out);
}

/* The item of a map or list, as an example. */
static void write_item(struct writer *w, const struct hk_opt *opt)
{
    struct writer item = *w;
    item.indent += 2;
    if (!item.commented) {
        item.commented = true;
        item.comment_at = item.indent;
    }
    if (opt->type == HK_OPT_LIST) {
        item.bullet = "- ";
    } else {
        begin_line(&item, true);
        hk_buf_adds(item.out, "NAME:\n");
        item.indent += 2;
    }
    write_table(&item, opt->sub);
    memcpy(w->seen, item.seen, sizeof w->seen);
    w->n_seen = item.n_seen;
}

static void write_container(struct writer *w, const struct hk_opt *opt)
{
    bool once = opt->sub && seen_before(w, opt->sub);
    bool scalar_items = !opt->sub || (opt->sub->n_opts == 1 && opt->sub->opts[0].flags & HK_OPT_HIDDEN);
    if (once || scalar_items) {
        write_scalar(w, opt);
        return;
    }
    begin_line(w, false);
    add_key(opt, w->out);
    add_facts(opt, w->out);
    if (opt->type != HK_OPT_SECTION) {
        write_item(w, opt);
        return;
    }
    w->indent += 2;
    write_table(w, opt->sub);
    w->indent -= 2;
}

static void write_table(struct writer *w, const struct hk_opt_table *table)
{
    for (size_t i = 0; i < table->n_opts; i++) {
        const struct hk_opt *opt = &table->opts[i];
        if (opt->flags & HK_OPT_HIDDEN)
            continue;
        if (opt->type == HK_OPT_SECTION || opt->type == HK_OPT_MAP || opt->type == HK_OPT_LIST)
            write_container(w, opt);
        else
            write_scalar(w, opt);
    }
}

void hk_config_schema_text(struct hk_buf *out)
{
    struct writer w = {.out = out};
    hk_buf_adds(out, "# hikyaku's configuration: every key. Keys without a comment sign show the default.\n"
                     "# In values: ${VAR}, ${VAR:-default}, ${file:PATH}; $${ is a literal ${.\n");
    write_table(&w, &hk_root_table);
}

/* ---- Markdown ---- */

static void add_escaped(struct hk_buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("*|<_", *text))
            hk_buf_addc(out, '\\');
        hk_buf_addc(out, *text);
    }
}

static void add_default(const struct hk_opt *opt, struct hk_buf *out)
{
    if (opt->flags & HK_OPT_REQUIRED)
        hk_buf_adds(out, "required");
    else if (opt->flags & HK_OPT_CHOICE)
        hk_buf_adds(out, "exactly one of these");
    else if (opt->fallback && *opt->fallback)
        hk_buf_addf(out, "`%s`", opt->fallback);
    else if (opt->otherwise)
        add_escaped(out, opt->otherwise);
    else if (opt->type == HK_OPT_SECTION)
        hk_buf_adds(out, "see below");
    else
        hk_buf_adds(out, opt->type == HK_OPT_MAP || opt->type == HK_OPT_LIST ? "empty" : "none");
}

static void add_row(const struct hk_opt *opt, struct hk_buf *out)
{
    struct hk_buf text;
    hk_buf_init(&text, 1024);
    hk_schema_type_text(opt, &text);
    if (opt->flags & HK_OPT_HIDDEN)
        hk_buf_adds(out, "| *(no key)* | ");
    else
        hk_buf_addf(out, "| `%s` | ", opt->key);
    add_escaped(out, hk_buf_cstr(&text));
    finish(&text, out);
    hk_schema_range_text(opt, &text);
    hk_buf_addf(out, "%s%s | ", text.len ? ", " : "", hk_buf_cstr(&text));
    add_default(opt, out);
    hk_buf_adds(out, " | ");
    add_escaped(out, opt->help);
    hk_buf_adds(out, " |\n");
    finish(&text, out);
}

static void add_heading(const char *where, struct hk_buf *out)
{
    if (!*where) {
        hk_buf_adds(out, "### Top level\n\n");
        return;
    }
    hk_buf_adds(out, "### `");
    for (; *where; where++) {
        if (*where == ',')
            hk_buf_adds(out, "`, `");
        else if (*where != ' ')
            hk_buf_addc(out, *where);
    }
    hk_buf_adds(out, "`\n\n");
}

void hk_config_schema_markdown(struct hk_buf *out)
{
    const struct hk_opt_table *table = NULL;
    for (size_t i = 0; (table = hk_schema_table(i)) != NULL; i++) {
        add_heading(table->where, out);
        if (table->shorthand)
            hk_buf_addf(out, "A lone value is taken for the first of these.\n\n");
        hk_buf_adds(out, "| key | type | default | meaning |\n|---|---|---|---|\n");
        for (size_t k = 0; k < table->n_opts; k++)
            add_row(&table->opts[k], out);
        hk_buf_addc(out, '\n');
    }
    hk_buf_adds(out, "### Presets\n\n| preset | what it does |\n|---|---|\n");
    for (size_t i = 0; hk_preset_name(i); i++) {
        hk_buf_addf(out, "| `%s` | ", hk_preset_name(i));
        add_escaped(out, hk_preset_summary(i));
        hk_buf_adds(out, " |\n");
    }
}
