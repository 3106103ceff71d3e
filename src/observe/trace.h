/* SPDX-License-Identifier: Apache-2.0 */
/* W3C Trace Context: `traceparent` in and out, new ids, and which traces are kept. Pure: randomness is an argument. */
#ifndef HK_OBSERVE_TRACE_H
#define HK_OBSERVE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/facts.h>
#include <hikyaku/rng.h>

#define HK_TRACEPARENT_SIZE 56 /* "00-<32 hex>-<16 hex>-<2 hex>" and its end */
#define HK_TRACE_ID_TEXT    33
#define HK_SPAN_ID_TEXT     17

struct hk_trace {
    uint8_t trace_id[16]; /* never all zero */
    uint8_t span_id[8];   /* likewise; of the parent, in what is parsed */
    bool sampled;
};

/* As https://www.w3.org/TR/trace-context/ has it: lower case only, ids not all zero, version ff refused; of a later version than 00
 * what is known of it, whatever follows behind a '-'. False: as if there were none. */
bool hk_trace_parse(struct hk_str text, struct hk_trace *out);
void hk_trace_format(const struct hk_trace *trace, char out[HK_TRACEPARENT_SIZE]);
void hk_trace_id_text(const struct hk_trace *trace, char out[HK_TRACE_ID_TEXT]);
void hk_span_id_text(const uint8_t span_id[8], char out[HK_SPAN_ID_TEXT]);

void hk_trace_new_id(uint8_t trace_id[16], struct hk_rng *rng);
void hk_trace_new_span(uint8_t span_id[8], struct hk_rng *rng);

/* OTEL_TRACES_SAMPLER. */
enum hk_sampler_kind {
    HK_SAMPLE_ALWAYS = 0,
    HK_SAMPLE_NEVER,
    HK_SAMPLE_RATIO /* by the trace's id, so that all who take part decide alike */
};

struct hk_sampler {
    enum hk_sampler_kind root; /* where nobody has decided before */
    bool parent_based;         /* who has a parent does as that one did */
    double ratio;              /* HK_SAMPLE_RATIO: 0 to 1 */
};

/* `parent` NULL: a new trace begins. */
bool hk_trace_sample(const struct hk_sampler *sampler, const struct hk_trace *parent,
                     const uint8_t trace_id[16]);
/* always_on, always_off, traceidratio, and each with parentbased_ in front; false: no such sampler. */
bool hk_sampler_by_name(struct hk_str name, struct hk_sampler *out);

#endif
