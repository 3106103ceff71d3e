/* SPDX-License-Identifier: Apache-2.0 */
/* One scalar, typed by its option and not by how it looks: `no` is a text where a text is asked for. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "config/definition.h"
#include "config/interp.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"

enum verdict {
    GOOD,
    MALFORMED,    /* not of this type */
    OUT_OF_RANGE, /* of this type, but outside its bounds */
    UNFIT,        /* `why` says it */
    NO_MEMORY
};

static const struct {
    const char *name;   /* in the reference */
    const char *phrase; /* in messages */
    const char *example;
    size_t size;
} types[] = {
    [HK_OPT_BOOL] = {"bool", "true or false", "true", sizeof(bool)},
    [HK_OPT_U32] = {"whole number", "a whole number", "10", sizeof(uint32_t)},
    [HK_OPT_U64] = {"whole number", "a whole number", "10", sizeof(uint64_t)},
    [HK_OPT_DURATION] = {"duration", "a duration", "30s", sizeof(uint64_t)},
    [HK_OPT_SIZE] = {"size", "a size", "4MiB", sizeof(uint64_t)},
    [HK_OPT_RATE] = {"rate", "a rate", "100/s", sizeof(double)},
    [HK_OPT_DOUBLE] = {"number", "a number", "0.5", sizeof(double)},
    [HK_OPT_STRING] = {"text", "a text", "text", sizeof(const char *)},
    [HK_OPT_PATH] = {"path", "a path", "ca.pem", sizeof(const char *)},
    [HK_OPT_NAME] = {"name", "a name", "orders", sizeof(const char *)},
    [HK_OPT_ENUM] = {"one of", "one of", "", sizeof(unsigned)},
    [HK_OPT_CIDR] = {"address range", "an address range", "10.0.0.0/8", sizeof(struct hk_cidr)},
    [HK_OPT_SECTION] = {"section", "a mapping", "{ }", 0},
    [HK_OPT_MAP] = {"map", "a mapping", "{ }", sizeof(struct hk_conf_list)},
    [HK_OPT_LIST] = {"list", "a list", "[ ]", sizeof(struct hk_conf_list)},
};

_Static_assert(sizeof(enum hk_conf_order) == sizeof(unsigned), "enums are stored as unsigned");

size_t hk_scalar_size(enum hk_opt_type type)
{
    return types[type].size;
}

/* ---- texts about options ---- */

const char *hk_schema_example(const struct hk_opt *opt)
{
    if (opt->example)
        return opt->example;
    if (opt->fallback)
        return opt->fallback;
    if (opt->type == HK_OPT_ENUM)
        return opt->words[0].name;
    if (opt->type == HK_OPT_SECTION && opt->sub->example)
        return opt->sub->example;
    return types[opt->type].example;
}

static void add_words(const struct hk_opt *opt, struct hk_buf *out)
{
    for (const struct hk_word *word = opt->words; word->name; word++)
        hk_buf_addf(out, "%s%s", word > opt->words ? ", " : "", word->name);
}

void hk_schema_type_text(const struct hk_opt *opt, struct hk_buf *out)
{
    if (opt->type == HK_OPT_ENUM) {
        hk_buf_adds(out, opt->words[1].name ? "one of " : "");
        add_words(opt, out);
    } else if (opt->type == HK_OPT_LIST) {
        hk_buf_adds(out, opt->flags & HK_OPT_ONE ? "one or a list of " : "list of ");
        hk_buf_addf(out, "%ss", opt->elem ? types[opt->elem->type].name : opt->sub->name);
    } else if (opt->type == HK_OPT_MAP) {
        hk_buf_addf(out, "map of name to %s", opt->sub->name);
    } else if (opt->type == HK_OPT_SECTION && opt->sub->shorthand) {
        hk_schema_type_text(&opt->sub->opts[0], out);
        hk_buf_adds(out, ", or section");
    } else {
        hk_buf_adds(out, types[opt->type].name);
    }
    if (opt->word)
        hk_buf_addf(out, " or %s", opt->word);
}

void hk_scalar_expected(const struct hk_opt *opt, struct hk_buf *out)
{
    if (opt->type == HK_OPT_ENUM) {
        hk_buf_adds(out, opt->words[1].name ? "one of " : "");
        add_words(opt, out);
        return;
    }
    hk_buf_adds(out, types[opt->type].phrase);
    if (opt->type != HK_OPT_BOOL && !(opt->flags & HK_OPT_SECRET))
        hk_buf_addf(out, " such as %s", hk_schema_example(opt));
    if (opt->word)
        hk_buf_addf(out, ", or %s", opt->word);
}

static void add_size(uint64_t bytes, struct hk_buf *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (bytes && bytes % 1024 == 0 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    hk_buf_addf(out, "%" PRIu64 "%s", bytes, units[unit]);
}

static bool is_real(const struct hk_opt *opt)
{
    return opt->type == HK_OPT_DOUBLE || opt->type == HK_OPT_RATE;
}

static void add_bound(const struct hk_opt *opt, bool upper, struct hk_buf *out)
{
    uint64_t bound = upper ? opt->max : opt->min;
    char duration[HK_DURATION_TEXT_MAX];
    if (is_real(opt)) {
        hk_buf_addf(out, "%.10g%s", upper ? opt->fmax : opt->fmin, opt->type == HK_OPT_RATE ? "/s" : "");
    } else if (opt->type == HK_OPT_DURATION) {
        hk_format_duration(bound, duration);
        hk_buf_adds(out, bound >= HK_DURATION_MAX_MS ? "100 years" : duration);
    } else if (opt->type == HK_OPT_SIZE) {
        add_size(bound, out);
    } else {
        hk_buf_addf(out, "%" PRIu64, bound);
    }
}

static bool has_range(const struct hk_opt *opt)
{
    switch (opt->type) {
    case HK_OPT_U32:
    case HK_OPT_U64:
    case HK_OPT_DURATION:
    case HK_OPT_SIZE:
        return opt->max != 0;
    case HK_OPT_RATE:
    case HK_OPT_DOUBLE:
        return opt->fmax > 0;
    case HK_OPT_BOOL:
    case HK_OPT_STRING:
    case HK_OPT_PATH:
    case HK_OPT_NAME:
    case HK_OPT_ENUM:
    case HK_OPT_CIDR:
    case HK_OPT_SECTION:
    case HK_OPT_MAP:
    case HK_OPT_LIST:
        break;
    }
    return false;
}

static void add_range(const struct hk_opt *opt, struct hk_buf *out)
{
    add_bound(opt, false, out);
    hk_buf_adds(out, " to ");
    add_bound(opt, true, out);
}

/* A bound that only the type's width sets tells nobody anything. */
void hk_schema_range_text(const struct hk_opt *opt, struct hk_buf *out)
{
    bool open = (opt->type == HK_OPT_U32 && opt->max == UINT32_MAX) ||
                (opt->type == HK_OPT_DURATION && opt->max == HK_DURATION_MAX_MS);
    if (has_range(opt) && !open) {
        add_range(opt, out);
    } else if (has_range(opt) && opt->min) {
        add_bound(opt, false, out);
        hk_buf_adds(out, " or more");
    }
}

/* ---- conversion ---- */

static enum verdict judge(enum hk_code rc)
{
    if (rc == HK_OK)
        return GOOD;
    return rc == HK_RANGE ? OUT_OF_RANGE : MALFORMED;
}

static enum verdict convert_whole(const struct hk_opt *opt, struct hk_str s, void *dest)
{
    uint64_t value = 0;
    enum hk_code rc = HK_INVALID;
    if (opt->word && hk_str_eq(s, hk_str_of(opt->word))) {
        value = opt->word_value;
    } else {
        if (opt->type == HK_OPT_DURATION)
            rc = hk_parse_duration(s, &value, NULL);
        else if (opt->type == HK_OPT_SIZE)
            rc = hk_parse_size(s, &value, NULL);
        else
            rc = hk_parse_u64(s, &value, NULL);
        if (rc != HK_OK)
            return judge(rc);
        if (value < opt->min || (opt->max && value > opt->max))
            return OUT_OF_RANGE;
    }
    if (opt->type == HK_OPT_U32) {
        uint32_t narrow = (uint32_t)value;
        assert(narrow == value); /* the table's bounds fit */
        memcpy(dest, &narrow, sizeof narrow);
    } else {
        memcpy(dest, &value, sizeof value);
    }
    return GOOD;
}

static enum verdict convert_real(const struct hk_opt *opt, struct hk_str s, void *dest)
{
    double value = 0;
    enum hk_code rc =
        opt->type == HK_OPT_RATE ? hk_parse_rate(s, &value, NULL) : hk_parse_decimal(s, &value, NULL);
    if (rc != HK_OK)
        return judge(rc);
    if (!(value >= opt->fmin && value <= opt->fmax))
        return OUT_OF_RANGE;
    memcpy(dest, &value, sizeof value);
    return GOOD;
}

static enum verdict convert_bool(struct hk_str s, void *dest)
{
    bool value = hk_str_eq(s, hk_str_of("true"));
    if (!value && !hk_str_eq(s, hk_str_of("false")))
        return MALFORMED;
    memcpy(dest, &value, sizeof value);
    return GOOD;
}

static enum verdict convert_enum(const struct hk_opt *opt, struct hk_str s, void *dest)
{
    for (const struct hk_word *word = opt->words; word->name; word++) {
        if (hk_str_eq(s, hk_str_of(word->name))) {
            memcpy(dest, &word->value, sizeof word->value);
            return GOOD;
        }
    }
    return MALFORMED;
}

static char *copy_path(struct hk_walk *walk, struct hk_str s)
{
    struct hk_buf path;
    hk_buf_init(&path, HK_YAML_BYTES_MAX);
    char *copy = NULL;
    if (hk_interp_join(walk->file, s, &path) == HK_OK)
        copy = hk_pool_copy_str(walk->arena, hk_buf_str(&path));
    hk_buf_fini(&path);
    return copy;
}

/* `walk` NULL: a default, which lives for ever. */
static enum verdict convert_text(struct hk_walk *walk, const struct hk_opt *opt, struct hk_str s, void *dest,
                                 char why[HK_WHY_MAX])
{
    if (opt->type == HK_OPT_NAME && !hk_text_is_name(s) && walk)
        return MALFORMED;
    if (walk && s.len < opt->min) {
        if (s.len)
            (void)snprintf(why, HK_WHY_MAX, "must be at least %u bytes long, not %zu", (unsigned)opt->min,
                           s.len);
        else
            (void)snprintf(why, HK_WHY_MAX, "must not be empty");
        return UNFIT;
    }
    if (opt->max && s.len > opt->max) {
        (void)snprintf(why, HK_WHY_MAX, "must be at most %u bytes long, not %zu", (unsigned)opt->max, s.len);
        return UNFIT;
    }
    if (walk && opt->check && !opt->check(s, why))
        return UNFIT;
    const char *copy = s.ptr;
    if (walk)
        copy = opt->type == HK_OPT_PATH ? copy_path(walk, s) : hk_pool_copy_str(walk->arena, s);
    if (!copy)
        return NO_MEMORY;
    memcpy(dest, &copy, sizeof copy);
    return GOOD;
}

static enum verdict convert(struct hk_walk *walk, const struct hk_opt *opt, struct hk_str s, void *dest,
                            char why[HK_WHY_MAX])
{
    switch (opt->type) {
    case HK_OPT_BOOL:
        return convert_bool(s, dest);
    case HK_OPT_U32:
    case HK_OPT_U64:
    case HK_OPT_DURATION:
    case HK_OPT_SIZE:
        return convert_whole(opt, s, dest);
    case HK_OPT_RATE:
    case HK_OPT_DOUBLE:
        return convert_real(opt, s, dest);
    case HK_OPT_STRING:
    case HK_OPT_PATH:
    case HK_OPT_NAME:
        return convert_text(walk, opt, s, dest, why);
    case HK_OPT_ENUM:
        return convert_enum(opt, s, dest);
    case HK_OPT_CIDR:
        return hk_text_parse_cidr(s, dest, why) ? GOOD : UNFIT;
    case HK_OPT_SECTION:
    case HK_OPT_MAP:
    case HK_OPT_LIST:
        break;
    }
    return MALFORMED;
}

void hk_scalar_default(const struct hk_opt *opt, void *dest)
{
    char why[HK_WHY_MAX];
    enum verdict verdict = convert(NULL, opt, hk_str_of(opt->fallback), dest, why);
    assert(verdict == GOOD); /* the table's own text */
    (void)verdict;
}

/* ---- reporting ---- */

static const char *word_at(const void *arg, size_t i)
{
    const struct hk_opt *opt = arg;
    return opt->words[i].name;
}

static bool is_one_of(struct hk_str s, const char *const *words)
{
    for (; *words; words++) {
        if (hk_str_eqi(s, hk_str_of(*words)))
            return true;
    }
    return false;
}

/* What was probably meant; static text, or made in `out`. */
static const char *hint_for(const struct hk_opt *opt, struct hk_str s, char out[HK_MEANT_MAX])
{
    static const char *const yes[] = {"yes", "y", "on", "true", "1", NULL};
    static const char *const no[] = {"no", "n", "off", "false", "0", NULL};
    uint64_t number = 0;
    if (opt->type == HK_OPT_BOOL && is_one_of(s, yes))
        return ": write true";
    if (opt->type == HK_OPT_BOOL && is_one_of(s, no))
        return ": write false";
    if (opt->type == HK_OPT_DURATION && hk_parse_u64(s, &number, NULL) == HK_OK)
        return ": its unit is missing (ms, s, m, h, d or w)";
    if (opt->type == HK_OPT_ENUM)
        return hk_walk_meant(s, word_at, opt, out);
    return "";
}

static void report(struct hk_walk *walk, const struct hk_opt *opt, const char *subject,
                   const struct hk_yaml_node *node, enum verdict verdict, const char *why)
{
    bool secret = node->secret || opt->flags & HK_OPT_SECRET;
    char shown[HK_SHOW_MAX];
    char meant[HK_MEANT_MAX];
    struct hk_buf wanted;
    hk_buf_init(&wanted, 300);
    (void)hk_diag_show(node->text, secret, shown);
    if (verdict == UNFIT) {
        hk_walk_error(walk, node->at, "%s %s", subject, why);
    } else if (verdict == OUT_OF_RANGE && has_range(opt)) {
        add_range(opt, &wanted);
        hk_walk_error(walk, node->at, "%s must be from %s, not %s", subject, hk_buf_cstr(&wanted), shown);
    } else {
        hk_scalar_expected(opt, &wanted);
        if (opt->flags & HK_OPT_HIDDEN && opt->type == HK_OPT_ENUM) /* the scalar form of a section */
            hk_buf_addf(&wanted, ", or a mapping such as %s", hk_schema_example(opt));
        hk_walk_error(walk, node->at, "%s must be %s, not %s%s", subject, hk_buf_cstr(&wanted), shown,
                      secret ? "" : hint_for(opt, node->text, meant));
    }
    hk_walk_done(walk, &wanted);
}

static bool report_kind(struct hk_walk *walk, const struct hk_opt *opt, const char *subject,
                        const struct hk_yaml_node *node)
{
    const char *is = node->kind == HK_YAML_SEQUENCE ? "a list" : "a mapping";
    struct hk_buf wanted;
    hk_buf_init(&wanted, 300);
    hk_scalar_expected(opt, &wanted);
    hk_walk_error(walk, node->at, "%s must be %s, not %s", subject, hk_buf_cstr(&wanted),
                  node->kind == HK_YAML_SCALAR ? "empty" : is);
    hk_walk_done(walk, &wanted);
    return false;
}

/* What a definition of the store may not hold: the database must neither know a secret nor open a file of the relay's host. A
 * header's value is judged by its name (hk_check_header). */
static bool refuse_in_definition(struct hk_walk *walk, const struct hk_opt *opt, const char *subject,
                                 const struct hk_yaml_node *node, const void *dest)
{
    struct hk_err err = {.message = ""};
    const char *path = NULL;
    if (opt->flags & HK_OPT_SECRET && !(opt->flags & HK_OPT_HIDDEN) && !node->secret) {
        hk_walk_error(walk, node->at, "%s is a secret: " HK_DEFINITION_REFER, subject);
        return true;
    }
    if (opt->type != HK_OPT_PATH)
        return false;
    memcpy(&path, dest, sizeof path);
    if (hk_folder_check(walk->folder, path, walk->env->without_secrets, &err) == HK_OK)
        return false;
    hk_walk_error(walk, node->at, "%s: %s", subject, err.message);
    return true;
}

bool hk_scalar_set(struct hk_walk *walk, const struct hk_opt *opt, const char *subject,
                   const struct hk_yaml_node *node, void *dest)
{
    char why[HK_WHY_MAX] = "";
    if (node->kind == HK_YAML_BAD)
        return false;
    if (node->missing && ((opt->flags & HK_OPT_SECRET && !opt->fallback) || walk->is_definition))
        return true; /* left out */
    if (node->missing) {
        hk_walk_error(walk, node->at, "%s", node->missing);
        return false;
    }
    if (node->kind != HK_YAML_SCALAR || hk_yaml_is_null(node))
        return report_kind(walk, opt, subject, node);
    enum verdict verdict = convert(walk, opt, node->text, dest, why);
    if (verdict == NO_MEMORY) {
        walk->status = HK_NOMEM;
        return false;
    }
    if (verdict != GOOD) {
        report(walk, opt, subject, node, verdict, why);
        return false;
    }
    if (walk->is_definition && refuse_in_definition(walk, opt, subject, node, dest))
        return false;
    if (opt->ref != HK_REF_NONE)
        hk_walk_later(walk, opt->ref, node, node->text.ptr, NULL);
    return true;
}
