/* SPDX-License-Identifier: Apache-2.0 */
/* YAML as a plain tree with positions. Only what a configuration needs: one document of scalars, sequences and
 * mappings. What makes YAML dangerous or surprising is refused, with its position: duplicate keys, anchors and
 * aliases, merge keys, foreign tags, a second document, and sizes that nobody writes by hand. */
#ifndef HK_CONFIG_YAML_H
#define HK_CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/pool.h"
#include "config/diag.h"

#define HK_YAML_DEPTH_MAX 32u
#define HK_YAML_NODES_MAX 100000u
#define HK_YAML_BYTES_MAX (4u * 1024 * 1024)

enum hk_yaml_kind {
    HK_YAML_BAD = 0, /* reported already: look away */
    HK_YAML_SCALAR,
    HK_YAML_SEQUENCE,
    HK_YAML_MAPPING
};

/* Read-only for everybody but the interpolation, which replaces `text`. */
struct hk_yaml_node {
    enum hk_yaml_kind kind;
    struct hk_pos at;
    bool plain;          /* scalar: written without quotes, and as it stands in the file */
    bool secret;         /* scalar: came from outside the file; never shown */
    const char *missing; /* scalar: why what it refers to cannot be had; NULL: it can, or was reported */
    bool skip;           /* in a mapping: the key is bad (reported already) */
    struct hk_str text;  /* scalar: terminated, holds no NUL */
    struct hk_str key;   /* in a mapping: likewise */
    struct hk_pos key_at;
    size_t n;                    /* entries */
    struct hk_yaml_node *first;  /* first entry of a sequence or mapping */
    struct hk_yaml_node *next;   /* next entry of the same parent */
    struct hk_yaml_node *sorted; /* private to the duplicate check */
};

struct hk_yaml {
    struct hk_pool arena;
    struct hk_yaml_node *root; /* NULL: the document is empty */
};

/* HK_OK: there is a tree, though `diags` may have got errors (then with HK_YAML_BAD nodes or skipped keys).
 * HK_INVALID: there is none, `diags` says why. HK_NOMEM. The tree is freed by hk_yaml_fini, whatever came back. */
enum hk_code hk_yaml_parse(const char *text, size_t len, const char *file, struct hk_diags *diags,
                           struct hk_yaml *out_yaml) HK_MUSTCHECK;
void hk_yaml_fini(struct hk_yaml *yaml);

/* The value of `key`, or NULL; `node` may be NULL or no mapping. */
const struct hk_yaml_node *hk_yaml_get(const struct hk_yaml_node *node, const char *key);
/* Empty, ~ or null, written without quotes; NULL counts too. */
bool hk_yaml_is_null(const struct hk_yaml_node *node);
/* Is it UTF-8 without NUL? Otherwise `*out_bad` is the offset of the first byte that is not. */
bool hk_yaml_text_ok(struct hk_str s, size_t *out_bad);

#endif
