/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request, judged without a socket: how its body is framed, and whether a proxy could read the head in another way than
 * we do (request smuggling). A refused request gets an answer, and its connection ends. */
#ifndef HK_ADMIN_HEAD_H
#define HK_ADMIN_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#define HK_HEAD_LENGTH_NONE UINT64_MAX

/* A zeroed struct has seen no header. Texts are the caller's. */
struct hk_head_fields {
    const char *host, *origin, *encodings; /* Host, Origin, Accept-Encoding; NULL: none */
    const char *length, *coding;           /* Content-Length, Transfer-Encoding */
    unsigned seen;                         /* which of those that may come once */
    bool doubled;                          /* a header came twice of which there can be one */
    bool odd;                              /* a name that is no token: "Transfer-Encoding : chunked" */
};

struct hk_head_body {
    bool present;
    uint64_t length; /* HK_HEAD_LENGTH_NONE: the body comes in chunks */
};

/* For each header, in any order. */
void hk_head_note(struct hk_head_fields *head, const char *name, const char *value);
/* NULL: `out` says what body follows. Else why the request is a 400, as a constant text. `version`: "HTTP/1.1". */
const char *hk_head_check(const struct hk_head_fields *head, const char *version, struct hk_head_body *out);
/* Does Accept-Encoding (NULL: none) allow gzip? */
bool hk_head_takes_gzip(const char *encodings);

/* "/a/b?c=d" as it came: `out_path` is "/a/b", `out_query` "c=d"; ptr NULL when there is no '?'. Nothing is decoded. */
void hk_head_split(struct hk_str target, struct hk_str *out_path, struct hk_str *out_query);

#endif
