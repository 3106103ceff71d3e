/* SPDX-License-Identifier: Apache-2.0 */
/* Masks, and payloads and headers behind them. A text is checked before anything of it is written: the half of a payload that
 * is well-formed may hold the value that the other half would have hidden. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "payload/mask_impl.h"

struct rule {
    char *event_type;
    struct hk_path **paths;
    size_t n_paths;
    char **headers;
    size_t n_headers;
};

struct hk_masks {
    size_t n;
    struct rule rules[];
};

/* ---- rules ---- */

static enum hk_code nomem(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code add_path(struct rule *rule, size_t number, const char *text, struct hk_err *err)
{
    struct hk_err why = {.code = HK_OK};
    enum hk_code rc = hk_path_parse(hk_str_of(text), &rule->paths[rule->n_paths], &why);
    if (rc == HK_OK)
        rule->n_paths++;
    else
        hk_err_set(err, rc, "mask %zu: path %zu: %s", number, rule->n_paths + 1, why.message);
    return rc;
}

static enum hk_code add_header(struct rule *rule, const char *name, struct hk_err *err)
{
    char *copy = hk_mem_strdup(name);
    if (!copy)
        return nomem(err);
    rule->headers[rule->n_headers++] = copy;
    return HK_OK;
}

static enum hk_code add_rule(struct rule *rule, size_t number, const struct hk_mask_rule *from,
                             struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    rule->event_type = hk_mem_strdup(from->event_type ? from->event_type : "*");
    rule->paths = hk_mem_zalloc(from->n_paths, sizeof(struct hk_path *));
    rule->headers = hk_mem_zalloc(from->n_headers, sizeof(char *));
    if (!rule->event_type || !rule->paths || !rule->headers)
        return nomem(err);
    for (size_t i = 0; rc == HK_OK && i < from->n_paths; i++)
        rc = add_path(rule, number, from->paths[i], err);
    for (size_t i = 0; rc == HK_OK && i < from->n_headers; i++)
        rc = add_header(rule, from->headers[i], err);
    return rc;
}

enum hk_code hk_masks_new(const struct hk_mask_rule *rules, size_t n, struct hk_masks **out,
                          struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    struct hk_masks *masks = hk_mem_zalloc(1, sizeof *masks + n * sizeof masks->rules[0]);
    if (!masks)
        return nomem(err);
    for (size_t i = 0; rc == HK_OK && i < n; i++) {
        masks->n++; /* what is half built is freed, too */
        rc = add_rule(&masks->rules[i], i + 1, &rules[i], err);
    }
    if (rc == HK_OK)
        *out = masks;
    else
        hk_masks_free(masks);
    return rc;
}

void hk_masks_free(struct hk_masks *masks)
{
    for (size_t i = 0; masks && i < masks->n; i++) {
        struct rule *rule = &masks->rules[i];
        for (size_t k = 0; k < rule->n_paths; k++)
            hk_path_free(rule->paths[k]);
        for (size_t k = 0; k < rule->n_headers; k++)
            hk_mem_free(rule->headers[k]);
        hk_mem_free(rule->paths);
        hk_mem_free(rule->headers);
        hk_mem_free(rule->event_type);
    }
    hk_mem_free(masks);
}

/* The next rule from `*i` on that fits; NULL: none. */
static const struct rule *next_rule(const struct hk_masks *masks, struct hk_str event_type, size_t *i)
{
    while (masks && *i < masks->n) {
        const struct rule *rule = &masks->rules[(*i)++];
        if (hk_str_glob(rule->event_type, event_type))
            return rule;
    }
    return NULL;
}

bool hk_masks_fit(const struct hk_masks *masks, struct hk_str event_type)
{
    const struct rule *rule = NULL;
    for (size_t i = 0; (rule = next_rule(masks, event_type, &i)) != NULL;) {
        if (rule->n_paths || rule->n_headers)
            return true;
    }
    return false;
}

bool hk_masks_cover(const struct hk_masks *masks, const char *event_type, const struct hk_path *path)
{
    bool is_one = event_type && !strchr(event_type, '*');
    for (size_t i = 0; masks && i < masks->n; i++) {
        const struct rule *rule = &masks->rules[i];
        if (is_one && !hk_str_glob(rule->event_type, hk_str_of(event_type)))
            continue;
        for (size_t k = 0; k < rule->n_paths; k++)
            if (hk_path_covers(rule->paths[k], path))
                return true;
    }
    return false;
}

/* ---- payloads ---- */

enum hk_code hk_mask_fail(struct hk_buf *out, enum hk_code code)
{
    if (out->status == HK_OK)
        out->status = code;
    return out->status;
}

enum hk_code hk_mask_paths_init(struct hk_mask_paths *paths, const struct hk_masks *masks,
                                struct hk_str event_type)
{
    const struct rule *rule = NULL;
    size_t n = 0;
    *paths = (struct hk_mask_paths){0};
    for (size_t i = 0; (rule = next_rule(masks, event_type, &i)) != NULL;)
        n += rule->n_paths;
    if (!n)
        return HK_OK;
    paths->paths = hk_mem_zalloc(n, sizeof(struct hk_path *));
    paths->states = hk_mem_zalloc(n, sizeof paths->states[0]);
    if (!paths->paths || !paths->states)
        return HK_NOMEM;
    for (size_t i = 0; (rule = next_rule(masks, event_type, &i)) != NULL;) {
        for (size_t k = 0; k < rule->n_paths; k++)
            paths->paths[paths->n++] = rule->paths[k];
    }
    return HK_OK;
}

void hk_mask_paths_fini(struct hk_mask_paths *paths)
{
    hk_mem_free((void *)paths->paths);
    hk_mem_free(paths->states);
}

/* All up to `*done` is written; goes on to the value, hides it, and is then behind it. */
static void hide(struct hk_str text, size_t *done, size_t at, size_t end, struct hk_buf *out)
{
    hk_buf_add(out, text.ptr + *done, at - *done);
    hk_buf_adds(out, "\"" HK_MASKED "\"");
    *done = end;
}

void hk_mask_json(const struct hk_mask_paths *paths, struct hk_str json, struct hk_buf *out)
{
    struct hk_path_walk walk;
    struct hk_scan_token token;
    enum hk_scan_kind kind = HK_SCAN_END;
    size_t done = 0;
    hk_path_walk_init(&walk, json, paths->paths, paths->states, paths->n);
    while ((kind = hk_path_walk_next(&walk, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR) {
        bool hit = hk_path_walk_hit(&walk);
        size_t end = token.at + token.raw.len;
        if (hit && (kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY) && !hk_path_walk_leave(&walk, &end))
            break;
        if (hit)
            hide(json, &done, token.at, end, out);
    }
    hk_buf_add(out, json.ptr + done, json.len - done);
}

static enum hk_code hidden(size_t bytes, struct hk_buf *out)
{
    return hk_buf_addf(out, "(hidden: %zu bytes, not JSON, and masks apply)", bytes);
}

enum hk_code hk_mask_payload(const struct hk_masks *masks, struct hk_str event_type, struct hk_str payload,
                             struct hk_buf *out)
{
    struct hk_mask_paths paths;
    enum hk_code rc = hk_mask_paths_init(&paths, masks, event_type);
    if (rc != HK_OK)
        rc = hk_mask_fail(out, rc);
    else if (!paths.n || !payload.len)
        rc = hk_buf_add(out, payload.ptr, payload.len);
    else if (hk_scan_check(payload, NULL) != HK_OK)
        rc = hidden(payload.len, out);
    else
        hk_mask_json(&paths, payload, out);
    hk_mask_paths_fini(&paths);
    return rc == HK_OK ? out->status : rc;
}

/* ---- headers ---- */

/* `raw`: a JSON string's token, or NULL; else `name` as it is. */
static bool has_header(const struct hk_masks *masks, struct hk_str event_type, const struct hk_str *raw,
                       struct hk_str name)
{
    const struct rule *rule = NULL;
    for (size_t i = 0; (rule = next_rule(masks, event_type, &i)) != NULL;) {
        for (size_t k = 0; k < rule->n_headers; k++) {
            struct hk_str masked = hk_str_of(rule->headers[k]);
            if (raw ? hk_scan_text_eqi(*raw, masked) : hk_str_eqi(name, masked))
                return true;
        }
    }
    return false;
}

bool hk_mask_has_header(const struct hk_masks *masks, struct hk_str event_type, struct hk_str name)
{
    return has_header(masks, event_type, NULL, name);
}

static bool masks_headers(const struct hk_masks *masks, struct hk_str event_type)
{
    const struct rule *rule = NULL;
    for (size_t i = 0; (rule = next_rule(masks, event_type, &i)) != NULL;) {
        if (rule->n_headers)
            return true;
    }
    return false;
}

static bool is_object(struct hk_str json)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, json);
    return hk_scan_next(&scan, &token) == HK_SCAN_OBJECT && hk_scan_check(json, NULL) == HK_OK;
}

enum hk_code hk_mask_headers(const struct hk_masks *masks, struct hk_str event_type, struct hk_str headers,
                             struct hk_buf *out)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    size_t done = 0;
    if (!headers.len || !masks_headers(masks, event_type))
        return hk_buf_add(out, headers.ptr, headers.len);
    if (!is_object(headers))
        return hidden(headers.len, out);
    hk_scan_init(&scan, headers);
    for (bool secret = false;;) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            break;
        bool container = kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY;
        if (kind == HK_SCAN_KEY) {
            secret = has_header(masks, event_type, &token.raw, token.raw);
        } else if (secret && hk_scan_is_value(kind)) {
            size_t end = token.at + token.raw.len;
            if (container && !hk_scan_leave(&scan))
                break;
            hide(headers, &done, token.at, container ? scan.pos : end, out);
            secret = false;
        }
    }
    return hk_buf_add(out, headers.ptr + done, headers.len - done);
}
