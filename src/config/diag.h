/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of a file with their positions: all at once, in file order, bounded. */
#ifndef HK_CONFIG_DIAG_H
#define HK_CONFIG_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/buf.h"
#include "base/show.h"

#define HK_DIAGS_MAX 100 /* the first so many are kept, the rest is counted */

/* Both from 1; line 0: the file as a whole. Columns count characters, not bytes. */
struct hk_pos {
    uint32_t line, col;
};

enum hk_severity {
    HK_SEVERITY_ERROR = 0,
    HK_SEVERITY_WARNING
};

struct hk_diag {
    char *file; /* owns both strings */
    const char *message;
    struct hk_pos at;
    enum hk_severity severity;
};

struct hk_diags {
    struct hk_diag items[HK_DIAGS_MAX]; /* by position; those of one position as they came */
    size_t n;
    size_t errors, warnings; /* all of them, also those that were not kept */
    bool nomem;              /* one could not be stored */
};

void hk_diags_init(struct hk_diags *diags);
void hk_diags_fini(struct hk_diags *diags); /* frees; may be used again */
void hk_diags_add(struct hk_diags *diags, enum hk_severity severity, const char *file, struct hk_pos at,
                  const char *fmt, ...) HK_PRINTF(5, 6);
/* "file:line:col: message", without a newline. */
void hk_diag_format(const struct hk_diag *diag, struct hk_buf *out);
/* One line each, and "… and N more" when some were not kept. */
void hk_diags_format(const struct hk_diags *diags, struct hk_buf *out);

/* A value as messages show it: hk_show, and *** for a secret. Returns `out`. */
const char *hk_diag_show(struct hk_str s, bool secret, char out[HK_SHOW_MAX]);

#endif
