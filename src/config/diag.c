/* SPDX-License-Identifier: Apache-2.0 */
/* The list is kept sorted while it grows, so that the first hundred are the first hundred of the file, whichever
 * check found them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/diag.h"

#define MESSAGE_MAX 1024

void hk_diags_init(struct hk_diags *diags)
{
    memset(diags, 0, sizeof *diags);
}

void hk_diags_fini(struct hk_diags *diags)
{
    for (size_t i = 0; i < diags->n; i++)
        hk_mem_free(diags->items[i].file);
    hk_diags_init(diags);
}

static bool before(struct hk_pos a, struct hk_pos b)
{
    return a.line != b.line ? a.line < b.line : a.col < b.col;
}

/* File name and message in one piece of memory: "file\0message\0". */
static bool store(struct hk_diag *diag, const char *file, const char *message)
{
    size_t file_room = strlen(file) + 1;
    size_t message_room = strlen(message) + 1;
    diag->file = hk_mem_alloc(file_room + message_room);
    if (!diag->file)
        return false;
    memcpy(diag->file, file, file_room);
    memcpy(diag->file + file_room, message, message_room);
    diag->message = diag->file + file_room;
    return true;
}

static void insert(struct hk_diags *diags, const struct hk_diag *diag)
{
    size_t i = diags->n;
    while (i > 0 && before(diag->at, diags->items[i - 1].at))
        i--;
    memmove(&diags->items[i + 1], &diags->items[i], (diags->n - i) * sizeof *diag);
    diags->items[i] = *diag;
    diags->n++;
}

void hk_diags_add(struct hk_diags *diags, enum hk_severity severity, const char *file, struct hk_pos at,
                  const char *fmt, ...)
{
    *(severity == HK_SEVERITY_ERROR ? &diags->errors : &diags->warnings) += 1;
    if (diags->n == HK_DIAGS_MAX && !before(at, diags->items[diags->n - 1].at))
        return;
    char message[MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    struct hk_diag diag = {.at = at, .severity = severity};
    if (len < 0 || !store(&diag, file, message)) {
        diags->nomem = true;
        return;
    }
    if (diags->n == HK_DIAGS_MAX)
        hk_mem_free(diags->items[--diags->n].file);
    insert(diags, &diag);
}

void hk_diag_format(const struct hk_diag *diag, struct hk_buf *out)
{
    hk_buf_adds(out, diag->file);
    if (diag->at.line)
        hk_buf_addf(out, ":%u:%u", (unsigned)diag->at.line, (unsigned)diag->at.col);
    hk_buf_adds(out, diag->severity == HK_SEVERITY_WARNING ? ": warning: " : ": ");
    hk_buf_adds(out, diag->message);
}

void hk_diags_format(const struct hk_diags *diags, struct hk_buf *out)
{
    for (size_t i = 0; i < diags->n; i++) {
        hk_diag_format(&diags->items[i], out);
        hk_buf_addc(out, '\n');
    }
    size_t total = diags->errors + diags->warnings;
    if (total > diags->n)
        hk_buf_addf(out, "… and %zu more\n", total - diags->n);
}

const char *hk_diag_show(struct hk_str s, bool secret, char out[HK_SHOW_MAX])
{
    if (!secret)
        return hk_show(s, out);
    memcpy(out, "***", sizeof "***");
    return out;
}
