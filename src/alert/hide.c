/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in what others say. */
#include <string.h>

#include "alert/send.h"

#define HIDDEN_MIN 4 /* bytes of a secret: shorter ones would hide ordinary words */

void hk_send_hide(char *text, size_t len, struct hk_str secret)
{
    if (secret.len < HIDDEN_MIN)
        return;
    for (size_t at = 0; at + HIDDEN_MIN <= len; at++) {
        size_t fits = len - at < secret.len ? len - at : secret.len;
        if (memcmp(text + at, secret.ptr, fits) == 0)
            memset(text + at, '*', fits);
    }
}
