/* SPDX-License-Identifier: Apache-2.0 */
/* Looks a file up, and says what browsers may do with it: keep it, run it, and load nothing from elsewhere. */
#include <stdio.h>
#include <string.h>

#include "admin/sessions.h"
#include "admin/ui.h"
#include "base/str.h"
#include "observe/gzip.h"

/* Scripts and styles of this server alone: nothing inline, no eval, no frame around it, no form to elsewhere. */
#define POLICY                                                                                               \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "          \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

#define DEV_PREFIX "/ui/dev/"

enum {
    DEV_FILE_MAX = 4 << 20
};

static bool is_page(const char *path)
{
    return strcmp(path, "/") == 0 || strcmp(path, "/ui") == 0 || strcmp(path, "/ui/") == 0;
}

bool hk_ui_owns(const char *dir, const char *path)
{
    if ((!dir && hk_ui_n_files == 0) || strcmp(path, HK_SESSION_PATH) == 0)
        return false;
    return is_page(path) || strncmp(path, "/ui/", 4) == 0;
}

/* ---- headers ---- */

static void add(struct hk_admin_reply *out, const char *name, const char *value)
{
    (void)hk_admin_reply_header(out, name, hk_str_of(value));
}

static void guard(struct hk_admin_reply *out)
{
    add(out, "Content-Security-Policy", POLICY);
    add(out, "Referrer-Policy", "no-referrer");
    add(out, "Cross-Origin-Opener-Policy", "same-origin");
    add(out, "Cross-Origin-Resource-Policy", "same-origin");
}

/* ---- in the program ---- */

static const struct hk_ui_file *find(const char *path)
{
    const char *wanted = is_page(path) ? "/" : path;
    for (size_t i = 0; i < hk_ui_n_files; i++)
        if (strcmp(hk_ui_files[i].path, wanted) == 0)
            return &hk_ui_files[i];
    return NULL;
}

static void answer_built(const struct hk_ui_ask *ask, struct hk_admin_reply *out)
{
    const struct hk_ui_file *file = find(ask->path);
    if (!file) {
        hk_admin_problem(out, 404, NULL);
        return;
    }
    struct hk_str packed = {(const char *)file->gzip, file->len};
    guard(out);
    add(out, "ETag", file->etag);
    add(out, "Vary", "Accept-Encoding");
    out->cache = file->is_page ? "no-cache" : "public, max-age=31536000, immutable";
    if (ask->if_none_match && strstr(ask->if_none_match, file->etag)) {
        out->status = 304;
        return;
    }
    out->content_type = file->type;
    if (!ask->takes_gzip) {
        (void)!hk_gunzip(packed, &out->body); /* the buffer remembers */
        return;
    }
    add(out, "Content-Encoding", "gzip");
    (void)hk_buf_add(&out->body, packed.ptr, packed.len);
}

/* ---- in a folder ---- */

static bool ends_with(const char *text, const char *ending)
{
    size_t len = strlen(text), n = strlen(ending);
    return len >= n && strcmp(text + len - n, ending) == 0;
}

static const char *type_of(const char *name)
{
    static const struct {
        const char *ending, *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".svg", "image/svg+xml"}};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (ends_with(name, types[i].ending))
            return types[i].type;
    return NULL;
}

/* The page, or a file below the folder: names that lead out of it are none. */
static const char *name_in_folder(const char *path)
{
    if (is_page(path))
        return "index.html";
    if (strncmp(path, DEV_PREFIX, sizeof DEV_PREFIX - 1) != 0 || strstr(path, "..") || strstr(path, "//"))
        return NULL;
    return path + sizeof DEV_PREFIX - 1;
}

static bool read_file(const char *dir, const char *name, struct hk_buf *out)
{
    char path[1024], block[8192];
    int len = snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = len > 0 && (size_t)len < sizeof path ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    size_t n = 0;
    while ((n = fread(block, 1, sizeof block, f)) > 0 && out->len < DEV_FILE_MAX)
        (void)hk_buf_add(out, block, n);
    bool ok = !ferror(f);
    (void)fclose(f);
    return ok;
}

static void answer_folder(const struct hk_ui_ask *ask, struct hk_admin_reply *out)
{
    const char *name = name_in_folder(ask->path), *type = name ? type_of(name) : NULL;
    if (!type || !read_file(ask->dir, name, &out->body)) {
        hk_admin_problem(out, 404, NULL);
        return;
    }
    guard(out);
    out->cache = "no-store";
    out->content_type = type;
}

void hk_ui_answer(const struct hk_ui_ask *ask, struct hk_admin_reply *out)
{
    if (strcmp(ask->method, "GET") != 0 && strcmp(ask->method, "HEAD") != 0) {
        hk_admin_problem(out, 405, NULL);
        out->allow = "GET, HEAD";
    } else if (ask->dir) {
        answer_folder(ask, out);
    } else {
        answer_built(ask, out);
    }
    if (hk_buf_status(&out->body) != HK_OK)
        hk_admin_problem(out, 503, "out of memory for the answer");
}
