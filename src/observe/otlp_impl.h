/* SPDX-License-Identifier: Apache-2.0 */
/* What traces (otlp.c) and metrics (otlp_metrics.c) write alike. Errors are the buffer's. */
#ifndef HK_OBSERVE_OTLP_IMPL_H
#define HK_OBSERVE_OTLP_IMPL_H

#include "base/json.h"
#include "observe/otlp.h"

void hk_otlp_pb_attr(struct hk_buf *out, unsigned field, const struct hk_attr *attr);
void hk_otlp_pb_resource(struct hk_buf *out, const struct hk_resource *resource);
void hk_otlp_pb_scope(struct hk_buf *out, const struct hk_resource *resource);

void hk_otlp_js_text(struct hk_json *json, const char *key, struct hk_str value);
void hk_otlp_js_u64(struct hk_json *json, const char *key, uint64_t value); /* as a string */
void hk_otlp_js_attr(struct hk_json *json, const struct hk_attr *attr);
void hk_otlp_js_attrs(struct hk_json *json, const struct hk_attr *attrs, size_t n);
void hk_otlp_js_resource(struct hk_json *json, const struct hk_resource *resource);
void hk_otlp_js_scope(struct hk_json *json, const struct hk_resource *resource);
/* {"key": [{ … }]} */
void hk_otlp_js_begin(struct hk_json *json, const char *key);
void hk_otlp_js_finish(struct hk_json *json);

#endif
