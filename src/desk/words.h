/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a request that select letters or messages: a filter, and words for its terms. */
#ifndef HK_DESK_WORDS_H
#define HK_DESK_WORDS_H

#include "desk/desk.h"
#include "payload/filter.h"

/* An option that is one term of a filter. */
struct hk_word {
    const char *term;
    size_t offset; /* of its text in the struct of words, which begins with the filter */
};

struct hk_words {
    const struct hk_word *words;
    size_t n;
    enum hk_code (*parse)(const char *text, int64_t now_ms, struct hk_filter **out, struct hk_err *err);
};

/* Does the request select anything at all? A filter of blanks does not: a script's variable may have been empty, and the request would
 * select everything. `given` is the struct of options. */
bool hk_words_given(const struct hk_words *kind, const void *given);
/* Was anything given that says nothing where some are named? (All but the destination.) */
bool hk_words_beside_ids(const struct hk_words *kind, const void *given);

/* The words together. HK_INVALID about the field "filter". */
enum hk_code hk_words_parse(struct hk_desk *desk, const struct hk_words *kind, const void *given,
                            struct hk_filter **out, struct hk_err *err);
/* And HK_DENIED: they ask for what is masked, and the caller may not reveal that. */
enum hk_code hk_words_filter(struct hk_desk *desk, const struct hk_caller *caller,
                             const struct hk_words *kind, const void *given, struct hk_filter **out,
                             struct hk_err *err);
/* The same as text that means the same at any time, in `mem`. NULL: out of memory. */
const char *hk_words_text(const struct hk_filter *filter, const struct hk_letter_query *query,
                          struct hk_pool *mem);

#endif
