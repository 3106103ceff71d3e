/* SPDX-License-Identifier: Apache-2.0 */
/* The only place of the command line that knows stdout, stderr and the terminal. */
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/out.h"

/* A name from a file must not move the cursor or rename the window of whoever reads the message. */
static void make_safe(char *s)
{
    struct hk_str rest = hk_str_of(s);
    while (rest.len > 0) {
        uint32_t c = 0;
        size_t n = hk_utf8_next(rest, &c);
        if (c == HK_UTF8_BAD || hk_utf8_is_unruly(c))
            memset(s + (rest.ptr - s), '?', n);
        rest.ptr += n;
        rest.len -= n;
    }
}

void hk_out_complaint(const char *line)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%s", line);
    make_safe(text);
    (void)fprintf(stderr, "%s\n", text);
}

int hk_out_error(enum hk_exit code, const char *fmt, ...)
{
    char text[1024] = "hikyaku: ";
    size_t used = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text + used, sizeof text - used, fmt, ap);
    va_end(ap);
    hk_out_complaint(text);
    return (int)code;
}

static enum hk_exit exit_of(enum hk_code code)
{
    switch (code) {
    case HK_OK:
        return HK_EXIT_OK;
    case HK_UNAVAILABLE:
        return HK_EXIT_UNAVAILABLE;
    case HK_BUSY:
    case HK_TIMEOUT:
        return HK_EXIT_TEMPORARY;
    case HK_NOMEM:
    case HK_INVALID:
    case HK_RANGE:
    case HK_TOOBIG:
    case HK_NOTFOUND:
    case HK_EXISTS:
    case HK_CONFLICT:
    case HK_IO:
    case HK_UNSUPPORTED:
    case HK_GAVE_UP:
    case HK_CANCELLED:
    case HK_DENIED:
    case HK_NCODES:
        break;
    }
    return HK_EXIT_FAILURE;
}

int hk_out_failure(const struct hk_err *err)
{
    return hk_out_error(exit_of(err->code), "%s", err->message);
}

int hk_out_buffer(struct hk_buf *buf)
{
    int code = HK_EXIT_OK;

    if (hk_buf_status(buf) != HK_OK)
        code = hk_out_error(HK_EXIT_FAILURE, "the output does not fit in memory");
    else if (buf->len > 0 && fwrite(hk_buf_cstr(buf), 1, buf->len, stdout) != buf->len)
        code = HK_EXIT_FAILURE; /* hk_out_close says why */
    hk_buf_fini(buf);
    return code;
}

int hk_out_close(int code)
{
    bool failed = ferror(stdout) != 0;
    int why = EIO;

    if (failed) { /* long ago, perhaps: errno has been used since, and one more byte tells */
        clearerr(stdout);
        (void)fputc('\n', stdout);
    }
    if (fflush(stdout) != 0) {
        failed = true;
        why = errno;
    }
    if (!failed)
        return code;
    if (why != EPIPE)
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot write the output: %s", strerror(why));
    return code == HK_EXIT_OK ? HK_EXIT_FAILURE : code;
}

bool hk_out_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool hk_out_color(void)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (no != NULL && no[0] != '\0')
        return false;
    if (term == NULL || strcmp(term, "dumb") == 0)
        return false;
    return isatty(STDOUT_FILENO) == 1;
}

unsigned hk_out_width(void)
{
    uint64_t columns = 80;

    if (hk_parse_u64(hk_str_of(getenv("COLUMNS")), &columns, NULL) != HK_OK)
        return 80;
    if (columns < 40)
        return 40;
    return columns > 240 ? 240 : (unsigned)columns;
}
