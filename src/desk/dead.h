/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on dead letters: requeue, resolve, discard, restore, note. */
#ifndef HK_DESK_DEAD_H
#define HK_DESK_DEAD_H

#include "desk/deliver.h"
#include "desk/letters.h"

/* ---- what several of them share ---- */

/* Under which id a letter goes out again. */
#define HK_REQUEUE_ID_ARGS(type, same, new)                                                                  \
    {.name = "same_id",                                                                                      \
     .offset = offsetof(struct type, same),                                                                  \
     .help = "keep the id that the receiver knows (default while the payload is unchanged)"},                \
    {                                                                                                        \
        .name = "new_id", .offset = offsetof(struct type, new),                                              \
        .help = "use a new id (default once the payload was edited)"                                         \
    }
enum hk_requeue_id hk_requeue_ids(bool same_id, bool new_id);
/* HK_INVALID: they exclude each other. */
enum hk_code hk_requeue_ids_check(bool same_id, bool new_id, struct hk_err *err);

/* The destination that letters go to instead of their own. */
#define HK_REQUEUE_TO_ARG(type, field)                                                                       \
    {                                                                                                        \
        .name = "to", .kind = HK_ARG_TEXT, .offset = offsetof(struct type, field), .value = "NAME",          \
        .help = "send to this destination instead of the letter's own"                                       \
    }
/* HK_INVALID about the field "to": the configuration has no such destination. NULL is none. */
enum hk_code hk_requeue_to_check(struct hk_desk *desk, const char *to, struct hk_err *err);
/* Destinations of the configuration whose names are near, with commas between, in `mem`; NULL = none is. */
const char *hk_destinations_near(const struct hk_config *config, struct hk_str name, struct hk_pool *mem);

bool hk_names_have(const struct hk_names *names, struct hk_str name);

/* HK_CONFLICT: "letter 5 cannot be sent by hand: its payload has …" */
enum hk_code hk_letter_too_large(const struct hk_letter *letter, const char *done, struct hk_err *err);

/* "failed", "retrying (sent by hand, outcome unknown)" … */
const char *hk_letter_state(const struct hk_letter *letter);

/* ---- acts on some, or on all that fit ---- */

enum hk_dead_kind {
    HK_DEAD_REQUEUE,
    HK_DEAD_RESOLVE,
    HK_DEAD_DISCARD,
    HK_DEAD_RESTORE,
    HK_DEAD_NOTE,
    HK_DEAD_ERASE
};

const char *hk_dead_verb(enum hk_dead_kind kind); /* "requeue" */

struct hk_dead_ask {
    struct hk_texts ids; /* none: those of `words`, or of `act` */
    struct hk_letter_words
        words;    /* with ids, only the destination may be given: it selects one of a message's letters */
    uint64_t act; /* restore: what this discard took, and nobody has decided about since; 0 = none */
    bool same_id, new_id; /* requeue */
    const char *to;       /* requeue: another destination; NULL = the letter's own */
    bool yes;             /* requeue: under the same id also where a receiver may drop it as a repeat */
    bool dry_run;
};

struct hk_dead_note_ask {
    const char *id, *text, *destination;
};

#define HK_DEAD_ITEMS 1000

struct hk_dead_item {
    int64_t id;         /* 0: of a message that no letter is of */
    struct hk_str name; /* its message_id then, as it was given; else without a pointer */
    enum hk_letter_did did;
    struct hk_str message_id; /* requeue: under which it goes out; else without a pointer */
    const char *why;          /* it was not done; NULL = it was, or was so already */
};

struct hk_dead_acted {
    enum hk_dead_kind kind;
    bool dry_run;
    const char *actor, *reason;
    bool one;       /* letter was named */
    int64_t undone; /* restore: the act; 0 = none */
    int64_t
        same_edited; /* requeue: the one letter, when it was edited and goes out under the same id; else 0 */
    struct hk_err stopped; /* code HK_OK, or why it ended before all were looked at */

    /* of a dry run */
    struct hk_count fit;    /* letters that it would change */
    uint64_t maybe;         /* of them may have arrived */
    struct hk_count others; /* selected letters in a state that does not allow the act */

    /* of what was done */
    uint64_t done, nothing, missing, refused;
    uint64_t overtaken; /* of an act that is undone: somebody has decided about them since */
    int64_t act_id;     /* in the audit; 0 = none, or one letter was named */

    struct hk_dead_item
        *items; /* the first HK_DEAD_ITEMS of `n_all`; of a dry run those that are not there */
    size_t n;
    uint64_t n_all;
};

extern const struct hk_op hk_op_dead_requeue, hk_op_dead_resolve, hk_op_dead_discard, hk_op_dead_restore,
    hk_op_dead_erase, hk_op_dead_note;

/* ---- send ---- */

struct hk_dead_send_ask {
    const char *id, *destination;
    bool yes;   /* also when it was edited and may have arrived before */
    bool force; /* also while the destination is paused */
    bool dry_run;
};

struct hk_dead_sent {
    int64_t id;
    struct hk_str message_id, destination;
    const char *url; /* without secrets, or the words shown instead of it */
    bool dry_run;    /* nothing below but the size */
    uint64_t payload_bytes;
    bool ok;                  /* it arrived, and is resolved */
    struct hk_delivered got;  /* masked */
    struct hk_err unrecorded; /* code HK_OK, or why the outcome could not be recorded */
};

extern const struct hk_op hk_op_dead_send;

/* ---- edit ---- */

struct hk_dead_edit_ask {
    const char *id, *destination;
    struct hk_str payload; /* as the application would write it */
    bool yes;              /* also do what is probably a mistake */
    bool dry_run;
    /* not of the table: of a door that has opened the letter first */
    bool opened;      /* what is masked was revealed, and that is recorded */
    uint64_t version; /* that people saw: another one now is HK_CONFLICT; 0 = whichever it has */
};

/* The text for an editor. HK_CONFLICT: the letter is not open, or has values that the caller may not see. */
struct hk_dead_opened {
    int64_t id;
    uint32_t version;
    struct hk_str payload;
};

struct hk_dead_edited {
    int64_t id;
    bool changed, dry_run;
    uint32_t version;   /* of the payload, now */
    bool same;          /* the new one says the same: nothing was to be changed */
    bool same_bytes;    /* and it is laid out in the same way */
    struct hk_str diff; /* masked; "" = there is none */
};

extern const struct hk_op hk_op_dead_open; /* no command: a step of edit */
extern const struct hk_op hk_op_dead_edit;

/* ---- fix ---- */

struct hk_dead_fix_ask {
    const char *jq; /* the program */
    struct hk_letter_words words;
    uint64_t samples; /* differences to show; more than a thousand: as many as fit the kind of run */
    uint64_t timeout_ms;
    bool dry_run;
    bool only_count; /* not of the table: check the program, and count the selected letters */
};

#define HK_DEAD_FAILURES 10

/* The result of one letter, masked: a difference, or why it failed. */
struct hk_dead_told {
    int64_t id;
    struct hk_str message_id, text;
};

struct hk_dead_fixed {
    bool dry_run;
    struct hk_count count; /* of `only_count` */
    uint64_t matched, changed, unchanged, failed;
    uint64_t maybe; /* of what was changed may have arrived before */
    int64_t act_id; /* in the audit; 0 = nothing was changed */
    struct hk_dead_told *samples;
    size_t n_samples;
    struct hk_dead_told failures[HK_DEAD_FAILURES]; /* the first of `failed` */
    size_t n_failures;
    struct hk_err stopped; /* code HK_OK, or why it ended before all were looked at */
};

extern const struct hk_op hk_op_dead_fix;

#endif
