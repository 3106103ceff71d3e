/* SPDX-License-Identifier: Apache-2.0 */
/* Paths into a payload: customer.id, items[0].sku, items[*].card, "a.b".c, [2].x; "$" alone is the whole payload, and a
 * leading "$." or "$[" is taken, too, since messages are written so. A name in quotes knows \" and \\. One walk over a text
 * follows many paths at once. */
#ifndef HK_PAYLOAD_PATH_H
#define HK_PAYLOAD_PATH_H

#include "payload/scan.h"

#define HK_PATH_STEPS_MAX 32
#define HK_PATH_TEXT_MAX  255

struct hk_path;

/* HK_INVALID: "column 5: a name is expected after the dot"; HK_NOMEM. Columns count characters, from 1. `out` NULL:
 * it is only checked, and nothing is allocated. */
enum hk_code hk_path_parse(struct hk_str text, struct hk_path **out, struct hk_err *err) HK_MUSTCHECK;
/* As above for a path that begins at byte `from` of `text` and ends before the first byte that cannot belong to it, *out_end. */
enum hk_code hk_path_parse_at(struct hk_str text, size_t from, struct hk_path **out, size_t *out_end,
                              struct hk_err *err) HK_MUSTCHECK;
void hk_path_free(struct hk_path *path);
/* Column of the byte at `pos`: characters, from 1. */
size_t hk_path_column(struct hk_str text, size_t pos);
/* In a form that parses to the same path. Errors are the buffer's. */
void hk_path_text(const struct hk_path *path, struct hk_buf *out);

/* Can a value that `inner` leads to be what `outer` leads to, or lie within it? */
bool hk_path_covers(const struct hk_path *outer, const struct hk_path *inner);

/* ---- following paths through a text ---- */

enum {
    HK_PATH_HIT = 1, /* the value at hand is what the path leads to */
    HK_PATH_MISS = 2 /* the value at hand, or the container that just ended, should lead on and does not */
};

struct hk_path_state {
    uint32_t seen;   /* bit k: in the container after k steps, the next one was found */
    uint8_t matched; /* steps that lead to where we are */
    uint8_t flags;   /* HK_PATH_HIT, HK_PATH_MISS: of the last token */
};

struct hk_path_walk {
    struct hk_json_scan scan;
    const struct hk_path *const *paths;
    struct hk_path_state *states; /* one per path, the caller's */
    size_t n;
    struct hk_scan_token key;              /* of the value that comes next */
    uint64_t count[HK_PATH_STEPS_MAX + 1]; /* elements so far of the array that is open, by depth */
    unsigned longest;                      /* steps of the longest path */
    unsigned found;                        /* steps that lead to what was flagged last */
    bool flagged;
};

/* No allocation: `paths` and `states` stay the caller's and must live as long as the walk. */
void hk_path_walk_init(struct hk_path_walk *walk, struct hk_str text, const struct hk_path *const *paths,
                       struct hk_path_state *states, size_t n);
/* Goes on to the next token at which some path has a flag; HK_SCAN_END and HK_SCAN_ERROR end the walk, and the text has then been
 * read to its end or to the error. `out` is the value (of a container its opening bracket), or the closing bracket of the
 * container where something is missing. */
enum hk_scan_kind hk_path_walk_next(struct hk_path_walk *walk, struct hk_scan_token *out);
/* Was it hit by any of the paths? */
bool hk_path_walk_hit(const struct hk_path_walk *walk);
/* After a container was hit: passes over it, what is inside is not looked at. `*out_end` is the offset behind it. False: an error. */
bool hk_path_walk_leave(struct hk_path_walk *walk, size_t *out_end);
/* "$.items[3].card": where path `i`, at which there is a flag, leads, with the elements' numbers of here. Names are the path's,
 * nothing is taken from the text. Into `room` bytes (8 at the least), cut with "…" when it is longer. */
void hk_path_walk_where(const struct hk_path_walk *walk, size_t i, char *out, size_t room);

#endif
