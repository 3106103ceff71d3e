/* SPDX-License-Identifier: Apache-2.0 */
/* A form is one description of a result: it writes the result as JSON, reads it back from JSON, and makes its JSON Schema. `--json` and
 * the HTTP API write with it, the remote command line reads with it, and OpenAPI is generated from it: they cannot differ.
 *
 * A form is a function that visits the members of a result in the order in which JSON has them:
 *
 *     void hk_form_relay(struct hk_form *form, void *result)
 *     {
 *         struct hk_relay_row *r = result;
 *         hk_form_str(form, "name", &r->name);
 *         hk_form_bool(form, "running", &r->running);
 *     }
 *
 * - Writing does not change the result. It writes the values that the members point to. Where JSON holds something else than the
 *   struct, a form computes with locals, and copies them back only if hk_form_reads.
 * - Reading accepts members in any order, ignores unknown ones, and stops at the first that is missing or has another type. Texts go
 *   into the pool. The form bounds the depth, the text bounds the memory.
 * - For the schema the result is all zeros, so a form follows no pointer of it; lists and objects pass their own zeros.
 *
 * Texts that are not UTF-8 are written with U+FFFD: only hk_form_bytes keeps every byte. */
#ifndef HK_DESK_FORM_H
#define HK_DESK_FORM_H

#include "base/json.h"
#include "base/pool.h"

struct hk_form;

typedef void hk_form_fn(struct hk_form *form, void *result);

#define HK_FORM_SIZE_MAX 65536               /* of a result, and of an item of a list */
#define HK_FORM_TEXT_MAX ((size_t)256 << 20) /* that is read */

/* One JSON value. */
void hk_form_write(struct hk_json *json, hk_form_fn *fn, const void *result);
/* `out_result` must be zeroed; after an error it is of no use. HK_INVALID names the member: "items[2].lane must be …". */
enum hk_code hk_form_read(struct hk_str text, hk_form_fn *fn, struct hk_pool *mem, void *out_result,
                          struct hk_err *err) HK_MUSTCHECK;
/* One JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
void hk_form_schema(struct hk_json *json, hk_form_fn *fn);

/* Is the form reading? Then members have their values, and the form copies what it computes from them into the result. */
bool hk_form_reads(const struct hk_form *form);

/* ---- members. Where a comment says "null for", that is the empty value when it is read. ---- */

void hk_form_str(struct hk_form *form, const char *key, struct hk_str *value);       /* null for "" */
void hk_form_text(struct hk_form *form, const char *key, struct hk_str *value);      /* "" for "" */
void hk_form_cstr(struct hk_form *form, const char *key, const char **value);        /* null for NULL */
void hk_form_chars(struct hk_form *form, const char *key, char *value, size_t room); /* null for "" */
void hk_form_id(struct hk_form *form, const char *key, int64_t *value); /* a string; null for 0 */
void hk_form_time(struct hk_form *form, const char *key, int64_t *ms);  /* RFC 3339; null for 0 */
void hk_form_bool(struct hk_form *form, const char *key, bool *value);
void hk_form_double(struct hk_form *form, const char *key, double *value);
void hk_form_ratio(struct hk_form *form, const char *key, double *value); /* null for any that is negative */
/* As text where it is UTF-8 without NUL, else as base64 under key + "_base64"; the other is left out. */
void hk_form_bytes(struct hk_form *form, const char *key, struct hk_str *value);
void hk_form_payload(struct hk_form *form, const char *key, bool *has,
                     struct hk_str *value); /* null for !has */
/* A message; null for HK_OK, and HK_IO when there was one: the code itself does not travel. */
void hk_form_failure(struct hk_form *form, const char *key, struct hk_err *value);
/* A member that is always null now. */
void hk_form_null(struct hk_form *form, const char *key);

/* Integers, whatever their size: hk_form_uint(form, "attempts", &row->attempts). */
#define hk_form_uint(form, key, value)  hk_form_number(form, key, value, sizeof *(value), HK_FORM_UNSIGNED)
#define hk_form_int(form, key, value)   hk_form_number(form, key, value, sizeof *(value), HK_FORM_SIGNED)
#define hk_form_limit(form, key, value) hk_form_number(form, key, value, sizeof *(value), HK_FORM_LIMIT)
#define hk_form_maybe(form, key, value) hk_form_number(form, key, value, sizeof *(value), HK_FORM_MAYBE)

enum hk_form_number {
    HK_FORM_UNSIGNED = 0,
    HK_FORM_SIGNED,
    HK_FORM_LIMIT, /* unsigned; null for 0: there is none */
    HK_FORM_MAYBE  /* unsigned; null for the largest: not known */
};

void hk_form_number(struct hk_form *form, const char *key, void *value, size_t size,
                    enum hk_form_number kind);

/* An enum by the words for its values 0 to n - 1; words that are NULL do not occur. */
#define hk_form_choice(form, key, value, word, n)                                                            \
    do {                                                                                                     \
        const char *words_[n];                                                                               \
        for (unsigned i_ = 0; i_ < (unsigned)(n); i_++)                                                      \
            words_[i_] = word(i_);                                                                           \
        _Static_assert(sizeof *(value) == sizeof(unsigned), "an enum");                                      \
        hk_form_words(form, key, value, words_, n);                                                          \
    } while (0)
void hk_form_words(struct hk_form *form, const char *key, void *value, const char *const *words, size_t n);

/* ---- times that JSON counts from now ---- */

/* A time that the following count from. */
void hk_form_now(struct hk_form *form, const char *key, int64_t *ms);
void hk_form_age(struct hk_form *form, const char *key,
                 int64_t *ms); /* how long ago, not below 0; null for 0 */
void hk_form_left(struct hk_form *form, const char *key,
                  int64_t *ms); /* how long until; negative when it is past */

/* ---- objects and lists ---- */

/* `present` NULL: it always is one. Else null for false. */
void hk_form_object(struct hk_form *form, const char *key, bool *present, hk_form_fn *fn, void *value);

struct hk_form_list {
    void *items;     /* where the pointer to the items is; with `most`: the items themselves */
    size_t *n;       /* NULL: always `most` */
    size_t most;     /* room for this many; 0: taken from the pool */
    size_t size;     /* of an item */
    hk_form_fn *fn;  /* of an item's members */
    bool are_values; /* items are no objects: `fn` calls for one member, with the key NULL */
    bool in_a_line;  /* without line breaks, where there may be thousands */
};

/* hk_form_list(form, "items", &HK_FORM_ITEMS(o->items, o->n, form_item)); */
#define HK_FORM_ITEMS(array, count, form)                                                                    \
    (struct hk_form_list)                                                                                    \
    {                                                                                                        \
        .items = &(array), .n = &(count), .size = sizeof *(array), .fn = (form)                              \
    }
void hk_form_list(struct hk_form *form, const char *key, const struct hk_form_list *list);
/* The index of the item in its list. */
size_t hk_form_index(const struct hk_form *form);

/* Optional members: those of the block exist if the first of them (`key`) does.
 *     bool dry = o->dry_run;
 *     if (hk_form_if(form, "letters", &dry)) { … hk_form_end(form); } */
bool hk_form_if(struct hk_form *form, const char *key, bool *present);
void hk_form_end(struct hk_form *form);

/* Any JSON value, null for none. Laid out as the rest. */
void hk_form_raw(struct hk_form *form, const char *key, struct hk_str *value);
/* In place of all members: the result is this JSON, passed through as it is. */
void hk_form_whole(struct hk_form *form, struct hk_str *value);

#endif
