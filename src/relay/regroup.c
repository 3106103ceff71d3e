/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, and what a letter of an older version would have said: "the answer was HTTP 422" with the answer in its detail. */
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "config/payload.h"
#include "payload/answer.h"
#include "payload/scan.h"
#include "relay/regroup.h"

enum {
    STEP = 500,       /* letters; a payload is read only where masks could hide something of it, */
    STEP_MASKED = 16, /* and then fewer letters */
    PAYLOAD_MAX = 1 << 20,
    BODY_MAX = 4 * HK_ANSWER_READ,
    STEP_EVERY_MS = 100,   /* so that relaying has the store's thread nearly to itself */
    LOOK_EVERY_MS = 60000, /* an older relay may run beside this one, and add letters */
    LOCK_MS = 1000
};

struct hk_regrouper {
    struct hk_regrouper_options options;
    struct hk_admin *admin; /* NULL: closed */
    struct hk_masks *masks;
    int64_t at_ms;
    uint64_t letters; /* since there was work */
    /* of the last work */
    uint32_t n;
    enum hk_code rc, last_rc;
    struct hk_err err;
};

enum hk_code hk_regrouper_new(const struct hk_regrouper_options *options, struct hk_regrouper **out,
                              struct hk_err *err)
{
    struct hk_regrouper *rg = hk_mem_zalloc(1, sizeof *rg);
    if (!rg)
        return hk_err_set(err, HK_NOMEM, "out of memory for groups");
    rg->options = *options;
    rg->at_ms = options->letters->regroup ? 0 : INT64_MAX;
    *out = rg;
    return HK_OK;
}

void hk_regrouper_close(struct hk_regrouper *rg)
{
    rg->options.admin->close(rg->admin);
    rg->admin = NULL;
}

void hk_regrouper_free(struct hk_regrouper *rg)
{
    if (!rg)
        return;
    hk_regrouper_close(rg);
    hk_masks_free(rg->masks);
    hk_mem_free(rg);
}

enum hk_code hk_regrouper_configure(struct hk_regrouper *rg, const struct hk_config *config,
                                    struct hk_err *err)
{
    struct hk_masks *masks = NULL;
    enum hk_code rc = hk_config_make_masks(config, &masks, err);
    if (rc != HK_OK)
        return rc;
    hk_masks_free(rg->masks);
    rg->masks = masks;
    return HK_OK;
}

int64_t hk_regrouper_at_ms(const struct hk_regrouper *rg)
{
    return rg->at_ms;
}

/* ---- what a letter says ---- */

/* The answer in a detail of ours (store/detail.c). False: there is none, or no memory for it. */
static bool read_body(struct hk_str detail, struct hk_buf *out)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    bool next = false;
    hk_scan_init(&scan, detail);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (next)
            return kind == HK_SCAN_STRING && hk_scan_text(token.raw, out) == HK_OK;
        next = kind == HK_SCAN_KEY && scan.depth == 1 && hk_str_eq(token.raw, hk_str_of("\"response_body\""));
    }
    return false;
}

static void say(void *arg, const struct hk_letter *letter, struct hk_buf *out)
{
    struct hk_regrouper *rg = arg;
    struct hk_str silent = hk_str_of(HK_ANSWER_SILENT), error = letter->error;
    const struct hk_mask_about about = {.event_type = letter->event_type,
                                        .encoding = letter->encoding,
                                        .headers = letter->headers,
                                        .payloads = &letter->payload,
                                        .n_payloads = 1,
                                        .partial = letter->version > 1 ||
                                                   letter->payload.len < letter->payload_bytes};
    struct hk_buf body;
    uint64_t status = 0;
    char room[HK_ANSWER_ERROR_MAX];
    if (!hk_str_starts(error, silent) ||
        hk_parse_u64((struct hk_str){error.ptr + silent.len, error.len - silent.len}, &status, NULL) !=
            HK_OK ||
        status > 999)
        return;
    hk_buf_init(&body, BODY_MAX);
    if (read_body(letter->error_detail, &body)) {
        struct hk_str said = hk_answer_error(rg->masks, &about, (int)status, hk_buf_str(&body), room);
        if (!hk_str_starts(said, silent))
            (void)hk_buf_add(out, said.ptr, said.len);
    }
    hk_buf_fini(&body);
}

/* ---- steps ---- */

void hk_regrouper_work(struct hk_regrouper *rg)
{
    const struct hk_store_options options = {.busy_ms = LOCK_MS};
    const struct hk_regrouping how = {.limit = rg->masks ? STEP_MASKED : STEP,
                                      .payload_max = rg->masks ? PAYLOAD_MAX : 0,
                                      .say = say,
                                      .arg = rg};
    rg->n = 0;
    rg->rc = rg->admin ? HK_OK : rg->options.admin->open(rg->options.url, &options, &rg->admin, &rg->err);
    if (rg->rc == HK_OK)
        rg->rc = rg->options.letters->regroup(rg->admin, &how, &rg->n, &rg->err);
    if (rg->n == 0)
        hk_regrouper_close(rg);
}

void hk_regrouper_done(struct hk_regrouper *rg, int64_t now_ms)
{
    struct hk_log_line line;
    rg->letters += rg->n;
    rg->at_ms = now_ms + (rg->rc == HK_OK && rg->n ? STEP_EVERY_MS : LOOK_EVERY_MS);
    if (rg->rc != HK_OK && rg->rc != HK_BUSY && rg->rc != rg->last_rc) {
        hk_log_begin(&line, rg->options.log, HK_LOG_WARN,
                     "dead letters of an older version cannot be grouped");
        hk_log_cstr(&line, "code", hk_code_name(rg->rc));
        hk_log_cstr(&line, "error", rg->err.message);
        hk_log_end(&line);
    } else if (rg->rc == HK_OK && !rg->n && rg->letters) {
        hk_log_begin(&line, rg->options.log, HK_LOG_INFO, "dead letters of an older version are grouped");
        hk_log_i64(&line, "letters", (int64_t)rg->letters);
        hk_log_end(&line);
        rg->letters = 0;
    }
    rg->last_rc = rg->rc;
}
