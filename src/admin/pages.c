/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of the admin server: two answers for probes, and one page for Prometheus. */
#include "admin/route.h"
#include "base/json.h"

static void say(struct hk_admin_reply *out, const char *why_not)
{
    struct hk_json json;
    out->status = why_not ? 503 : 200;
    out->content_type = "application/json";
    hk_json_init(&json, &out->body, false);
    hk_json_object(&json);
    hk_json_key(&json, "status");
    hk_json_cstr(&json, why_not ? "fail" : "ok");
    if (why_not) {
        hk_json_key(&json, "why");
        hk_json_cstr(&json, why_not);
    }
    hk_json_end(&json);
    hk_buf_addc(&out->body, '\n');
}

void hk_admin_livez(const struct hk_admin_site *site, struct hk_admin_reply *out)
{
    say(out, hk_health_live(site->health, site->now_ms()));
}

void hk_admin_readyz(const struct hk_admin_site *site, struct hk_admin_reply *out)
{
    say(out, hk_health_ready(site->health, site->now_ms()));
}

void hk_admin_metrics(const struct hk_admin_site *site, struct hk_admin_reply *out)
{
    if (site->refresh)
        site->refresh(site->arg);
    out->content_type = "text/plain; version=0.0.4; charset=utf-8";
    hk_metrics_write(site->metrics, &out->body);
}
