/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: what a configuration may hold, as data. One table drives the walker that reads a file, the
 * defaults, the reference for people and the JSON Schema, so that they cannot differ. */
#ifndef HK_CONFIG_SCHEMA_H
#define HK_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

struct hk_walk;
struct hk_yaml_node;

/* What is stored at the option's offset stands behind each type. */
enum hk_opt_type {
    HK_OPT_BOOL,     /* bool */
    HK_OPT_U32,      /* uint32_t */
    HK_OPT_U64,      /* uint64_t */
    HK_OPT_DURATION, /* uint64_t, milliseconds */
    HK_OPT_SIZE,     /* uint64_t, bytes */
    HK_OPT_RATE,     /* double, a second */
    HK_OPT_DOUBLE,   /* double */
    HK_OPT_STRING,   /* const char * */
    HK_OPT_PATH,     /* const char *, below the file's folder when relative */
    HK_OPT_NAME,     /* const char * */
    HK_OPT_ENUM,     /* an enum, as in `words` */
    HK_OPT_CIDR,     /* struct hk_cidr */
    HK_OPT_SECTION,  /* the struct of `sub` */
    HK_OPT_MAP,      /* struct hk_conf_list of the struct of `sub` */
    HK_OPT_LIST      /* the same, or of what `elem` says */
};

enum hk_opt_flag {
    HK_OPT_REQUIRED = 1,
    HK_OPT_ONE = 2,     /* list: a lone value is a list of one */
    HK_OPT_HIDDEN = 4,  /* never a key: only the scalar form of its section */
    HK_OPT_SECRET = 8,  /* never shown, wherever it came from */
    HK_OPT_CHOICE = 16, /* exactly one of the section's options with this flag is given */
    HK_OPT_RESTART = 32 /* a running relay keeps what it started with */
};

/* Names that must exist somewhere else; looked up when the whole file has been read. */
enum hk_opt_ref {
    HK_REF_NONE = 0,
    HK_REF_POLICY,
    HK_REF_DESTINATION,
    HK_REF_CHANNEL,
    HK_REF_PROXY,  /* or none */
    HK_REF_BREAKER /* not a name: a destination's breaker waits for its policy */
};

struct hk_word {
    const char *name; /* NULL ends the list */
    unsigned value;
};

#define HK_WHY_MAX 200

/* Is the text fit for its option? `why` completes the sentence '"url" …'; it never repeats the value. */
typedef bool hk_opt_check_fn(struct hk_str value, char why[HK_WHY_MAX]);

struct hk_opt {
    const char *key;
    enum hk_opt_type type;
    unsigned flags;
    size_t offset;
    uint64_t min, max; /* whole numbers, ms, bytes; text: length; list and map: how many. max 0: no bound */
    double fmin, fmax; /* HK_OPT_DOUBLE and HK_OPT_RATE */
    const char *word;  /* one word that stands for `word_value`, e.g. never */
    uint64_t word_value;
    const char *fallback;  /* the default as it would be written; NULL: none */
    const char *otherwise; /* what holds when it is not given and `fallback` is NULL; NULL: nothing */
    const char *example;   /* NULL: the fallback, or one of its type */
    const char *help;      /* one line */
    const struct hk_word *words;
    const struct hk_opt_table *sub;
    const struct hk_opt *elem;
    enum hk_opt_ref ref;
    hk_opt_check_fn *check;
};

/* The struct that a table fills begins with `uint32_t given`: bit i = option i was read from the file. */
struct hk_opt_table {
    const char *name;  /* unique; in messages about an item: policy "orders", route 2 */
    const char *where; /* paths, for the reference */
    size_t size;
    const struct hk_opt *opts;
    size_t n_opts;
    bool shorthand;      /* a scalar is taken for the first option */
    bool header_keys;    /* map: keys are HTTP header names, not names */
    size_t name_offset;  /* map: where the item's name is stored */
    const char *example; /* a mapping, for messages */
    /* Called after the section was read, also when some of it was refused; adds errors with hk_walk_error. */
    void (*check)(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
};

/* Every table, the root first; NULL past the last. */
const struct hk_opt_table *hk_schema_table(size_t i);

/* "duration", "one of none, key", "list of address ranges" …, into `out`. */
struct hk_buf;
void hk_schema_type_text(const struct hk_opt *opt, struct hk_buf *out);
void hk_schema_range_text(const struct hk_opt *opt, struct hk_buf *out); /* "1 to 10000"; "" without bounds */
/* A value that would be accepted. */
const char *hk_schema_example(const struct hk_opt *opt);

#endif
