/* SPDX-License-Identifier: Apache-2.0 */
/* Texts about a message, shown: one path for lists, alerts, logs and what the relay stores. It fails closed: where a payload cannot be
 * decoded for want of memory nobody knows what is hidden in it, and so nothing is shown. */
#include "payload/codec.h"
#include "payload/mask_impl.h"

#define TEXT_MAX ((size_t)64 << 20)

/* Headers stand in texts, too (an error's detail), at whatever depth: the value behind each name that is masked. `text` as it is when
 * it is no JSON. */
static void hide_headers(const struct hk_masks *masks, struct hk_str event_type, struct hk_str text,
                         struct hk_buf *out)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_buf name;
    size_t copied = 0;
    bool hide = false;
    hk_buf_init(&name, TEXT_MAX);
    hk_scan_init(&scan, text);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (kind == HK_SCAN_STRING && hide) {
            (void)hk_buf_add(out, text.ptr + copied, token.at - copied);
            (void)hk_buf_adds(out, "\"" HK_MASKED "\"");
            copied = token.at + token.raw.len;
        }
        hide = false;
        if (kind == HK_SCAN_KEY) {
            hk_buf_reset(&name);
            (void)hk_scan_text(token.raw, &name);
            hide = hk_buf_status(&name) != HK_OK || /* without memory for the name: rather hidden */
                   hk_mask_has_header(masks, event_type, hk_buf_str(&name));
        }
    }
    (void)hk_buf_add(out, text.ptr + copied, text.len - copied);
    hk_buf_fini(&name);
}

/* Hides in `text` what is masked in one payload; the result takes the text's place. A payload that is not what its encoding says is
 * taken as it stands: a receiver was never sent anything else. */
static enum hk_code hide_payload(const struct hk_masks *masks, const struct hk_mask_about *about,
                                 struct hk_str payload, struct hk_buf *text)
{
    struct hk_pool mem = {.blocks = NULL};
    struct hk_buf hidden;
    struct hk_str plain;
    enum hk_code rc = hk_codec_plain(about->encoding, payload, &mem, &plain);
    if (rc == HK_INVALID) {
        plain = payload;
        rc = HK_OK;
    }
    if (rc == HK_OK) {
        hk_buf_init(&hidden, TEXT_MAX);
        rc = hk_mask_text(masks, about->event_type, plain, hk_buf_str(text), &hidden);
        hk_buf_fini(text);
        *text = hidden;
    }
    hk_pool_fini(&mem);
    return rc;
}

enum hk_code hk_mask_about(const struct hk_masks *masks, const struct hk_mask_about *about,
                           struct hk_str text, struct hk_buf *out)
{
    struct hk_buf hidden;
    if (!text.len || !hk_masks_fit(masks, about->event_type))
        return hk_buf_add(out, text.ptr, text.len);
    if (about->partial)
        return hk_mask_fail(out, HK_TOOBIG);
    hk_buf_init(&hidden, TEXT_MAX);
    hide_headers(masks, about->event_type, text, &hidden);
    enum hk_code rc = hk_buf_status(&hidden);
    for (size_t i = 0; i < about->n_payloads && rc == HK_OK; i++)
        rc = hide_payload(masks, about, about->payloads[i], &hidden);
    if (rc == HK_OK)
        rc = hk_mask_header_values(masks, about->event_type, about->headers, hk_buf_str(&hidden), out);
    else
        rc = hk_mask_fail(out, rc);
    hk_buf_fini(&hidden);
    return rc;
}

/* ---- for people ---- */

void hk_mask_show(const struct hk_masks *masks, const struct hk_mask_about *about, struct hk_str text,
                  struct hk_buf *out)
{
    struct hk_buf shown;
    if (!text.len || !hk_masks_fit(masks, about->event_type)) {
        (void)hk_buf_add(out, text.ptr, text.len);
        return;
    }
    hk_buf_init(&shown, TEXT_MAX);
    if (about->partial)
        (void)hk_buf_adds(out, "(hidden: masks apply, and not all of its payloads can be read)");
    else if (hk_mask_about(masks, about, text, &shown) == HK_OK)
        (void)hk_buf_add(out, shown.data, shown.len);
    else
        (void)hk_buf_adds(out, "(out of memory)");
    hk_buf_fini(&shown);
}

void hk_mask_show_headers(const struct hk_masks *masks, const struct hk_mask_about *about,
                          struct hk_str headers, struct hk_buf *out)
{
    struct hk_buf masked;
    if (!headers.len)
        return;
    hk_buf_init(&masked, TEXT_MAX);
    if (hk_mask_headers(masks, about->event_type, headers, &masked) == HK_OK)
        hk_mask_show(masks, about, hk_buf_str(&masked), out); /* an answer may repeat what it was sent */
    else
        (void)hk_buf_adds(out, "(out of memory)");
    hk_buf_fini(&masked);
}

void hk_mask_show_payload(const struct hk_masks *masks, struct hk_str event_type, struct hk_str encoding,
                          struct hk_str stored, struct hk_buf *out)
{
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str plain;
    enum hk_code rc = hk_codec_plain(encoding, stored, &mem, &plain);
    if (rc == HK_OK)
        (void)hk_mask_payload(masks, event_type, plain, out);
    else if (rc == HK_DENIED)
        (void)hk_buf_adds(out, "(sealed)");
    else if (rc == HK_INVALID)
        (void)hk_buf_addf(out, "(%zu bytes that are not base64)", stored.len);
    else
        (void)hk_mask_fail(out, rc);
    hk_pool_fini(&mem);
}

/* ---- answers ---- */

/* Ends before what is hidden and does not end itself: it was cut inside of it. */
static void mask_whole_values(const struct hk_mask_paths *paths, struct hk_str json, struct hk_buf *out)
{
    struct hk_path_walk walk;
    struct hk_scan_token token;
    enum hk_scan_kind kind = HK_SCAN_END;
    size_t done = 0;
    hk_path_walk_init(&walk, json, paths->paths, paths->states, paths->n);
    while ((kind = hk_path_walk_next(&walk, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR) {
        size_t end = token.at + token.raw.len;
        if (!hk_path_walk_hit(&walk))
            continue;
        (void)hk_buf_add(out, json.ptr + done, token.at - done);
        (void)hk_buf_adds(out, "\"" HK_MASKED "\"");
        if ((kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY) && !hk_path_walk_leave(&walk, &end))
            return;
        done = end;
    }
    (void)hk_buf_add(out, json.ptr + done, json.len - done);
}

enum hk_code hk_mask_answer(const struct hk_masks *masks, struct hk_str event_type, struct hk_str body,
                            struct hk_buf *out)
{
    struct hk_mask_paths paths;
    enum hk_code rc = hk_mask_paths_init(&paths, masks, event_type);
    if (rc != HK_OK)
        rc = hk_mask_fail(out, rc);
    else if (paths.n)
        mask_whole_values(&paths, body, out);
    else
        (void)hk_buf_add(out, body.ptr, body.len);
    hk_mask_paths_fini(&paths);
    return rc == HK_OK ? hk_buf_status(out) : rc;
}
