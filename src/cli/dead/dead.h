/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on dead letters share: the store, the masks, which letters are meant, and how to show one. Everything
 * that people see of a letter goes through the functions here, so that no command can forget a mask. */
#ifndef HK_CLI_DEAD_DEAD_H
#define HK_CLI_DEAD_DEAD_H

#include "cli/operate.h"
#include "desk/letters.h"
#include "payload/filter.h"
#include "payload/mask.h"
#include "store/letters.h"

struct hk_dead {
    struct hk_operate op;
    const struct hk_store_letters_ops *letters;
    struct hk_masks *masks; /* NULL = nothing is masked, or --reveal was given */
    bool revealed;          /* --reveal was given: what is shown must be recorded before (hk_dead_reveal) */
    const struct hk_letter_shown
        *history; /* of the letter that is shown: all of its payloads; NULL = only the one it has */
    /* Over which the payloads of a letter are read that a list has not read: what the list gave lives as long as nothing else is
     * asked of its own connection. Opened when it is needed. NULL = there is none. */
    struct hk_desk *aside;
    struct hk_pool mem; /* until it is closed */
};

/* As hk_operate_open. --reveal needs --reason. */
int hk_dead_open(const struct hk_cli *cli, struct hk_dead *out);
void hk_dead_close(struct hk_dead *dead);

/* ---- the commands' options ---- */

extern const struct hk_cli_option hk_dead_show_options[], hk_dead_reasons_options[];

/* ---- which letters ---- */

struct hk_dead_filter {
    struct hk_filter *parsed;
    struct hk_letter_query query; /* with the default status; add to it */
    struct hk_buf text;           /* the same as text that means the same at any time */
};

/* --filter and the options that stand for its terms, together. Was any given? `any_status`: without a status all are meant, else open ones.
 * HK_EXIT_OK, or said what is wrong. */
int hk_dead_filter(const struct hk_cli *cli, bool any_status, struct hk_dead_filter *out);
void hk_dead_filter_free(struct hk_dead_filter *filter);
bool hk_dead_filter_given(const struct hk_cli *cli);
/* Was anything given that says nothing where letters are named? (All but --destination: hk_dead_find takes that.) */
bool hk_dead_filter_beside_ids(const struct hk_cli *cli);

/* On a terminal `query` tells from now on how far a search has come that looks through many; hk_dead_seen_end wipes that away. */
struct hk_dead_seen {
    int64_t told_ms; /* 0 = nothing stands there */
};

void hk_dead_seen_begin(struct hk_dead_seen *seen, struct hk_letter_query *query);
void hk_dead_seen_end(struct hk_dead_seen *seen);
/* letters->count, and tells. */
enum hk_code hk_dead_count(const struct hk_dead *dead, const struct hk_letter_query *query,
                           struct hk_count *out, struct hk_err *err);

bool hk_dead_is_paused(const struct hk_names *paused, struct hk_str destination);

/* --same-id, --new-id, or neither. False: both, and said so. */
bool hk_dead_ids(const struct hk_cli *cli, enum hk_requeue_id *out);

/* The letter that an operand means: its id, or a message_id (with --destination when that went to several), also one that it was requeued
 * under. HK_EXIT_OK, or said why not. A message_id of digits only must be written id:… */
int hk_dead_find(const struct hk_cli *cli, const struct hk_dead *dead, const char *operand, int64_t *out_id);

/* hk_act_find. HK_EXIT_OK, or said that there is none. */
int hk_dead_find_act(struct hk_dead *dead, int64_t id, struct hk_audit_row *out);

/* ---- showing ---- */

/* An audit row for each letter whose masked fields will be shown; does nothing unless --reveal was given. Before anything is shown. */
int hk_dead_reveal(const struct hk_cli *cli, const struct hk_dead *dead, const int64_t *ids, size_t n);

/* The payload as the application wrote it: base64 undone where the letter says so. "" with `*out_ok` false when it is not base64. */
struct hk_str hk_dead_payload(const struct hk_letter *letter, struct hk_buf *scratch, bool *out_ok);

/* Masked, each added to `out`. What hides in errors is found by the letter's payloads and headers, earlier payloads included: where
 * `letter` and `dead->history` do not have all of them, they are read by its id; an error about a payload over 1 MiB is hidden then. */
void hk_dead_show_payload(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_buf *out);
void hk_dead_show_headers(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str headers,
                          struct hk_buf *out);
void hk_dead_show_text(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str text,
                       struct hk_buf *out);

/* Says that its payload has too many bytes to be `done` ("edited"). Returns the exit code. */
int hk_dead_too_large(const struct hk_letter *letter, const char *done);
/* ", 12 may have arrived"; nothing for 0. Of letters whose last attempts had no clear outcome. */
void hk_dead_maybe(struct hk_buf *out, uint64_t n);

/* "failed", "retrying (sending by hand since …)" … */
const char *hk_dead_status(const struct hk_letter *letter);

/* Asked on a terminal, or --yes. HK_EXIT_OK, or said that it was not done. */
int hk_dead_confirm(const struct hk_cli *cli, const char *question);

#endif
