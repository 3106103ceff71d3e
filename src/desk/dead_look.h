/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at dead letters: lists, groups, figures, and one of them whole. Masks apply to every result. */
#ifndef HK_DESK_DEAD_LOOK_H
#define HK_DESK_DEAD_LOOK_H

#include "desk/letters.h"

/* ---- list ---- */

struct hk_dead_list_ask {
    struct hk_letter_words words;
    uint64_t limit, after; /* after: `next` of an earlier answer; 0 = from the beginning */
    uint64_t scan;         /* letters to look through where no index serves the filter; 0: as hk_list_scan */
    bool oldest;           /* first */
    bool briefly;          /* without errors: masking them takes the payloads, which are not read then */
};

struct hk_dead_list {
    struct hk_letter *items; /* without details and payload */
    size_t n;
    int64_t next;    /* 0 = there are no others */
    uint64_t looked; /* letters that it looked at before it stopped at its bound; 0 = it did not stop there */
    int64_t now_ms;
};

extern const struct hk_op hk_op_dead_list;

/* ---- groups, stats ---- */

struct hk_dead_groups_ask {
    struct hk_letter_words words;
    uint64_t limit;
    uint64_t after; /* `next` of an earlier answer; 0 = from the newest letter */
    uint64_t scan;  /* letters to look at, newest first; 0: as hk_list_scan */
    bool hours;     /* also what failed in each of the last 24 hours */
};

/* The results are struct hk_letter_groups and struct hk_letter_stats (store/letters.h). */
extern const struct hk_op hk_op_dead_groups, hk_op_dead_stats;

uint64_t hk_letter_stats_total(const struct hk_letter_stats *stats);

/* ---- show ---- */

struct hk_dead_show_ask {
    const char *id, *destination;
    uint64_t payload_version; /* 0 = the present one */
};

struct hk_dead_shown {
    struct hk_letter letter;    /* with the payload that was asked for, plain, and its version */
    bool cut;                   /* that has more bytes than were read */
    const char *near;           /* destinations whose names are near the one that nobody knew; NULL = none */
    bool masked;                /* masks apply to its event type, and nobody has asked to see all */
    struct hk_letter_shown all; /* `letter` as it is now, and no payload of `versions` */
    /* Where the destination is, its secrets hidden unless the caller reveals; NULL: not over HTTP, or it is not configured. */
    const char *url;
};

extern const struct hk_op hk_op_dead_show;

/* ---- export ---- */

struct hk_dead_export_ask {
    struct hk_letter_words words;
    /* Called for each, oldest first: the letter with its payload, plain, of which more may be stored (`cut`). False: no more is
     * wanted. */
    bool (*take)(void *arg, const struct hk_letter *letter, bool cut);
    void *arg;
};

/* One letter as the export writes it. */
struct hk_dead_line {
    struct hk_letter letter;
    bool cut;
};

struct hk_dead_exported {
    uint64_t letters, cut;
};

extern const struct hk_op hk_op_dead_export;

/* ---- reasons ---- */

struct hk_reason_row {
    const char *code, *rule, *blame;
};

struct hk_reason_rows {
    struct hk_reason_row *items;
    size_t n;
};

extern const struct hk_op hk_op_dead_reasons;

#endif
