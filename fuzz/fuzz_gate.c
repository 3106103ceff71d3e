/* SPDX-License-Identifier: Apache-2.0 */
/* Who may come in, and how a head is read: flags, then target, method, Host, Origin, X-Forwarded-For, and pairs of header names and values,
 * with zero bytes between. Always a verdict that says why; nobody passes a gate with a name or by an address that is not listed; a head
 * that is taken says in one way how long its body is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/gate.h"
#include "admin/head.h"
#include "base/str.h"
#include "fuzz.h"

enum {
    TEXT_MAX = 2048
};

static const char *next_text(struct hk_str *rest, char out[TEXT_MAX])
{
    struct hk_str part = hk_str_cut(rest, '\0');
    return hk_str_copy(out, TEXT_MAX, part) ? out : "";
}

static bool is_same(const struct hk_ip *a, const struct hk_ip *b)
{
    return a->v6 == b->v6 && memcmp(a->addr, b->addr, a->v6 ? 16 : 4) == 0;
}

static void check_gate(const struct hk_gate *gate, const struct hk_gate_ask *ask)
{
    struct hk_gate_pass pass;
    const char *why = NULL;
    unsigned status = hk_gate_check(gate, ask, &pass, &why);
    MUST(status == 0 || status == 403 || status == 421);
    MUST((status != 0) == (why != NULL));
    if (status != 0)
        return;
    MUST(pass.has_client == (ask->peer != NULL));
    if (gate->way == HK_GATE_LOCAL && ask->host != NULL)
        MUST(hk_gate_names_loopback(ask->host) || strncasecmp(ask->host, "relay.example", 13) == 0);
    if (gate->way == HK_GATE_PROXIED)
        MUST(ask->peer != NULL && hk_cidr_has(gate->proxies, ask->peer));
    if (ask->peer != NULL && (gate->way != HK_GATE_PROXIED || ask->forwarded == NULL)) {
        struct hk_ip peer = hk_ip_unmap(ask->peer);
        MUST(is_same(&pass.client, &peer));
    }
    bool changes = strcmp(ask->method, "GET") != 0 && strcmp(ask->method, "HEAD") != 0 &&
                   strcmp(ask->method, "OPTIONS") != 0;
    if (changes && ask->origin != NULL && gate->way != HK_GATE_OPEN && !pass.cors)
        MUST(strncmp(ask->origin, "http", 4) == 0 && ask->host != NULL);
    if (pass.cors)
        MUST(strcasecmp(ask->origin, "https://dash.example") == 0);
}

static void check_head(struct hk_str rest, bool old)
{
    struct hk_head_fields head = {0};
    struct hk_head_body body = {.length = 77};
    static char texts[64][TEXT_MAX];
    for (size_t i = 0; i + 1 < 64 && rest.len > 0; i += 2) {
        const char *name = next_text(&rest, texts[i]), *value = next_text(&rest, texts[i + 1]);
        hk_head_note(&head, name, value);
    }
    const char *why = hk_head_check(&head, old ? "HTTP/1.0" : "HTTP/1.1", &body);
    if (why != NULL) {
        MUST(*why != '\0' && body.length == 77 && !body.present);
        return;
    }
    MUST(!(head.length != NULL && head.coding != NULL) && !head.odd && !head.doubled);
    if (head.coding != NULL)
        MUST(!old && body.present && body.length == HK_HEAD_LENGTH_NONE);
    else
        MUST(body.present == (body.length > 0) && (head.length != NULL || body.length == 0));
    if (hk_head_takes_gzip(head.encodings))
        MUST(hk_str_containsi(hk_str_of(head.encodings), hk_str_of("gzip")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const hosts[] = {"relay.example"}, *const cors[] = {"https://dash.example"};
    static const struct hk_cidr proxies[] = {{.addr = {10}, .bits = 8}};
    char target[TEXT_MAX], method[TEXT_MAX], host[TEXT_MAX], origin[TEXT_MAX], forwarded[TEXT_MAX];
    if (size < 2)
        return 0;
    struct hk_str rest = {(const char *)data + 2, size - 2}, path, query;
    struct hk_str whole = hk_str_of(next_text(&rest, target));
    hk_head_split(whole, &path, &query);
    MUST(memchr(path.ptr, '?', path.len) == NULL);
    MUST(path.len + query.len + (query.ptr != NULL) == whole.len);
    const struct hk_ip peers[] = {
        {.addr = {10, 1, 2, 3}}, {.addr = {192, 0, 2, 1}}, {.addr = {127, 0, 0, 1}}};
    const struct hk_gate gate = {.way = data[0] % 5,
                                 .hosts = hosts,
                                 .n_hosts = 1,
                                 .cors = cors,
                                 .n_cors = data[0] >> 7,
                                 .proxies = proxies,
                                 .n_proxies = 1};
    struct hk_gate_ask ask = {.method = next_text(&rest, method)};
    const char *texts[] = {next_text(&rest, host), next_text(&rest, origin), next_text(&rest, forwarded)};
    ask.host = data[1] & 1 ? texts[0] : NULL;
    ask.origin = data[1] & 2 ? texts[1] : NULL;
    ask.forwarded = data[1] & 4 ? texts[2] : NULL;
    ask.peer = data[1] >> 3 & 3 ? &peers[(data[1] >> 3 & 3) - 1] : NULL;
    check_gate(&gate, &ask);
    check_head(rest, data[1] >> 7);
    return 0;
}
