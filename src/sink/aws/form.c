/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "sink/aws/form.h"

static bool stands_for_itself(char c)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

void hk_aws_form_add(struct hk_buf *out, struct hk_str value)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < value.len;) {
        size_t n = 0;
        while (i + n < value.len && stands_for_itself(value.ptr[i + n]))
            n++;
        (void)hk_buf_add(out, value.ptr + i, n);
        i += n;
        if (i == value.len)
            break;
        unsigned char c = (unsigned char)value.ptr[i++];
        const char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
        (void)hk_buf_add(out, escape, sizeof escape);
    }
}
