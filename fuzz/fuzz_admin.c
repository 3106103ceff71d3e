/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server's requests: flags, then method, path and Host with zero bytes between. Always a reply; a body that is JSON is read by jansson;
 * nobody sees what is above his role; and a Host that is not this machine's gets nothing from a listener for it alone. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "admin/route.h"
#include "base/str.h"
#include "fuzz.h"

static int64_t now_ms(void)
{
    return 1000;
}

static void refresh(void *arg)
{
    (void)arg;
}

static const char *next_text(struct hk_str *rest, char *out, size_t size)
{
    struct hk_str part = hk_str_cut(rest, '\0');
    MUST(hk_str_copy(out, size, part) || part.len >= size);
    return part.len < size ? out : "";
}

static void check_reply(const struct hk_admin_request *request, const struct hk_admin_reply *reply)
{
    struct hk_str body = hk_buf_str(&reply->body);
    MUST(reply->content_type != NULL && hk_buf_status(&reply->body) == HK_OK);
    MUST(reply->status == 200 || reply->status == 404 || reply->status == 405 || reply->status == 413 ||
         reply->status == 421 || reply->status == 503);
    if (strstr(reply->content_type, "json") != NULL) {
        json_t *root = json_loadb(body.ptr, body.len, JSON_REJECT_DUPLICATES, NULL);
        MUST(json_is_object(root));
        json_decref(root);
    }
    MUST((reply->allow != NULL) == (reply->status == 405));
    if (strcmp(request->path, "/metrics") == 0 && request->role < HK_ROLE_METRICS)
        MUST(reply->status != 200);
    if (reply->status == 200) {
        MUST(strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0);
        MUST(!request->has_body);
    }
    if (reply->status == 200 && request->loopback_only && request->host != NULL)
        MUST(strpbrk(request->host, "1lL") != NULL); /* localhost, 127…, ::1 */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hk_metric_def defs[] = {
        {.name = "hikyaku_test_total", .help = "h", .type = HK_METRIC_COUNTER}};
    static struct hk_metrics *metrics;
    static struct hk_health health;
    char method[64], path[1024], host[256];
    if (size < 1 || size > 2048)
        return 0;
    if (metrics == NULL)
        MUST(hk_metrics_new(defs, 1, &metrics, NULL) == HK_OK);
    struct hk_str rest = {(const char *)data + 1, size - 1};
    struct hk_admin_site site = {.health = &health, .metrics = metrics, .refresh = refresh, .now_ms = now_ms};
    struct hk_admin_request request = {
        .role = data[0] % 5, .has_body = data[0] & 32, .loopback_only = data[0] & 64};
    struct hk_admin_reply reply;
    request.method = next_text(&rest, method, sizeof method);
    request.path = next_text(&rest, path, sizeof path);
    request.host = data[0] & 128 ? next_text(&rest, host, sizeof host) : NULL;
    hk_admin_answer(&site, &request, &reply);
    check_reply(&request, &reply);
    hk_buf_fini(&reply.body);
    return 0;
}
