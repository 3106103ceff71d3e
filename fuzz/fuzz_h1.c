/* SPDX-License-Identifier: Apache-2.0 */
/* An answer means the same in whatever pieces it comes in, and stays within its bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "sink/http/h1_parse.h"
#include "sink/http/header.h"

struct reading {
    struct hk_h1_answer answer;
    struct hk_response response;
    enum hk_h1_next next;
    enum hk_h1_stop stop;
    size_t used;
};

static void check(const struct reading *r, size_t size)
{
    struct hk_header headers[HK_HTTP_HEADERS_MAX];
    const struct hk_response *response = &r->response;
    size_t n = hk_response_headers(response, headers);
    MUST(r->used <= size && n <= HK_HTTP_HEADERS_MAX && response->body.len <= HK_HTTP_KEEP_MAX);
    MUST(response->final == 0 || (response->final >= 200 && response->final <= 999));
    for (size_t i = 0; i < n; i++) {
        MUST(hk_header_name_ok(headers[i].name));
        MUST(!memchr(headers[i].value.ptr, '\r', headers[i].value.len + 1));
        MUST(!memchr(headers[i].value.ptr, '\n', headers[i].value.len + 1));
    }
    if (r->next == HK_H1_DONE || (r->next == HK_H1_STOP && r->stop == HK_H1_ENOUGH))
        MUST(response->final >= 200);
    if (r->next == HK_H1_STOP && r->stop != HK_H1_ENOUGH)
        MUST(!response->final);
    if (r->next == HK_H1_MORE)
        MUST(r->used == size && response->head_bytes <= HK_HTTP_HEAD_MAX &&
             response->body_bytes <= HK_HTTP_READ_MAX);
    if (r->next == HK_H1_DONE && hk_h1_framing_keeps(&r->answer.framing))
        MUST(!r->answer.framing.doubtful && !r->answer.framing.close);
}

static void read_in(struct reading *r, const uint8_t *data, size_t size, size_t piece)
{
    memset(r, 0, sizeof *r);
    hk_h1_answer_init(&r->answer);
    hk_response_init(&r->response);
    for (size_t at = 0; at < size && r->next == HK_H1_MORE; at += piece) {
        size_t n = size - at < piece ? size - at : piece, used = 0;
        char *copy = malloc(n); /* so that reading past the end is seen */
        MUST(copy);
        memcpy(copy, data + at, n);
        r->next = hk_h1_feed(&r->answer, &r->response, (struct hk_str){copy, n}, &used, &r->stop);
        r->used += used;
        free(copy);
        MUST(used == n || r->next != HK_H1_MORE);
    }
    check(r, size);
}

static void check_same(const struct reading *a, const struct reading *b)
{
    MUST(a->next == b->next && a->stop == b->stop && a->response.final == b->response.final);
    MUST(a->next != HK_H1_DONE || (a->used == b->used && hk_h1_framing_keeps(&a->answer.framing) ==
                                                             hk_h1_framing_keeps(&b->answer.framing)));
    MUST(a->next != HK_H1_MORE || hk_h1_cut_off(&a->answer) == hk_h1_cut_off(&b->answer));
    MUST(hk_str_eq(hk_buf_str(&a->response.body), hk_buf_str(&b->response.body)));
    MUST(hk_str_eq(hk_buf_str(&a->response.text), hk_buf_str(&b->response.text)));
}

static void end(struct reading *r)
{
    hk_h1_answer_fini(&r->answer);
    hk_response_fini(&r->response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 2, 7, 61};
    struct reading whole, cut;
    read_in(&whole, data, size, size ? size : 1);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        read_in(&cut, data, size, pieces[i]);
        check_same(&whole, &cut);
        end(&cut);
    }
    hk_h1_answer_reset(&whole.answer);
    MUST(whole.answer.state == HK_H1_STATUS && !hk_h1_cut_off(&whole.answer));
    end(&whole);
    return 0;
}
