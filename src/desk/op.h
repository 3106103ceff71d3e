/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the desk, one row for each. Command line, help, completion, `--json`, the reference and HTTP routes are
 * generated from these rows.
 *
 * A row has the operation's name, the required role, the members of the request, and the form of the result as JSON. It prints
 * nothing, and decides nothing about messages: `run` does, in the file of the operation's family. */
#ifndef HK_DESK_OP_H
#define HK_DESK_OP_H

#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "desk/form.h"

struct hk_desk;
struct hk_op_job;

/* ---- the caller ---- */

/* Each role includes the roles before it. */
enum hk_role {
    HK_ROLE_NONE = 0,
    HK_ROLE_METRICS,
    HK_ROLE_VIEWER,
    HK_ROLE_OPERATOR,
    HK_ROLE_ADMIN
};

/* The progress of a long operation. */
struct hk_progress {
    uint64_t done, total;     /* total 0 = not known */
    uint64_t changed, failed; /* of operations that tell them apart */
};

struct hk_caller {
    enum hk_role role;
    const char *actor;  /* the name for the audit */
    const char *reason; /* NULL or "" = none was given */
    bool may_reveal;    /* has the right to see masked values */
    bool reveal;        /* asks to see masked values: needs a reason, and the audit records it first */
    bool background;    /* run it as a job (job.h); needs an operation that can be one */
    /* Both may be NULL. Called by long operations, now and then. */
    void (*progress)(void *arg, const struct hk_progress *progress);
    bool (*stop)(void *arg); /* true: end as soon as nothing is half done */
    void *arg;
};

/* ---- the request ---- */

enum hk_arg_kind {
    HK_ARG_FLAG = 0, /* bool */
    HK_ARG_TEXT,     /* const char *, NULL when not given */
    HK_ARG_TEXTS,    /* struct hk_texts: may be given several times */
    HK_ARG_CHOICE,   /* const char *: one of `choices`, NULL when not given */
    HK_ARG_NUMBER,   /* uint64_t from `lo` to `hi` */
    HK_ARG_DURATION, /* uint64_t, in milliseconds, from `lo` to `hi` */
    HK_ARG_RATE,     /* double, a second, from `lo` to `hi` */
    HK_ARG_BYTES,    /* struct hk_str, ptr NULL when not given; a command takes TEXT, - or @FILE */
    HK_ARG_FILE,     /* const char *: a file's name */
    HK_ARG_POLICY    /* const char *: a policy's name */
};

#define HK_TEXTS_MAX 100

struct hk_texts {
    const char *const *items;
    size_t n;
};

struct hk_arg {
    const char *name; /* as JSON has it: a command's option has - for _. NULL ends a list. */
    enum hk_arg_kind kind;
    bool subject;  /* the thing that the operation works on: an operand of the command, a part of a route */
    bool required; /* of a subject */
    size_t offset; /* in the request */
    double lo, hi; /* hi 0 = no bound */
    double fallback;
    const char *value;   /* the value's name in help */
    const char *choices; /* words with blanks between */
    const char *help;
};

/* The members of a row that nearly all rows have, for a field of `struct type`: {HK_ARG(…), .lo = 1}. */
#define HK_ARG(type, field, of, called, says)                                                                \
    .name = #field, .kind = (of), .offset = offsetof(struct type, field), .value = (called), .help = (says)
#define HK_SUBJECT(type, field, called, says)                                                                \
    HK_ARG(type, field, HK_ARG_TEXT, called, says), .subject = true, .required = true

/* ---- an operation ---- */

/* Checks a request by itself, before the desk asks for a reason and before it opens the store. */
typedef enum hk_code hk_op_check(struct hk_desk *desk, const void *request, struct hk_err *err);

typedef enum hk_code hk_op_run(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                               struct hk_pool *mem, void *result, struct hk_err *err);

struct hk_op {
    const char *noun, *verb; /* "messages", "list"; verb NULL: the noun says all ("status") */
    const char *summary;     /* one line, imperative, without a full stop */
    const char *details;     /* NULL: the summary says all */
    /* Method and path below /api/v1: "GET /messages/{message_id}". A name in braces is a subject; all other fields are in the query of a
     * GET, else in the JSON body. NULL: not over HTTP. */
    const char *route;
    enum hk_role role; /* the required role */
    bool store;        /* uses the store: the desk opens it first */
    bool changes;      /* changes something */
    bool needs_reason; /* the audit keeps who asked, and why */
    bool reveals;      /* can show masked values to a caller that asks for them */
    bool is_long;      /* reports progress, and can be stopped */
    bool sends;        /* to a receiver or a channel: every secret of the configuration must be there */
    bool secret;       /* the result contains a secret, which is shown once and never stored */
    const struct hk_op_job *job; /* how it runs in the background (job.h); NULL: it cannot */
    const struct hk_arg *args;   /* NULL: none */
    size_t request_size, result_size;
    hk_op_check *check; /* NULL: nothing can be */
    hk_op_run *run;
    /* The result as JSON. NULL: it is a stream, which `run` hands to its request's function. */
    hk_form_fn *form;
};

/* One JSON value, of an operation whose result is no stream. */
void hk_op_write(const struct hk_op *op, struct hk_json *json, const void *result);
/* Is the request a dry run (its flag "dry_run" is set, or "apply" is not)? Then it needs no reason. */
bool hk_op_is_dry_run(const struct hk_op *op, const void *request);

/* Defines `name_op`, which the table can hold, around the typed function `name`. */
#define HK_OP_RUN(name)                                                                                      \
    static enum hk_code name##_op(struct hk_desk *desk, const struct hk_caller *caller, const void *request, \
                                  struct hk_pool *mem, void *result, struct hk_err *err)                     \
    {                                                                                                        \
        return name(desk, caller, request, mem, result, err);                                                \
    }

/* All of them, in the order of the reference. */
extern const struct hk_op *const hk_ops[];
extern const size_t hk_n_ops;

#endif
