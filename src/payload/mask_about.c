/* SPDX-License-Identifier: Apache-2.0 */
/* Texts about a message, shown: one path for lists, alerts, logs and what the relay stores. It fails closed: where a payload cannot be
 * decoded for want of memory nobody knows what is hidden in it, and so nothing is shown. */
#include "base/base64.h"
#include "base/mem.h"
#include "core/encoding.h"
#include "payload/mask_impl.h"

#define TEXT_MAX ((size_t)64 << 20)

/* The payload as the application wrote it. One that is not base64 although the message says so is taken as it stands: a receiver
 * was never sent anything else. */
static enum hk_code decode(struct hk_str encoding, struct hk_str payload, unsigned char **out_bytes,
                           struct hk_str *out)
{
    size_t room = hk_base64_room(payload.len), len = 0;
    *out = payload;
    if (!payload.len || !hk_encoding_is_base64(encoding))
        return HK_OK;
    *out_bytes = hk_mem_alloc(room);
    if (!*out_bytes)
        return HK_NOMEM;
    if (hk_base64_decode(payload, HK_BASE64_LINES, *out_bytes, room, &len))
        *out = (struct hk_str){(const char *)*out_bytes, len};
    return HK_OK;
}

/* Hides in `text` what is masked in one payload; the result takes the text's place. */
static enum hk_code hide_payload(const struct hk_masks *masks, const struct hk_mask_about *about,
                                 struct hk_str payload, struct hk_buf *text)
{
    struct hk_buf hidden;
    struct hk_str plain;
    unsigned char *bytes = NULL;
    enum hk_code rc = decode(about->encoding, payload, &bytes, &plain);
    if (rc != HK_OK)
        return rc;
    hk_buf_init(&hidden, TEXT_MAX);
    rc = hk_mask_text(masks, about->event_type, plain, hk_buf_str(text), &hidden);
    hk_mem_free(bytes);
    hk_buf_fini(text);
    *text = hidden;
    return rc;
}

enum hk_code hk_mask_about(const struct hk_masks *masks, const struct hk_mask_about *about,
                           struct hk_str text, struct hk_buf *out)
{
    struct hk_buf hidden;
    if (!text.len || !hk_masks_fit(masks, about->event_type))
        return hk_buf_add(out, text.ptr, text.len);
    hk_buf_init(&hidden, TEXT_MAX);
    enum hk_code rc = hk_buf_add(&hidden, text.ptr, text.len);
    for (size_t i = 0; i < about->n_payloads && rc == HK_OK; i++)
        rc = hide_payload(masks, about, about->payloads[i], &hidden);
    if (rc == HK_OK)
        rc = hk_mask_header_values(masks, about->event_type, about->headers, hk_buf_str(&hidden), out);
    else
        rc = hk_mask_fail(out, rc);
    hk_buf_fini(&hidden);
    return rc;
}

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
