/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a notice, the same for every channel, which each channel puts into its own format. The text is safe to show: characters
 * that hide or move text are escaped, and lengths are bounded, whatever the notice contains. */
#ifndef HK_ALERT_WORDS_H
#define HK_ALERT_WORDS_H

#include "alert/notice.h"

#define HK_WORDS_TITLE_MAX  140  /* characters */
#define HK_WORDS_VALUE_MAX  200  /* of a fact */
#define HK_WORDS_DETAIL_MAX 1000 /* of the last error */

enum hk_fact_kind {
    HK_FACT_SEVERITY = 0,
    HK_FACT_DESTINATION,
    HK_FACT_REASON,
    HK_FACT_EVENT_TYPE,
    HK_FACT_COUNT,
    HK_FACT_VALUE, /* what was measured, and its limit */
    HK_FACT_EXAMPLE,
    HK_FACT_FIELDS, /* of the payload, as the rule names them */
    HK_FACT_SINCE,
    HK_FACT_DETAIL,
    HK_FACT_STORY, /* what else is told by this notice */
    HK_FACT_RULE,
    HK_FACT_RELAY,
    HK_NFACTS
};

/* Templates: {n} is the count, {value} and {limit} what was measured, {dest}, {reason}, {relay} and {age} speak for themselves;
 * {n:one|many} and {value:one|many} choose by number; what stands in [] is left out when a name in it has no value. */
struct hk_words_kind {
    const char *title, *ended; /* while it is so; when it is over */
    const char *text, *ended_text;
};

/* One language: a table, so that who translates sees nothing else. */
struct hk_words {
    const char *level[3];                      /* what a title begins with */
    const char *level_update[3];               /* the same of an update */
    const char *over, *test;                   /* the same of the end, and of a test */
    const char *level_name[3];                 /* as the value of a fact */
    const char *label[HK_NFACTS];              /* of facts */
    const char *field[HK_NALERT_FIELD_STATES]; /* in place of a value that is not shown */
    const char *paused_label;                  /* of the detail, when a destination is paused */
    const char *next, *dashboard;              /* labels of the command and of the link */
    const char *colon;                         /* between a label and its value */
    const char *measured;                      /* of {value} and {limit} */
    const char *still;                         /* what an update adds, with {age} */
    const char *since;                         /* of {time} and {age} */
    const char *since_now;                     /* of {time}, when it has only begun */
    const char *story_gap;                     /* between the lines of a story */
    const char *story_more;                    /* of {n}: those that found no place */
    const char *test_title, *test_text;
    const char *units[4]; /* day, hour, minute, second */
    const char *unit_gap; /* between two of them */
    int utc_offset_hours; /* of {time} */
    const char *zone;     /* its name */
    struct hk_words_kind kinds[HK_NALERT_KINDS];
    struct hk_words_kind others[HK_NALERT_KINDS]; /* of what came beyond alerts.separate, where that can be */
};

extern const struct hk_words hk_words_en, hk_words_ja;
const struct hk_words *hk_words_of(enum hk_alert_language language);

/* One line of a sentence or two: what is wrong, what it means. */
void hk_words_summary(const struct hk_notice *notice, enum hk_alert_language language, struct hk_buf *out);

/* Each fact that applies, in the order of the enum. `value` is valid during the call. A failure (HK_NOMEM) is `out`'s. */
typedef void hk_words_fact_fn(void *arg, enum hk_fact_kind kind, const char *label, struct hk_str value);
void hk_words_facts(const struct hk_notice *notice, enum hk_alert_language language, hk_words_fact_fn *each,
                    void *arg, struct hk_buf *out);

/* What to run next; it may be pasted into a shell, whatever the notice holds. Adds nothing when there is nothing to run. */
void hk_words_command(const struct hk_notice *notice, struct hk_buf *out);

/* Do its rules compare, so that value and threshold mean something? */
bool hk_words_compares(enum hk_alert_kind about);

/* The link, when it is one of http:// or https:// that can stand in any text and attribute; else NULL. */
const char *hk_words_link(const struct hk_notice *notice);

/* What was put together aside and did not come about is missing in `out`: its failure becomes that one's. The first empties
 * `aside`, the second frees it. */
void hk_words_again(struct hk_buf *aside, struct hk_buf *out);
void hk_words_done(struct hk_buf *aside, struct hk_buf *out);

#endif
