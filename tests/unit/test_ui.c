/* SPDX-License-Identifier: Apache-2.0 */
/* The dashboard's files: those that the build made, those of a folder, and what a browser may do with either. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/sessions.h"
#include "admin/ui.h"
#include "base/str.h"
#include "check.h"

static struct hk_admin_reply reply;

static unsigned ask(struct hk_ui_ask request)
{
    hk_buf_fini(&reply.body);
    hk_admin_reply_init(&reply, 200);
    if (!request.method)
        request.method = "GET";
    hk_ui_answer(&request, &reply);
    return reply.status;
}

static const char *header(const char *name)
{
    for (size_t i = 0; i < reply.n_headers; i++)
        if (strcmp(reply.headers[i].name, name) == 0)
            return reply.headers[i].value;
    return NULL;
}

static void check_guarded(void)
{
    const char *policy = header("Content-Security-Policy");
    assert_non_null(policy);
    assert_non_null(strstr(policy, "default-src 'none'"));
    assert_non_null(strstr(policy, "script-src 'self'"));
    assert_non_null(strstr(policy, "frame-ancestors 'none'"));
    assert_non_null(strstr(policy, "base-uri 'none'"));
    assert_null(strstr(policy, "unsafe"));
    assert_string_equal(header("Referrer-Policy"), "no-referrer");
    assert_string_equal(header("Cross-Origin-Opener-Policy"), "same-origin");
    assert_string_equal(header("Cross-Origin-Resource-Policy"), "same-origin");
}

/* ---- whose paths ---- */

static void test_its_paths_are_the_page_and_what_is_below_ui(void **state)
{
    (void)state;
    static const char *const ours[] = {"/", "/ui", "/ui/", "/ui/dev/main.js", "/ui/x"};
    static const char *const others[] = {"", "/api/v1/me", "/metrics", "/uii", "/u", "//", HK_SESSION_PATH};
    for (size_t i = 0; i < COUNT(ours); i++)
        assert_true(hk_ui_owns("folder", ours[i]));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(hk_ui_owns("folder", others[i]));
    assert_int_equal(hk_ui_owns(NULL, "/"), hk_ui_n_files > 0);
}

/* ---- in the program ---- */

static void check_file(const struct hk_ui_file *file)
{
    assert_int_equal(ask((struct hk_ui_ask){.path = file->path, .takes_gzip = true}), 200);
    check_guarded();
    assert_string_equal(header("Content-Encoding"), "gzip");
    assert_string_equal(header("Vary"), "Accept-Encoding");
    assert_string_equal(reply.content_type, file->type);
    assert_int_equal(reply.body.len, file->len);
    if (file->is_page)
        assert_string_equal(reply.cache, "no-cache");
    else
        assert_non_null(strstr(reply.cache, "immutable"));
    assert_int_equal(ask((struct hk_ui_ask){.path = file->path}), 200);
    assert_null(header("Content-Encoding"));
    assert_true(reply.body.len > 0);
    assert_int_equal(ask((struct hk_ui_ask){.path = file->path, .if_none_match = file->etag}), 304);
    assert_int_equal(reply.body.len, 0);
    assert_null(reply.content_type);
    assert_int_equal(ask((struct hk_ui_ask){.path = file->path, .if_none_match = "\"other\""}), 200);
}

static void test_files_of_the_program_are_served_and_kept(void **state)
{
    (void)state;
    if (hk_ui_n_files == 0)
        skip(); /* npm or its packages were not to be had */
    bool page = false;
    for (size_t i = 0; i < hk_ui_n_files; i++) {
        check_file(&hk_ui_files[i]);
        page |= hk_ui_files[i].is_page;
    }
    assert_true(page);
    assert_int_equal(ask((struct hk_ui_ask){.path = "/ui/"}), 200);
    assert_string_equal(reply.content_type, "text/html; charset=utf-8");
    assert_int_equal(ask((struct hk_ui_ask){.path = "/ui/nothing"}), 404);
    assert_int_equal(ask((struct hk_ui_ask){.path = "/ui/dev/main.js"}), 404);
}

static void test_files_are_only_read(void **state)
{
    (void)state;
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "get"};
    for (size_t i = 0; i < COUNT(methods); i++) {
        assert_int_equal(ask((struct hk_ui_ask){.path = "/", .method = methods[i]}), 405);
        assert_string_equal(reply.allow, "GET, HEAD");
    }
}

/* ---- in a folder ---- */

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_a_folder_serves_what_it_holds_and_nothing_above(void **state)
{
    (void)state;
    char dir[] = "/tmp/hikyaku-ui-XXXXXX", inner[40], path[80];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(inner, sizeof inner, "%s/ui", dir);
    assert_int_equal(mkdir(inner, 0700), 0);
    write_file(dir, "secret.js", "secret");
    write_file(inner, "index.html", "<p>page");
    write_file(inner, "main.js", "let a;");
    write_file(inner, "notes.txt", "not served");
    assert_int_equal(ask((struct hk_ui_ask){.path = "/", .dir = inner}), 200);
    assert_string_equal(hk_buf_cstr(&reply.body), "<p>page");
    assert_string_equal(reply.cache, "no-store");
    check_guarded();
    assert_int_equal(ask((struct hk_ui_ask){.path = "/ui/dev/main.js", .dir = inner}), 200);
    assert_string_equal(hk_buf_cstr(&reply.body), "let a;");
    assert_string_equal(reply.content_type, "text/javascript; charset=utf-8");
    static const char *const wrong[] = {
        "/ui/dev/../secret.js", "/ui/dev//main.js", "/ui/dev/notes.txt", "/ui/dev/",
        "/ui/dev/none.js",      "/ui/main.js",      "/ui/dev/..",        "/main.js"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        NOTE_IF(ask((struct hk_ui_ask){.path = wrong[i], .dir = inner}) != 404, "%s\n", wrong[i]);
        assert_int_equal(ask((struct hk_ui_ask){.path = wrong[i], .dir = inner}), 404);
    }
    static const char *const names[] = {"ui/index.html", "ui/main.js", "ui/notes.txt", "secret.js"};
    for (size_t i = 0; i < COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(rmdir(dir), 0);
}

static int finish(void **state)
{
    (void)state;
    hk_buf_fini(&reply.body);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_its_paths_are_the_page_and_what_is_below_ui),
        cmocka_unit_test(test_files_of_the_program_are_served_and_kept),
        cmocka_unit_test(test_files_are_only_read),
        cmocka_unit_test(test_a_folder_serves_what_it_holds_and_nothing_above),
    };
    return cmocka_run_group_tests(tests, NULL, finish);
}
