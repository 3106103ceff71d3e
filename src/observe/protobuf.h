/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol Buffers by hand, as far as OTLP needs them. Errors are the buffer's. */
#ifndef HK_OBSERVE_PROTOBUF_H
#define HK_OBSERVE_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

void hk_pb_number(struct hk_buf *out, unsigned field, uint64_t value);
void hk_pb_fixed(struct hk_buf *out, unsigned field, uint64_t value, size_t n); /* 4 or 8 bytes */
void hk_pb_double(struct hk_buf *out, unsigned field, double value);
/* A repeated field of 64-bit numbers, or of the bits of doubles. */
void hk_pb_packed(struct hk_buf *out, unsigned field, const uint64_t *values, size_t n);
void hk_pb_bytes(struct hk_buf *out, unsigned field, const void *bytes, size_t n);
void hk_pb_text(struct hk_buf *out, unsigned field, struct hk_str s); /* what is not UTF-8 becomes U+FFFD */
/* A message inside another: what is added between the two is its content. */
size_t hk_pb_open(struct hk_buf *out, unsigned field);
void hk_pb_close(struct hk_buf *out, size_t at);

#endif
