/* SPDX-License-Identifier: Apache-2.0 */
/* application/x-www-form-urlencoded, as AWS's query services read it. */
#ifndef HK_SINK_AWS_FORM_H
#define HK_SINK_AWS_FORM_H

#include "base/buf.h"

/* Everything but letters, digits and "-._~" as %XX. Errors are the buffer's. */
void hk_aws_form_add(struct hk_buf *out, struct hk_str value);

#endif
