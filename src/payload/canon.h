/* SPDX-License-Identifier: Apache-2.0 */
/* Do two JSON texts say the same? A payload that was only written in another way (white space, escapes, the order of names) is the
 * same message: it must keep its bytes and its id, or the receiver would act on it twice. */
#ifndef HK_PAYLOAD_CANON_H
#define HK_PAYLOAD_CANON_H

#include <stdbool.h>

#include <hikyaku/facts.h>

/* Compares values: white space, escapes in strings, the order of names in an object, and how a number is written (1.50, 15e-1) do not
 * matter. 1 and 1.0 differ, since receivers with strict types tell them apart; so does a name that stands twice from one that stands
 * once. Bytes that are not JSON are the same only when they are equal. Out of memory: false. */
bool hk_json_same(struct hk_str a, struct hk_str b);

/* Does some object of it have the same name twice (escapes undone)? Programs that read it keep one of the values without a word.
 * `*out_known` is false when memory was short or the text is not JSON: then nobody can tell, and the result is false. */
bool hk_json_has_twins(struct hk_str json, bool *out_known);

#endif
