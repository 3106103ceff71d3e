/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines of random fields, in both formats: always one line of well-formed UTF-8 without controls, JSON that jansson reads, and a secret
 * that stands in the middle of whatever text is never seen. A field is a byte of length (times four), then its bytes. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "observe/log.h"
#include "observe/redact.h"

#define SECRET "hUnTeR2hUnTeR2"

static struct hk_str take(struct hk_str *rest, size_t n)
{
    struct hk_str taken = {rest->ptr, n < rest->len ? n : rest->len};
    rest->ptr += taken.len;
    rest->len -= taken.len;
    return taken;
}

static void check_line(struct hk_str line)
{
    MUST(line.len > 0 && line.len <= HK_LOG_LINE_MAX && line.ptr[line.len - 1] == '\n');
    for (size_t at = 0; at + 1 < line.len;) {
        uint32_t c;
        at += hk_utf8_next((struct hk_str){line.ptr + at, line.len - at}, &c);
        MUST(c != HK_UTF8_BAD && c >= 0x20 && (c < 0x7f || c > 0x9f) && c != 0x2028 && c != 0x2029);
    }
}

static void write_line(struct hk_log *log, struct hk_str rest)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
    struct hk_log_line line;
    hk_log_begin(&line, log, HK_LOG_INFO, "event");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && rest.len; i++) {
        size_t n = (unsigned char)take(&rest, 1).ptr[0];
        struct hk_str value = take(&rest, n * 4);
        if (n == 255)
            hk_log_i64(&line, keys[i], (int64_t)value.len - 9);
        else
            hk_log_str(&line, keys[i], value);
    }
    hk_log_ms(&line, "wait", 1234);
    hk_log_end(&line);
}

static void check_fields(struct hk_str fields, enum hk_log_format format)
{
    char text[HK_LOG_LINE_MAX + 1];
    int ends[2];
    struct hk_log log;
    MUST(pipe(ends) == 0);
    hk_log_init(&log, ends[1], HK_LOG_INFO);
    hk_log_configure(&log, HK_LOG_INFO, format);
    write_line(&log, fields);
    ssize_t n = read(ends[0], text, sizeof text);
    MUST(n > 0 && (size_t)n < sizeof text && hk_log_dropped(&log) == 0);
    check_line((struct hk_str){text, (size_t)n});
    if (format == HK_LOG_JSON) {
        json_t *root = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        MUST(json_is_object(root) && json_object_get(root, "msg"));
        json_decref(root);
    }
    hk_log_fini(&log);
    close(ends[0]);
    close(ends[1]);
}

static bool contains(struct hk_str s, const char *needle)
{
    size_t n = strlen(needle);
    for (size_t i = 0; i + n <= s.len; i++)
        if (memcmp(s.ptr + i, needle, n) == 0)
            return true;
    return false;
}

/* Whatever stands around it, wherever the room ends. */
static void check_secret(struct hk_str around, const char *intro)
{
    char text[8192], shown[512];
    size_t before = around.len / 2, n = 0, read = 0;
    if (contains(around, "hUnT") || around.len > 4000)
        return;
    memcpy(text, around.ptr, before);
    n = before;
    text[n++] = '\n'; /* ends whatever quotes were open */
    memcpy(text + n, intro, strlen(intro));
    n += strlen(intro);
    memcpy(text + n, SECRET, strlen(SECRET));
    n += strlen(SECRET);
    memcpy(text + n, "@ ", 2);
    n += 2;
    memcpy(text + n, around.ptr + before, around.len - before);
    n += around.len - before;
    size_t len = hk_redact((struct hk_str){text, n}, shown, sizeof shown, &read);
    MUST(len <= sizeof shown && read <= n);
    MUST(!contains((struct hk_str){shown, len}, "hUnT"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str input = {(const char *)data, size};
    if (size > 8192)
        return 0;
    check_fields(input, HK_LOG_LOGFMT);
    check_fields(input, HK_LOG_JSON);
    check_secret(input, "password=");
    check_secret(input, "https://user:");
    check_secret(input, "Authorization: Bearer ");
    return 0;
}
