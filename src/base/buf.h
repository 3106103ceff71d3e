/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a mandatory maximum. The first failure sticks: later additions do nothing and
 * return it, so that a writer may check once, at the end (hk_buf_status). Always NUL-terminated. */
#ifndef HK_BASE_BUF_H
#define HK_BASE_BUF_H

#include <stddef.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

struct hk_buf {
    char *data; /* NULL until the first byte; use hk_buf_cstr for a string */
    size_t len;
    size_t room; /* allocated, terminator included */
    size_t max;  /* len never passes this */
    enum hk_code status;
};

void hk_buf_init(struct hk_buf *buf, size_t max_bytes);
void hk_buf_fini(struct hk_buf *buf);  /* frees; the buffer may be used again with the same maximum */
void hk_buf_reset(struct hk_buf *buf); /* empty and without error; keeps its memory */

/* Each returns HK_OK, HK_TOOBIG or HK_NOMEM; on failure nothing of this call is added. */
enum hk_code hk_buf_add(struct hk_buf *buf, const void *bytes, size_t len);
enum hk_code hk_buf_adds(struct hk_buf *buf, const char *s);
enum hk_code hk_buf_addc(struct hk_buf *buf, char c);
enum hk_code hk_buf_addf(struct hk_buf *buf, const char *fmt, ...) HK_PRINTF(2, 3);

enum hk_code hk_buf_add_base64(struct hk_buf *buf, const void *bytes, size_t len);
enum hk_code hk_buf_status(const struct hk_buf *buf) HK_MUSTCHECK;
/* What failed for a part has failed for the whole: before a part is put in place. */
void hk_buf_inherit(struct hk_buf *whole, const struct hk_buf *part);
const char *hk_buf_cstr(const struct hk_buf *buf); /* "" when empty; valid until the next addition */
struct hk_str hk_buf_str(const struct hk_buf *buf);
/* The bytes become the caller's (hk_mem_free); NULL after a failure or when out of memory. */
char *hk_buf_detach(struct hk_buf *buf);

#endif
