/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a parsed file along the option tables into structs, and reports everything that does not fit. */
#ifndef HK_CONFIG_WALK_H
#define HK_CONFIG_WALK_H

#include "config/config.h"
#include "config/diag.h"
#include "config/env.h"
#include "config/schema.h"
#include "config/yaml.h"

/* Where the walk is: a section by its key, or an item of a map or list by its table's name. */
struct hk_frame {
    struct hk_str key; /* section: its key; map item: its name */
    const char *item;  /* NULL: a section */
    size_t index;      /* list item: from 1; 0: map item */
    struct hk_pos at;
    size_t errors; /* how many there were before it */
};

/* Something that can be settled only when the whole file has been read. */
struct hk_pending {
    enum hk_opt_ref ref;
    const struct hk_yaml_node *node;
    const char *name; /* HK_REF_POLICY, HK_REF_DESTINATION */
    void *target;     /* HK_REF_BREAKER: the destination */
    struct hk_pending *next;
};

struct hk_walk {
    const char *file;
    const struct hk_config_env *env;
    struct hk_diags *diags;
    struct hk_pool *arena; /* the configuration's */
    struct hk_pool *scratch;
    struct hk_frame frames[HK_YAML_DEPTH_MAX + 1];
    size_t depth;
    size_t errors_at_start; /* `diags` may hold some of another file */
    struct hk_pending *pending, **pending_tail;
    bool is_definition;  /* of the store, not of a file: it holds no secret, and names no file outside … */
    const char *folder;  /* … this one; NULL: none at all */
    enum hk_code status; /* HK_NOMEM ends the walk */
};

/* Fills `section`, which already holds its defaults. */
void hk_walk_section(struct hk_walk *walk, const struct hk_opt_table *table, const struct hk_yaml_node *node,
                     void *section);
/* The same for one item of a map, whose name is `node->key`. */
void hk_walk_item(struct hk_walk *walk, const struct hk_opt_table *table, const struct hk_yaml_node *node,
                  void *item);
/* Fills in what the table says, sections included. */
void hk_walk_defaults(const struct hk_opt_table *table, void *section);

void hk_walk_error(struct hk_walk *walk, struct hk_pos at, const char *fmt, ...) HK_PRINTF(3, 4);
void hk_walk_warn(struct hk_walk *walk, struct hk_pos at, const char *fmt, ...) HK_PRINTF(3, 4);
/* Position of `key` inside `node`; the section's own when it is not there. */
struct hk_pos hk_walk_at(const struct hk_walk *walk, const struct hk_yaml_node *node, const char *key);
/* Were there errors inside the section that is being walked? */
bool hk_walk_failed(const struct hk_walk *walk);
void hk_walk_later(struct hk_walk *walk, enum hk_opt_ref ref, const struct hk_yaml_node *node,
                   const char *name, void *target);

/* Frees a buffer that a message was made in; a message that lacks its text is out of memory, not an error. */
void hk_walk_done(struct hk_walk *walk, struct hk_buf *buf);

/* The nearest of the words that `word` lists, as `; did you mean "x"?`, or "" when none is near. */
#define HK_MEANT_MAX 96
const char *hk_walk_meant(struct hk_str wrong, const char *(*word)(const void *arg, size_t i),
                          const void *arg, char out[HK_MEANT_MAX]);

/* scalar.c: one scalar into `dest`; `subject` names it in messages. False: reported. */
bool hk_scalar_set(struct hk_walk *walk, const struct hk_opt *opt, const char *subject,
                   const struct hk_yaml_node *node, void *dest);
/* The option's default, if it has one. */
void hk_scalar_default(const struct hk_opt *opt, void *dest);
size_t hk_scalar_size(enum hk_opt_type type);
/* What is expected here, for messages: "a duration such as 30s". */
void hk_scalar_expected(const struct hk_opt *opt, struct hk_buf *out);

#endif
