/* SPDX-License-Identifier: Apache-2.0 */
/* An error in the format of RFC 9457: status, text for people, a stable code for programs, and the field that is wrong. */
#ifndef HK_ADMIN_PROBLEM_H
#define HK_ADMIN_PROBLEM_H

#include "base/buf.h"

struct hk_problem {
    unsigned status;
    const char *code;   /* "INVALID", "TOKEN_MISSING"; NULL = none */
    const char *detail; /* for people; NULL = the title says all */
    /* What the problem is about: a field of the request, and what is wrong with it, without the field's name. NULL = no field. */
    const char *field, *about;
    const char *below; /* a JSON pointer into the field; NULL = all of it */
    /* All that is wrong in the field, in the place of `below` and `about`; NULL = that is all. */
    const struct hk_definition_wrongs *wrongs;
    bool in_body; /* the field is a member of the body, else a parameter of the URL */
};

/* application/problem+json, with a line end. */
void hk_problem_write(const struct hk_problem *problem, struct hk_buf *out);
/* The status of an error that an operation gave. */
unsigned hk_problem_status(enum hk_code code);

#endif
