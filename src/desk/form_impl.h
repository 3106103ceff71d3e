/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of a form: form.c has the members, form_read.c finds them in a text. */
#ifndef HK_DESK_FORM_IMPL_H
#define HK_DESK_FORM_IMPL_H

#include "desk/form.h"
#include "payload/scan.h"

enum mode {
    WRITING = 0,
    READING,
    DESCRIBING
};

/* A value in the text: strings with their quotes, containers to their end. */
struct hk_form_value {
    enum hk_scan_kind kind;
    struct hk_str raw;
};

/* The object that is read, and how far. Members mostly come in the order in which they are asked for. */
struct hk_form_place {
    struct hk_str text;
    struct hk_json_scan scan;
    struct hk_form_value item; /* for a list of values, which have no keys */
};

#define HK_FORM_MEMBERS_MAX 96

/* The members of the object that is described that are always there. */
struct hk_form_required {
    const char *keys[HK_FORM_MEMBERS_MAX];
    size_t n;
    unsigned optional; /* open optional blocks: their members are not required */
};

struct hk_form {
    enum mode mode;
    int64_t now_ms;
    size_t index;         /* of the item */
    struct hk_json *json; /* writing and describing */
    bool is_whole;
    bool is_open; /* the outermost object: with the first member, for a whole has none */
    struct hk_form_required *required;
    void *zeros; /* HK_FORM_SIZE_MAX of them */
    /* reading */
    struct hk_str text;
    struct hk_pool *mem;
    struct hk_err *err;
    enum hk_code rc; /* the first error stays */
    struct hk_form_place *place;
    char path[160]; /* "items[2].": where the place is */
    size_t path_len;
};

/* ---- reading: each does nothing after an error ---- */

void hk_form_place_init(struct hk_form_place *place, struct hk_str object);
/* Is there such a member? It is no error if there is none. */
bool hk_form_find(struct hk_form *form, const char *key, struct hk_form_value *out);
/* The same for a member that must be there. */
bool hk_form_take(struct hk_form *form, const char *key, struct hk_form_value *out);
/* Says what the member must be. */
void hk_form_wrong(struct hk_form *form, const char *key, const char *must);
void hk_form_no_memory(struct hk_form *form);
/* Where the members that follow are: "items[2]."; returns what leaves it again. */
size_t hk_form_enter(struct hk_form *form, const char *key, size_t index);
void hk_form_leave(struct hk_form *form, size_t before);
/* The items of an array, one after the other. False: that was all. */
bool hk_form_next(struct hk_json_scan *scan, struct hk_form_value *out);

/* The text of a string, in the pool and with a terminator. False: an error. */
bool hk_form_take_text(struct hk_form *form, const char *key, struct hk_str raw, struct hk_str *out);
bool hk_form_parse_double(struct hk_str number, double *out);

#endif
